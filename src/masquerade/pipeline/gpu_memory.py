"""Whether a training fits into the memory of this GPU, as the plan counts it. The check comes before the first step.

It cannot change what a training computes, so an edit here trains nothing again (`fingerprints.RECORDERS`). The count
runs in a forked process, because it leaves networks without values in the caches of modules.
"""

import logging
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from masquerade.core import process, rehearsal
from masquerade.core.errors import MasqueradeError
from masquerade.core.images import FaceArchive
from masquerade.networks.inputs import device
from masquerade.training.job import TrainingJob

logger = logging.getLogger(__name__)

OVERHEAD = 2**30
"""Bytes that CUDA and its libraries take beside the tensors, at least (docs/budget.md)."""
ANYWAY = "MASQUERADE_SMALL_GPU"
"""The environment variable that switches the check off."""
Train = Callable[[TrainingJob], object]


class GpuTooSmall(MasqueradeError):
    """A training needs more memory than the GPU has."""


def check(block: str, train: Train, job: TrainingJob) -> None:
    """Raises GpuTooSmall if ``train(job)`` needs more memory than this GPU has.

    ``block``: the training's block of the parameters, for the text. Does nothing without a GPU, in a rehearsal (which
    has small batches), or if the training cannot be counted. Several processes count an equal share of the memory each.
    """
    if device().type != "cuda" or rehearsal.on() or os.environ.get(ANYWAY):
        return
    own = process.current()
    gpu = torch.cuda.get_device_properties(own.local_rank % torch.cuda.device_count())
    need = counted(train, job) // own.count
    if need + OVERHEAD > gpu.total_memory:
        name = block.rpartition(".")[2]
        share = f" in each of {own.count} processes" * (own.count > 1)
        raise GpuTooSmall(
            f"The training of {name} needs {need / 2**30:.1f} GiB of GPU memory{share}, as `masquerade plan` counts "
            f"it, and {OVERHEAD / 2**30:g} GiB for CUDA. {gpu.name} has {gpu.total_memory / 2**30:.1f} GiB. Take a "
            f"larger GPU, or several that share the batch (params.yaml, compute.own.training/{name}; docs/cluster.md), "
            f"or lower the batch in {block}. {ANYWAY}=1 starts it all the same: the count is no measurement."
        )


def counted(train: Train, job: TrainingJob) -> int:
    """Bytes of all tensors of a training when they are most; 0, and a line in the log, if it cannot be counted."""
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    counting = context.Process(target=_count, args=(train, job, sender), daemon=True)
    counting.start()
    sender.close()
    try:
        answer = receiver.recv()
    except EOFError:
        answer = "the process that counts it has died"
    counting.join()
    if isinstance(answer, str):
        logger.info("the memory that %s needs is not counted: %s", job.checkpoint.stem, answer)
        return 0
    return answer


def _count(train: Train, job: TrainingJob, sender: Connection) -> None:
    """Send the peak of a training on a few drawn faces, or the reason why it cannot be counted."""
    from masquerade.pipeline.costs import pictures  # a job without a GPU does not import what draws faces
    from masquerade.pipeline.costs.meta import MetaExecution

    try:
        archive = FaceArchive(job.faces)
        side = archive.pictures(archive.select(job.people).iloc[:1]).shape[1]
        with tempfile.TemporaryDirectory(prefix="masquerade-") as place:
            faces, checkpoint = Path(place) / "faces.zip", Path(place) / job.checkpoint.name
            pictures.write(faces, side, 1)
            few = replace(
                job, faces=faces, checkpoint=checkpoint, state=Path(place) / "state.pt", log=lambda *_: None,
                picture=lambda *_: None, people="train",
            )  # fmt: skip
            with MetaExecution() as meta, meta.counted() as cost:
                train(few)
    except Exception as error:  # noqa: BLE001 - any code may fail on tensors without values, as in the plan
        sender.send(f"{type(error).__name__}: {error}")
    else:
        sender.send(cost.peak)
