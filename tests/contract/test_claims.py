"""Every claim of reference/claims.yaml names existing metrics, judges, faces and cells, or has a reason."""

from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from masquerade.core import discovery
from masquerade.papers import claims, reference
from masquerade.params import loading, matrix

ROOT = Path(__file__).parents[2]
CLAIMS = claims.load(ROOT / claims.FILE)
PARAMETERS = loading.load(ROOT, "paper")
MEASURED = claims.of_papers(CLAIMS, PARAMETERS.papers)
"""Claims of the papers in params.yaml: the graph compares them with the metrics."""
VARIANTS = {(name, variant) for name, block in PARAMETERS.methods.items() for variant in block.variants}
ITEMS = [reference.load(path) for path in sorted((ROOT / reference.FOLDER).glob("*/*.yaml"))]
PRINTED = {cell.method for item in ITEMS for cell in reference.method_entries(item)}
"""Methods that a table or figure shows, built or not."""


def measures(claim):
    return {claim.measure_of(side) for side in claim.sides}


def test_every_paper_has_claims():
    counts = {
        paper: sum(claim.paper == paper for claim in CLAIMS)
        for paper in PARAMETERS.papers
        if paper not in reference.OURS
    }
    assert set(counts) <= {claim.paper for claim in CLAIMS} <= set(discovery.list_names("methods"))
    assert min(counts.values()) >= 4


@pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: f"{claim.paper}-{claim.name}")
def test_metrics_judges_and_faces_exist(claim):
    assert {measure.metric for measure in measures(claim)} <= set(discovery.list_names("metrics"))
    for judge in (measure.judge for measure in measures(claim) if measure.judge):
        known = [*discovery.list_names("judges"), "pseudo_a", "pseudo_b"]  # the labelers of the attribute protocol
        assert reference.stand_in(judge, PARAMETERS.stand_ins.judges) in known
    assert reference.stand_in(claim.dataset, PARAMETERS.stand_ins.datasets) in discovery.list_names("faces")


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"{claim.paper}-{claim.name}")
def test_variants_exist_and_methods_are_built_or_named_by_a_table(claim):
    for side in claim.sides:
        assert (side.method, side.variant) in VARIANTS or side.method not in PARAMETERS.methods
        assert side.method in PARAMETERS.methods or side.method in PRINTED


@pytest.mark.parametrize("scale", ["tiny", "mini", "paper", "paper_1024"])
def test_every_compared_cell_is_planned_or_has_a_reason(scale):
    planned = loading.load(ROOT, scale)
    cells = matrix.plan_cells(planned)
    runnable = {(cell.dataset, cell.method, cell.variant) for cell in cells if cell.runnable}
    stand_ins = planned.stand_ins.datasets
    needed = {(stand_ins.get(role, role), *cell) for role, *cell in claims.needs(MEASURED)}
    assert needed == runnable & needed | set(matrix.explain_skipped(planned, needed, cells))
    if scale == "mini":  # `make reproduce` leaves out only methods that are not built, and variants that mini drops
        kept = {(name, variant) for name, block in planned.methods.items() for variant in block.variants}
        assert {cell[1:] for cell in needed - runnable} & kept == set()


@pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: f"{claim.paper}-{claim.name}")
def test_recovered_cells_of_claims_are_in_the_parameters(claim):
    for (role, method, variant), _ in claims.list_attempts([claim]):
        patterns = PARAMETERS.recovery.cells[PARAMETERS.stand_ins.datasets.get(role, role)]
        assert any(fnmatchcase(f"{method}/{variant}", pattern) for pattern in patterns)


@pytest.mark.parametrize("claim", MEASURED, ids=lambda claim: f"{claim.paper}-{claim.name}")
def test_an_attempt_is_compared_with_the_anonymized_pictures_of_the_same_faces(claim):
    for pair in claim.pairs:
        one, other = sorted((claim.sides[place] for place in pair), key=lambda side: bool(side.attempt))
        if other.attempt and not one.attempt and one.method == other.method:
            # metrics of versions count the attempted faces alone; for the others there is the attempt 'anonymized'
            assert claim.measure_of(one).metric in ("key_similarity", "key_angle")
