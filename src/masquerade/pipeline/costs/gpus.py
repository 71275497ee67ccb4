"""Peak throughput of GPUs from their data sheets, without sparsity, in the two precisions of training here."""

from dataclasses import dataclass

from masquerade.core.errors import MasqueradeError


@dataclass(frozen=True)
class GPU:
    """``tf32``, ``fp32``: peak TFLOP/s of matrix products in TF32 (PyTorch's default for convolutions), and of plain
    32-bit arithmetic.
    """

    title: str
    memory_gb: int
    tf32: float
    fp32: float


GPUS = {
    "a100": GPU("NVIDIA A100 80 GB", 80, 156.0, 19.5),
    "h100": GPU("NVIDIA H100 SXM", 80, 494.7, 66.9),
    "h200": GPU("NVIDIA H200 SXM", 141, 494.7, 66.9),
}
"""NVIDIA's data sheets of the A100 (2021) and the H100 and H200, TF32 without sparsity."""


def gpu(name: str) -> GPU:
    """The GPU of that name. Raises MasqueradeError naming those that are listed."""
    if name not in GPUS:
        raise MasqueradeError(
            f"The GPU '{name}' is not listed. Listed: {', '.join(GPUS)}. For another one, give its --peak in TFLOP/s."
        )
    return GPUS[name]
