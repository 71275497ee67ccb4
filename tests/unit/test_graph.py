"""The declarations of the rules: files, code, parameters and targets of each job, computed without Snakemake."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

from masquerade.core.errors import AssetError
from masquerade.params import paths
from masquerade.params.paths import Paths
from masquerade.params.slices import Slice
from masquerade.pipeline import checks, submission
from masquerade.pipeline.graph import Graph, Targets

CELL = {"dataset": "synthetic_hq", "method": "ifadit", "variant": "full", "seed": 0}


class Wildcards(SimpleNamespace):
    """Wildcards in the form of Snakemake: attributes, and `items`."""

    def items(self):
        return vars(self).items()


@pytest.fixture(scope="module")
def announced():
    return []


@pytest.fixture(scope="module")
def graph(root, announced):
    return Graph(root, "tiny", announced.append)


def wildcards(**changes) -> Wildcards:
    return Wildcards(**{**CELL, **changes})


class TestPaths:
    def test_every_file_of_a_scale_is_below_a_folder_of_that_scale(self):
        patterns = [text for name, text in vars(Paths("tiny")).items() if name != "imported"]
        for text in patterns:
            assert text.startswith(("data/tiny", "checkpoints/tiny", "results/tiny", "logs/tiny", ".masquerade/"))
            assert "/tiny" in text

    def test_paths_of_a_cell_equal_those_written_by_hand(self):
        files = Paths("tiny")
        assert files.anonymized.format(**CELL) == "data/tiny/anonymized/synthetic_hq/ifadit/full/0.zip"
        assert files.method.format(**CELL) == "checkpoints/tiny/methods/ifadit/0.safetensors"
        assert files.table.format(paper="falco", item="table1") == "results/tiny/tables/falco/table1"
        assert paths.with_index("a/b.zip") == ["a/b.zip", "a/b.parquet"]

    @pytest.mark.parametrize(("kind", "words"), [
        ("metrics", CELL), ("attackers_faces", CELL | {"key_kind": "shared"}),
        ("attacker", CELL | {"attacker": "adapted", "trial": 2}), ("faces", {"dataset": "synthetic_hq"}),
    ])  # fmt: skip
    def test_path_is_parsed_into_what_it_was_built_of(self, kind, words, tmp_path):
        path = getattr(Paths("tiny"), kind).format(**words)
        expected = {name: str(value) for name, value in words.items()} | {"scale": "tiny"}
        assert Paths.parse(kind, Path(path)) == Paths.parse(kind, tmp_path / path) == expected


class TestParameters:
    def test_slice_of_a_job_has_the_keys_of_its_wildcards(self, graph):
        text = graph.params_slice("methods.{method}.params", "measure.batch")(wildcards())
        assert set(Slice.parse(text).values) == {"methods.ifadit.params", "measure.batch"}


class TestCode:
    def test_code_of_a_method_holds_its_own_modules_and_no_other_method(self, graph, root, announced):
        file = graph.methods.code("anonymize")(wildcards())
        assert announced[-1] == file == ".masquerade/code/anonymize.ifadit.json"
        files = set(json.loads((root / file).read_text()))
        assert {"workflow/scripts/anonymize.py", "src/masquerade/methods/ifadit/method.py"} <= files
        assert "src/masquerade/backbones/parsing/backbone.py" in files, "ifadit needs the parser"
        assert not [path for path in files if "/methods/falco" in path or "/lineage/tracking" in path]


class TestMethods:
    def test_an_ablation_uses_the_checkpoint_of_its_method_if_there_is_one(self, graph):
        assert graph.methods.checkpoint(wildcards()) == graph.paths.method
        assert graph.methods.checkpoint(wildcards(method="gaussian_blur")) == []
        method, ablations = next(
            (name, variants) for name in graph.parameters.methods if (variants := graph.parameters.ablations(name))
        )
        assert graph.methods.checkpoint(wildcards(method=method, variant=next(iter(ablations)))) == graph.paths.ablation

    def test_method_gets_the_inputs_of_its_capabilities(self, graph):
        falco = graph.methods.files(wildcards(method="falco"))
        assert falco["fakes"] == "data/tiny/fakes.safetensors"
        assert falco["latents"] == graph.paths.latents
        assert falco["gallery"] == []
        k_same = graph.methods.files(wildcards(method="k_same"))
        assert k_same["gallery"] == "data/tiny/faces/synthetic_hq.zip"
        assert k_same["gallery_index"] == "data/tiny/faces/synthetic_hq.parquet"
        assert k_same["backbones"] == k_same["checkpoint"] == []

    def test_official_file_of_a_method_replaces_its_training_and_not_that_of_an_ablation(self, root, monkeypatch):
        graph = Graph(root, "tiny", lambda message: None)
        assert graph.methods.weights(wildcards(method="ciagan")) == []
        parameters = mock.Mock(wraps=graph.parameters)
        parameters.official_role = lambda method: "ciagan"
        parameters.ablations = lambda method: {"ablated": {}}
        monkeypatch.setattr(graph.methods, "parameters", parameters)
        assert graph.methods.weights(wildcards(method="ciagan")) == [".masquerade/assets/ciagan.json"]
        assert graph.methods.weights(wildcards(method="ciagan", variant="ablated")) == []


class TestTargets:
    KINDS = ("data", "backbones", "latents", "train", "anonymize", "features", "measure", "attributes", "recovery",
             "metrics", "tables", "report")  # fmt: skip

    @pytest.mark.parametrize("kind", KINDS)
    def test_targets_are_full_paths_without_repeats(self, graph, kind):
        files = Targets(graph).of(kind)(None)
        assert files
        assert len(set(files)) == len(files)
        assert not [path for path in files if "{" in path]

    def test_cell_outside_a_list_has_no_file(self, graph):
        cell = graph.attempted[0]
        pattern = graph.only(graph.attempted, "file")
        assert (
            pattern(Wildcards(dataset=cell.dataset, method=cell.method, variant=cell.variant, seed=cell.seed)) == "file"
        )
        assert pattern(wildcards(method="blackout", variant="black")) == []

    def test_rehearsal_makes_no_results(self, graph, monkeypatch):
        assert graph.results("a", "b") == ["a", "b"]
        monkeypatch.setattr(graph, "parameters", SimpleNamespace(rehearsal=True))
        assert graph.results("a", "b") == []


class TestPapers:
    def test_table_depends_on_the_metrics_of_its_cells(self, graph):
        names = Wildcards(paper="falco", item="table1")
        files = graph.papers.shown(graph.paths.metrics)(names)
        assert files
        assert all(path.startswith("results/tiny/metrics/synthetic_hq/") for path in files)
        missing = {tuple(cell) for *cell, _ in json.loads(graph.papers.not_shown(names))}
        available = {tuple(path.split("/")[3:6]) for path in files}
        assert not missing & available
        assert missing | available == set(graph.papers.settings(graph.papers.item(names)))

    def test_names_of_a_kind_are_bound_to_their_paper(self, graph):
        import re

        pattern = re.compile(rf"results/tiny/figures/(?P<paper>\w+)/(?P<item>{graph.papers.names('clusters')})\.png")
        item = next(item for item in graph.papers.items.values() if item.kind == "clusters")
        assert pattern.fullmatch(f"results/tiny/figures/{item.paper}/{item.name}.png")
        assert not pattern.fullmatch(f"results/tiny/figures/another/{item.name}.png")


class TestSubmission:
    def test_own_resources_of_a_job_override_those_of_its_kind(self, graph):
        compute = graph.parameters.compute.model_copy(update={"overrides": {"training/falco": {"gpus": 3}}})
        resources = submission.make_submission(compute, "logs/x", "training", lambda w: w.method, "train")
        requested = json.loads(resources["submission"](wildcards(method="falco")))
        assert (requested["gpus"], requested["name"], requested["resumable"]) == (3, "training falco", True)
        other = json.loads(resources["submission"](wildcards()))
        assert other["gpus"] == compute.training.gpus

    def test_partitions_of_every_kind_are_checked_on_a_cluster(self, graph, monkeypatch):
        checked = {}
        monkeypatch.setattr(submission.launch, "check_partitions", checked.update)
        submission.prepare_submission(graph.parameters.compute, submits=True, kept={})
        assert {"compute.light.partition", "compute.training.partition", "compute.inference.partition"} <= set(checked)


def test_missing_file_from_outside_stops_a_build_and_says_what_to_do(monkeypatch):
    monkeypatch.setattr(checks.assets, "unready", lambda role: f"{role} is missing. Fetch it.")
    with pytest.raises(AssetError, match=r"not ready \(`masquerade assets list`\):\nbisenet is missing. Fetch it."):
        checks.check_assets(["data/tiny/faces/x.zip", ".masquerade/assets/bisenet.json"])
    checks.check_assets(["data/tiny/faces/x.zip"])


def test_graph_is_planned_without_torch_and_without_snakemake(root):
    program = (
        "import sys\nfrom pathlib import Path\n"
        "from masquerade.pipeline.graph import Graph\nfrom masquerade.pipeline.graph import Targets\n"
        f"Targets(Graph(Path({str(root)!r}), 'tiny')).tables()\n"
        "sys.exit(', '.join({'torch', 'snakemake', 'cv2'} & set(sys.modules)) or 0)"
    )
    run = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_each_output_of_a_rule_has_a_literal_path_beside_it(root):
    text = "".join(path.read_text() for path in (root / "workflow/rules").glob("*.smk"))
    blocks = re.findall(r"^    output:\n((?: {8}.*\n)+)", text, re.MULTILINE)
    outputs = [line for block in blocks for line in block.splitlines()]
    assert len(outputs) > 30
    for line in outputs:
        kind, example = re.fullmatch(r".*PATHS\.(\w+).*  # (\S+)", line).groups()
        path = Path(example)
        if "multiext" in line:
            path = path.with_suffix("")
        assert Paths.parse(kind, path).get("scale") == "mini", line
