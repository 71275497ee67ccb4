"""One row of the plan."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One row of the plan: all jobs of a rule that do the same."""

    rule: str
    name: str
    jobs: int
    units: int
    """Number of training steps or pictures in all jobs."""
    unit: str
    flops: int = 0
    """Of all jobs."""
    peak: int = 0
    """Bytes of all tensors of one job at the moment when they are most."""
    disk: int = 0
    """Bytes of the files that all jobs write."""
    processor: float = 0.0
    """Seconds of one processor core for what is not a PyTorch network; of all jobs."""
    precision: str = ""
    """Of its networks, if the parameters set it (`Arithmetic`)."""
    note: str = ""
