"""Sets of codes on disk: one safetensors file a set, tied to the generator whose codes they are."""

from collections.abc import Mapping
from pathlib import Path

from torch import Tensor, nn

from masquerade import training
from masquerade.errors import CheckpointError


class Table(nn.Module):
    """Named tensors with one row a face."""

    def __init__(self, columns: Mapping[str, Tensor]):
        super().__init__()
        for name, values in columns.items():
            self.register_buffer(name, values)

    @staticmethod
    def read(path: Path, kind: str, generator: str, **facts: object) -> dict[str, Tensor]:
        """The columns of a file. Raises CheckpointError where it is damaged, of another kind, generator or set."""
        tensors, told = training.load_checkpoint(path)
        if kind not in tensors:
            raise CheckpointError(f"{path} holds no {kind}. Delete it and run `snakemake {path}` again.")
        for name, value in {"generator": generator, **facts}.items():
            if told.get(name) != value:
                raise CheckpointError(f"{path} belongs to another {name}. Run `snakemake {path}` again.")
        return tensors[kind]
