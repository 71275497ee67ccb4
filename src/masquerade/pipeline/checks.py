"""Checks before a build runs: files from outside that are missing or damaged, and cells that are left out."""

from collections.abc import Iterable

from masquerade import assets
from masquerade.core import discovery
from masquerade.core.errors import AssetError
from masquerade.pipeline.graph import Graph

COMMAND = "`masquerade assets list`"


def check_assets(paths: Iterable[str]) -> None:
    """Raise AssetError if one of the files from outside among ``paths``, the inputs of jobs, is not ready."""
    roles = sorted({role for path in paths if (role := assets.role_of(path))})
    if problems := _problems(roles):
        raise AssetError(f"Files from outside are not ready ({COMMAND}):\n" + "\n".join(problems))


def warnings(graph: Graph) -> list[str]:
    """What a person must know of a graph before it runs: files that are not ready, and cells that are left out."""
    parameters = graph.parameters
    backbones = [discovery.load("backbones", name)(block).asset for name, block in parameters.backbones.items()]
    blocks = ["measure", "target", "recovery", *(["attacks"] if graph.key_attacked else [])]
    judges = [name for block in blocks for name in graph.judges.names(block)]
    trained = [
        role
        for name, block in parameters.methods.items()
        for role in discovery.load("methods", name).files(block.params)
    ]
    roles = [
        *filter(None, backbones),
        *filter(None, map(parameters.official, parameters.methods)),
        *trained,
        *(role for name in judges for role in discovery.load("judges", name).assets),
    ]
    texts = []
    if problems := _problems(dict.fromkeys(roles)):
        head = f"Files from outside that are not ready, without which a build stops ({COMMAND}):\n"
        texts.append(head + "\n".join(problems))
    if left_out := {f"{cell.dataset}: {cell.reason}" for cell in graph.all_cells if not cell.runnable}:
        texts.append("Left out of the matrix:\n" + "\n".join(sorted(left_out)))
    return texts


def _problems(roles: Iterable[str]) -> list[str]:
    return [problem for role in roles if (problem := assets.unready(role))]
