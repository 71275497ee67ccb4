"""The training of the network that undoes a method, and the search for the strength of a filter that does."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from masquerade.attackers._parameters import RestorationParams
from masquerade.attackers.study import SEARCHED, AttackerTrainingSet, Pairs
from masquerade.core import seeding
from masquerade.core.images import to_float
from masquerade.core.settings import NoParameters
from masquerade.judges.pixels import Pixels
from masquerade.networks.inputs import AT_ONCE, apply_in_batches, place
from masquerade.networks.restorer import Restorer
from masquerade.training.checkpoints import Saved
from masquerade.training.optimizers import Optimizers, compute_warmup_cosine
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training

BETAS = (0.9, 0.999)
"""beta 1 and beta 2 of Adam: the usual values."""
Pictures = Callable[[np.ndarray], np.ndarray]
"""Images float32 (N, 3, H, W) in [-1, 1] -> images of the same shape."""
Strength = TypeVar("Strength")


class RestorationTask:
    """The mean absolute error of pixels, and of the differences of neighboring pixels."""

    def __init__(self, network: Restorer, params: RestorationParams, pairs: Pairs, seed: int):
        self.network, self.params, self.seed = network, params, seed
        self.device = next(network.parameters()).device
        self.anonymized, self.clear = (torch.from_numpy(to_float(part)) for part in (pairs.anonymized, pairs.clear))
        self.modules = {"network": network.train()}
        rates = params.learning_rate, params.kernel_rate
        self.optimizers = {"all": Optimizers.with_kernels(self.modules, *rates, BETAS)}

    def step(self, step: int) -> dict[str, float]:
        """One update on images of which half are mirrored."""
        draw = seeding.make_generator(self.seed, "restoration", step)
        rows = torch.from_numpy(draw.integers(0, len(self.clear), self.params.batch))
        mirrored = torch.from_numpy(draw.random(len(rows)) < 0.5)[:, None, None, None]
        anonymized, clear = (
            torch.where(mirrored, part[rows].flip(-1), part[rows]).to(self.device)
            for part in (self.anonymized, self.clear)
        )
        restored = self.network(anonymized)
        pixels, edges = (restored - clear).abs().mean(), (_edges(restored) - _edges(clear)).abs().mean()
        self.optimizers["all"].descend(
            pixels + self.params.edges * edges, compute_warmup_cosine(step, self.params.steps)
        )
        return {"pixels": pixels.item(), "edges": edges.item()}


def _edges(images: Tensor) -> Tensor:
    """The differences of neighbors across and down, (N, 6, H - 1, W - 1)."""
    across = images[..., 1:, 1:] - images[..., 1:, :-1]
    down = images[..., 1:, 1:] - images[..., :-1, 1:]
    return torch.cat([across, down], dim=1)


def train(params: RestorationParams, training_set: AttackerTrainingSet, job: TrainingJob) -> dict[str, float]:
    """Train, write the checkpoint, and return the figures on held-out people (see `Attacker.train`).

    ``before`` and ``after``: mean absolute error of the anonymized and of the restored images, in [0, 2].
    """
    training = Training(job, params, "restoring", training_set.digest)
    training.start()
    network = place(Restorer(params.widths))
    training.fit(RestorationTask(network, params, training_set.learn, training.seed), params.steps)
    anonymized, clear = to_float(training_set.held_out.anonymized), to_float(training_set.held_out.clear)
    before, after = (
        float(np.abs(restored - clear).mean()) for restored in (anonymized, make_restorer(network.eval())(anonymized))
    )
    better = after < before
    saved = network if better else Restorer(params.widths)
    training.save({"network": saved}, {"widths": list(params.widths), "learned": better})
    return {"before": before, "after": after, "learned": float(better)}


def load_restorer(checkpoint: Path) -> Pictures:
    """The network of a checkpoint that `train` wrote."""
    saved = Saved(checkpoint)
    return make_restorer(place(saved.frozen("network", Restorer(saved.metadata["widths"]))))


def make_restorer(network: Restorer) -> Pictures:
    return lambda images: apply_in_batches(network, AT_ONCE, images).numpy()


def find_strength(
    training_set: AttackerTrainingSet,
    strengths: Iterable[Strength],
    restore: Callable[[np.ndarray, Strength], np.ndarray],
) -> Strength:
    """The strength whose results are most like the unprotected images, by the mean SSIM of `SEARCHED` images.

    ``restore``: images float32 (N, 3, H, W) in [-1, 1] and a strength -> images of the same shape.
    """
    anonymized, clear = (
        to_float(part[:SEARCHED]) for part in (training_set.learn.anonymized, training_set.learn.clear)
    )
    pixels = Pixels(NoParameters(), {})
    return max(strengths, key=lambda strength: pixels.measure(restore(anonymized, strength), clear)["ssim"].mean())
