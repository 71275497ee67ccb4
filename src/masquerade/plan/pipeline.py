"""The objects of the pipeline, made as its programs make them, but without numbers: what a plan counts on."""

import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from masquerade import discovery, params
from masquerade.images import FaceArchive
from masquerade.judges import Judge
from masquerade.methods import Method, Resources, TrainingJob
from masquerade.params import Parameters
from masquerade.plan.pretence import Bill, Pretence

logger = logging.getLogger(__name__)

LONGEST = 120  # characters of a reason


class Pipeline:
    """Jobs, methods and judges of ``parameters`` in a ``pretence``; ``place``: a folder for what passes as their files.

    ``archive``: the faces that they see. ``progress`` hears what is counted.
    """

    def __init__(self, parameters: Parameters, pretence: Pretence, place: Path, progress: Callable[[str], None]):
        self.parameters, self.pretence, self.place, self.progress = parameters, pretence, place, progress
        self.archive = place / "faces.zip"

    def path(self, name: str) -> Path:
        """Where the checkpoint of a backbone, ``method.<name>`` or ``method.<name>.<ablation>`` lies."""
        return self.place / f"{name}.safetensors"

    def size(self, checkpoint: Path, share: float = 1.0) -> int:
        """Bytes of a checkpoint, times ``share``; 0 where there is none."""
        return round(self.pretence.size(checkpoint) * share) if checkpoint.is_file() else 0

    def job(self, checkpoint: Path, needs: Iterable[str], base: Path | None = None, seed: int = 0) -> TrainingJob:
        return TrainingJob(
            faces=self.archive, backbones={name: self.path(name) for name in needs}, checkpoint=checkpoint,
            state=self.place / "state.pt", seed=seed, threads=1, log=lambda *_: None, picture=lambda *_: None,
            base=base if base is not None and base.is_file() else None,
        )  # fmt: skip

    def method(self, name: str, variant: str) -> Method:
        cls, block = discovery.load("methods", name), self.parameters.methods[name]
        altered = self.parameters.ablations(name).get(variant)
        knobs = params.trained_with(cls, block.params.model_dump(mode="json"), altered)
        resources = Resources(
            checkpoint=self.path(f"method.{name}.{variant}" if altered else f"method.{name}"),
            backbones={one: self.path(one) for one in cls.needs},
            gallery=FaceArchive(self.archive),
            fakes=self.path("fakes"),
            latents=self.path("latents"),
        )
        return cls(knobs, block.variants[variant], resources)

    def judge(self, name: str) -> Judge:
        cls = discovery.load("judges", name)
        return cls(self.parameters.judges[name], {one: self.path(one) for one in cls.needs})

    def counted(self, what: str, work: Callable[[], object]) -> tuple[Bill, str]:
        """What ``work`` costs; a bill of nothing, and why, where it cannot run without numbers or files."""
        self.progress(what)
        try:
            with self.pretence.counted() as bill:
                work()
        except Exception as error:  # noqa: BLE001 - anybody's code may fail on tensors without numbers: the row says so
            logger.debug("%s is not counted", what, exc_info=True)
            told = str(error).splitlines() or [type(error).__name__]
            return Bill(), f"not counted: {told[0].replace(str(self.place), '')[:LONGEST]}"
        return bill, ""


def ordered(names: Iterable[str], room: str) -> list[str]:
    """Names, those that others need before them."""
    found: list[str] = []
    wanted = list(names)

    def put(name: str) -> None:
        for needed in discovery.load(room, name).needs:
            put(needed)
        if name not in found:
            found.append(name)

    for name in wanted:
        put(name)
    return [name for name in found if name in wanted]
