"""Checkpoints: safetensors files with metadata beside the tensors. No code from a file is ever executed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from masquerade.core import files, fingerprints, rehearsal
from masquerade.core.errors import CheckpointError
from masquerade.training import distributed

Network = TypeVar("Network", bound=nn.Module)

BUFFERS = "buffers"
"""The entry of the metadata with the names of the buffers."""


def save_checkpoint(path: Path, modules: Mapping[str, nn.Module], metadata: Mapping[str, object]) -> None:
    """Write tensors as ``<module>.<key>`` with ``metadata`` (JSON values). The same content gives the same bytes.

    The metadata also list the tensors that are buffers and no parameters. If several processes train together, only the
    first one writes.
    """
    if not distributed.is_first():
        return
    tensors = {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name, module in modules.items()
        for key, value in module.state_dict().items()
    }
    write_tensors(path, tensors, metadata, [name for name in _buffers(modules) if name in tensors])


def _buffers(modules: Mapping[str, nn.Module]) -> list[str]:
    return sorted(f"{name}.{key}" for name, module in modules.items() for key, _ in module.named_buffers())


def write_tensors(
    path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, object], buffers: Sequence[str]
) -> None:
    """Write tensors by their full names. ``buffers``: the names of those that are no parameters."""
    # one entry: the order of several is another one in each file
    text = json.dumps({**rehearsal.mark(metadata), BUFFERS: list(buffers)}, sort_keys=True)
    with files.write_atomically(path) as temporary:
        safetensors.torch.save_file(dict(tensors), temporary, {"masquerade": text})
        temporary.chmod(0o644)  # safetensors lets only the owner read; the members of a lab share checkpoints


def list_buffers(path: Path) -> list[str]:
    """The names of the tensors of a checkpoint that are buffers. Raises CheckpointError if it does not list them."""
    with safe_open(path, framework="pt") as file:
        buffers = json.loads(file.metadata()["masquerade"]).get(BUFFERS)
    if buffers is None:
        raise CheckpointError(
            f"{path} does not say which of its tensors are buffers: an earlier version of the code wrote it. Delete it "
            f"and run `snakemake {path}` again."
        )
    return buffers


def load_checkpoint(path: Path) -> tuple[dict[str, dict[str, Tensor]], dict]:
    """Returns ({module: {key: tensor}}, metadata).

    Raises CheckpointError when the file is missing or damaged, RehearsalError when a rehearsal made it.
    """
    if not Path(path).is_file():
        raise CheckpointError(f"{path} is missing. Train it with `snakemake {path}`, or fetch it with `dvc pull`.")
    tensors, metadata = read_tensors(path, f"is damaged ({{}}). Delete it and run `snakemake {path}` again.")
    rehearsal.admit(metadata, path)
    modules: dict[str, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        module, _, name = key.partition(".")
        modules.setdefault(module, {})[name] = tensor
    return modules, metadata


def read_tensors(path: Path, mistake: str) -> tuple[dict[str, Tensor], dict]:
    """Returns (tensors by their full names, metadata). Raises CheckpointError: the path and ``mistake``, with {} for
    the reason.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = json.loads(file.metadata()["masquerade"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} {mistake.format(error)}") from error
    metadata.pop(BUFFERS, None)
    return tensors, metadata


def load_into(module: nn.Module, tensors: Mapping[str, Tensor], path: Path) -> None:
    """Load strictly. Raises CheckpointError naming the keys that are missing, left over, or of another shape."""
    shapes = {key: tuple(value.shape) for key, value in module.state_dict().items()}
    given_shapes = {key: tuple(value.shape) for key, value in tensors.items()}
    problems = (
        [f"{key} is missing" for key in sorted(shapes.keys() - given_shapes.keys())]
        + [f"{key} is left over" for key in sorted(given_shapes.keys() - shapes.keys())]
        + [
            f"{key} is {given_shapes[key]}, the network has {shapes[key]}"
            for key in sorted(shapes.keys() & given_shapes.keys())
            if shapes[key] != given_shapes[key]
        ]
    )
    if problems:
        text = "; ".join(problems[:4]) + (f"; and {len(problems) - 4} more" if len(problems) > 4 else "")
        raise CheckpointError(f"{path} does not fit {type(module).__name__}: {text}.")
    module.load_state_dict(dict(tensors))


class Saved:
    """A checkpoint that was read: ``tensors`` {module: {key: tensor}} and ``metadata``.

    ``tied``: the names of those of ``backbones`` that it belongs to. Raises CheckpointError if it is missing, damaged
    or was made with another backbone, or if an entry of the metadata is looked up that it does not state.
    """

    def __init__(self, path: Path, backbones: Mapping[str, Path] = MappingProxyType({}), tied: Iterable[str] = ()):
        self.path = path
        self.tensors, metadata = load_checkpoint(path)
        self.metadata = _Metadata(path, metadata)
        for name in tied:
            check_backbone(path, name, metadata.get(name), backbones[name])

    def frozen(self, name: str, network: Network) -> Network:
        """Load a module of the checkpoint into ``network``, strictly; returns it frozen, in evaluation mode."""
        load_into(network, self.tensors.get(name, {}), self.path)
        return network.eval().requires_grad_(False)


def check_backbone(path: Path, name: str, stated: object, backbone: Path) -> None:
    """Raises CheckpointError if the file at ``path`` does not belong to ``backbone``, the checkpoint of ``name``.

    ``stated``: the MD5 in the file.
    """
    if stated != fingerprints.md5(backbone):
        raise CheckpointError(
            f"{path} was made with another backbone '{name}' than {backbone}, and fits that one alone. Use that "
            f"backbone, or run `snakemake {path}` again."
        )


class _Metadata(dict):
    def __init__(self, path: Path, metadata: Mapping):
        super().__init__(metadata)
        self.path = path

    def __missing__(self, name: str) -> None:
        raise CheckpointError(f"{self.path} is not a checkpoint of this network: it does not state its {name}.")
