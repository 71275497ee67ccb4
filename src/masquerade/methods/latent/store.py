"""Sets of codes on disk: one safetensors file a set, which names the generator of its codes."""

from collections.abc import Mapping
from pathlib import Path

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
    def read(path: Path, kind: str, generator: str, **facts: object) -> dict[str, Tensor]:
        """The columns of a file. Raises CheckpointError if it is damaged, or is of another kind, generator or fact."""
        tensors, stored = checkpoints.load_checkpoint(path)
        if kind not in tensors:
            raise CheckpointError(f"{path} holds no {kind}. Delete it and run `snakemake {path}` again.")
        for name, value in {"generator": generator, **facts}.items():
            if stored.get(name) != value:
                raise CheckpointError(f"{path} belongs to another {name}. Run `snakemake {path}` again.")
        return tensors[kind]
