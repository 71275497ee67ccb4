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
"""NVIDIA's data sheets of the A100 (2021) and the H100 and H200, all without sparsity."""


def gpu(name: str) -> GPU:
    """The GPU of that name. Raises MasqueradeError naming those that are listed."""
    if name not in GPUS:
        raise MasqueradeError(
            f"The GPU '{name}' is not listed. Listed: {', '.join(GPUS)}. For another one, give its --peak in TFLOP/s."
        )
    return GPUS[name]
