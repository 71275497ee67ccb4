"""Checks before a build runs: files from outside that are not ready, cells that are left out, hidden values."""

import os
from collections.abc import Iterable
from pathlib import Path

from masquerade import assets
from masquerade.core import discovery, fingerprints
from masquerade.core.errors import AssetError, MasqueradeError, ParameterError
from masquerade.lineage import history
from masquerade.params import blocks, loading, overlays
from masquerade.pipeline.graph import Graph

FORBIDDEN = ':"$`\\%{}\n'
"""`:` divides PATH, scripts expand `$` and the backtick within quotes, SLURM expands `%`, and Snakemake braces."""
COMMAND = "`masquerade assets list`"
BASELINE = "DVC_EXP_BASELINE_REV"
"""`dvc exp run` sets this variable: the commit from which the experiment starts."""


def check_place(root: Path) -> None:
    """Raise MasqueradeError if the path of the repository has one of the FORBIDDEN characters."""
    if wrong := sorted(set(FORBIDDEN) & set(str(root))):
        raise MasqueradeError(
            f"The path of this repository, {str(root)!r}, has the character {' '.join(map(repr, wrong))}, which the "
            "shell, PATH, SLURM or Snakemake would read as something else. Move the repository to a path without "
            f"{' '.join(FORBIDDEN[:-1])} and line breaks, and run `make environment`. Spaces, ' and & are fine."
        )


def check_assets(paths: Iterable[str]) -> None:
    """Raise AssetError if one of the files from outside among ``paths``, the inputs of jobs, is not ready."""
    roles = sorted({role for path in paths if (role := assets.role_of(path))})
    if problems := _problems(roles):
        raise AssetError(f"Files from outside are not ready ({COMMAND}):\n" + "\n".join(problems))


def check_experiment(root: Path) -> None:
    """Raise ParameterError if a DVC experiment changes a parameter that an overlay hides, or runs in no clone."""
    baseline = os.environ.get(BASELINE)
    if not baseline:
        return
    committed = fingerprints.run_git(root, "show", f"{baseline}:./{blocks.PARAMS}")
    if committed.returncode:
        raise ParameterError(
            f"An experiment of DVC starts from the commit {baseline}, and git has no {blocks.PARAMS} of it in {root} "
            f"({committed.stderr.strip()}). Run `dvc exp run` in a clone of Masquerade, which has a .git of its own."
        )
    before, now = overlays.parse_yaml(committed.stdout, blocks.PARAMS), overlays.read_yaml(root / blocks.PARAMS)
    for file, layer in reversed(loading.read_layers(now["scale"], root).items()):
        overlays.check_hidden_changes(before, now, layer, file)


def collect_warnings(graph: Graph) -> list[str]:
    """What a person must know of a graph before it runs: files that are not ready, and cells that are left out."""
    parameters = graph.parameters
    backbones = [discovery.load("backbones", name)(block).asset for name, block in parameters.backbones.items()]
    blocks = ["measure", "target", "recovery", *(["attacks"] if graph.key_attacked else [])]
    judges = [name for block in blocks for name in graph.judges.names(block)]
    trained = [
        role
        for name, block in parameters.methods.items()
        for role in discovery.load("methods", name).list_loss_files(block.params)
    ]
    roles = [
        *filter(None, backbones),
        *filter(None, map(parameters.official_role, parameters.methods)),
        *trained,
        *(role for name in judges for role in discovery.load("judges", name).assets),
    ]
    texts = []
    if reason := history.explain_refusal(graph.planned.root):
        texts.append(f"{reason} Until then runs have the commit 'unknown', and no build is recorded.")
    if problems := _problems(dict.fromkeys(roles)):
        head = f"Files from outside that are not ready, without which a build stops ({COMMAND}):\n"
        texts.append(head + "\n".join(problems))
    if left_out := {f"{cell.dataset}: {cell.reason}" for cell in graph.all_cells if not cell.runnable}:
        texts.append("Left out of the matrix:\n" + "\n".join(sorted(left_out)))
    return texts


def _problems(roles: Iterable[str]) -> list[str]:
    return [problem for role in roles if (problem := assets.unready(role))]
