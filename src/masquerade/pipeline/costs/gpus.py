"""Peak throughput of GPUs from their data sheets, without sparsity, in the precisions of `Arithmetic`."""

from dataclasses import dataclass

from masquerade.core.errors import MasqueradeError


@dataclass(frozen=True)
class GPU:
    """``tf32``, ``fp32``, ``bf16``: peak TFLOP/s of matrix products in TF32 (PyTorch's default for convolutions), of
    plain 32-bit arithmetic, and of products in bfloat16.
    """

    title: str
    memory_gb: int
    tf32: float
    fp32: float
    bf16: float

    @property
    def peaks(self) -> dict[str, float]:
        """Precision of `Arithmetic` -> peak."""
        return {"float32": self.fp32, "tf32": self.tf32, "bfloat16": self.bf16}


GPUS = {
    "a100": GPU("NVIDIA A100 80 GB", 80, 156.0, 19.5, 312.0),
    "h100": GPU("NVIDIA H100 SXM", 80, 494.7, 66.9, 989.4),
    "h200": GPU("NVIDIA H200 SXM", 141, 494.7, 66.9, 989.4),
}
"""Of NVIDIA's sheets: A100 data sheet (1758950, 2021); H100 architecture white paper (2022), table of the SXM5. The
data sheets of the H100 and H200, which have the same chip, print twice 494.7 and 989.4, with sparsity.
"""


def gpu(name: str) -> GPU:
    """The GPU of that name. Raises MasqueradeError naming those that are listed."""
    if name not in GPUS:
        raise MasqueradeError(
            f"The GPU '{name}' is not listed. Listed: {', '.join(GPUS)}. For another one, give its --peak in TFLOP/s."
        )
    return GPUS[name]
