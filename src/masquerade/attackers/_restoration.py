"""The training of the network that undoes a method, and the search for the strength of a filter that does."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from masquerade.attackers._parameters import RestorationParams
from masquerade.attackers.study.lessons import SEARCHED, Lesson, Pairs
from masquerade.core import seeding
from masquerade.core.images import to_float
from masquerade.core.settings import NoParameters
from masquerade.judges.pixels import Pixels
from masquerade.networks.inputs import device, piecewise, place
from masquerade.networks.restorer import Restorer
from masquerade.training import checkpoints, loop
from masquerade.training.job import TrainingJob
from masquerade.training.optimisers import Optimisers, warmup_cosine_share

BETAS = (0.9, 0.999)
"""beta 1 and beta 2 of Adam: the usual values."""
Pictures = Callable[[np.ndarray], np.ndarray]
"""Pictures float32 (N, 3, H, W) in [-1, 1] -> pictures of the same shape."""
Strength = TypeVar("Strength")


class RestorationTask:
    """The mean absolute error of pixels, and of the differences of neighbouring pixels."""

    def __init__(self, network: Restorer, params: RestorationParams, pairs: Pairs, seed: int):
        self.network, self.params, self.seed = network, params, seed
        self.device = next(network.parameters()).device
        self.anonymized, self.clear = (torch.from_numpy(to_float(part)) for part in (pairs.anonymized, pairs.clear))
        self.modules = {"network": network.train()}
        self._optimisers = Optimisers.with_kernels(self.modules, params.learning_rate, params.kernel_rate, BETAS)
        self.optimisers = self._optimisers.named

    def step(self, step: int) -> dict[str, float]:
        """One update on pictures of which half are mirrored."""
        draw = seeding.generator(self.seed, "restoration", step)
        rows = torch.from_numpy(draw.integers(0, len(self.clear), self.params.batch))
        turned = torch.from_numpy(draw.random(len(rows)) < 0.5)[:, None, None, None]
        given, wanted = (
            torch.where(turned, part[rows].flip(-1), part[rows]).to(self.device)
            for part in (self.anonymized, self.clear)
        )
        made = self.network(given)
        pixels, edges = (made - wanted).abs().mean(), (_edges(made) - _edges(wanted)).abs().mean()
        self._optimisers.descend(pixels + self.params.edges * edges, warmup_cosine_share(step, self.params.steps))
        return {"pixels": pixels.item(), "edges": edges.item()}


def _edges(images: Tensor) -> Tensor:
    """The differences of neighbours across and down, (N, 6, H - 1, W - 1)."""
    across = images[..., 1:, 1:] - images[..., 1:, :-1]
    down = images[..., 1:, 1:] - images[..., :-1, 1:]
    return torch.cat([across, down], dim=1)


def train(params: RestorationParams, lesson: Lesson, job: TrainingJob) -> dict[str, float]:
    """Train, write the checkpoint, and return the figures on held-out people (see `Attacker.train`).

    ``before`` and ``after``: mean absolute error of the anonymized and of the restored pictures, in [0, 2].
    """
    torch.set_num_threads(job.threads)
    seed = seeding.derive(job.seed, "restoring")
    torch.manual_seed(seeding.derive(seed, "weights"))
    network = Restorer(params.widths).to(device())
    task = RestorationTask(network, params, lesson.learn, seed)
    fingerprint = json.dumps([params.model_dump(mode="json"), seed, lesson.digest])
    loop.fit(task, steps=params.steps, state=job.state, fingerprint=fingerprint, log=job.log)
    given, wanted = to_float(lesson.held_out.anonymized), to_float(lesson.held_out.clear)
    before, after = (float(np.abs(made - wanted).mean()) for made in (given, _function(network.eval())(given)))
    better = after < before
    start = Restorer(params.widths)
    facts = {"widths": list(params.widths), "learnt": better}
    checkpoints.save_checkpoint(job.checkpoint, {"network": network if better else start}, facts)
    return {"before": before, "after": after, "learnt": float(better)}


def loaded(checkpoint: Path) -> Pictures:
    """The network of a checkpoint that `train` wrote."""
    tensors, facts = checkpoints.load_checkpoint(checkpoint)
    network = Restorer(facts["widths"])
    checkpoints.load_into(network, tensors["network"], checkpoint)
    return _function(place(network.eval().requires_grad_(False)))


def _function(network: Restorer) -> Pictures:
    def restore(part: np.ndarray) -> dict[str, np.ndarray]:
        return {"images": network(torch.from_numpy(part).to(device())).cpu().numpy()}

    return lambda images: piecewise(restore, images)["images"]


def strongest(
    lesson: Lesson, strengths: Iterable[Strength], restore: Callable[[np.ndarray, Strength], np.ndarray]
) -> Strength:
    """The strength whose results are most like the clear pictures, by the mean SSIM of `SEARCHED` pictures.

    ``restore``: pictures float32 (N, 3, H, W) in [-1, 1] and a strength -> pictures of the same shape.
    """
    given, wanted = (to_float(part[:SEARCHED]) for part in (lesson.learn.anonymized, lesson.learn.clear))
    pixels = Pixels(NoParameters(), {})
    return max(strengths, key=lambda strength: pixels.measure(restore(given, strength), wanted)["ssim"].mean())
