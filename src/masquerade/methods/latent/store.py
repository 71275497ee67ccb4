"""Sets of codes on disk: one safetensors file a set, which names the generator of its codes."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from masquerade.core.errors import CheckpointError
from masquerade.training import checkpoints


class Table(nn.Module):
    """Named tensors with one row a face, as a module so that a checkpoint can hold them."""

    def __init__(self, columns: Mapping[str, Tensor]):
        super().__init__()
        for name, values in columns.items():
            self.register_buffer(name, values)

    @staticmethod
    def read(path: Path, kind: str, backbones: Mapping[str, Path]) -> tuple[dict[str, Tensor], Mapping[str, Any]]:
        """The columns and the facts of a file.

        Raises CheckpointError if it is damaged, or is of another kind or generator.
        """
        saved = checkpoints.Saved(path, backbones, ("generator",))
        if kind not in saved.tensors:
            raise CheckpointError(f"{path} holds no {kind}. Delete it and run `snakemake {path}` again.")
        return saved.tensors[kind], saved.facts
