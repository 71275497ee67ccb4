"""The training of a recognizer that knows the method: ArcFace from the weights of a clear recognizer.

The centers of the classes start at the mean embeddings of their people, so that a few steps suffice. See
docs/attackers.md.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.attackers import Recognizer as EmbeddingsOf
from masquerade.attackers._parameters import RecognitionParams
from masquerade.attackers.study import (
    AttackerTrainingSet,
    Distances,
    EmbeddingSet,
    Pairs,
    measure_distances,
    measure_separability,
)
from masquerade.backbones import load_backbone as loaded_backbone
from masquerade.backbones.recognition.training import EMBEDDING, Recognizer, augment
from masquerade.core import seeding
from masquerade.core.images import to_float
from masquerade.networks.inputs import apply_in_batches, fold_batch_norms
from masquerade.networks.ir_se import ArcMargin
from masquerade.training import checkpoints
from masquerade.training.optimizers import Optimizers, compute_warmup_cosine
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training

BETAS = (0.9, 0.999)
"""beta 1 and beta 2 of AdamW: the usual values."""
AT_ONCE = 32
"""Images that a recognizer embeds at a time."""


class Pictures(NamedTuple):
    """What a recognizer learns from: uint8 (N, H, W, 3), and the number of the person in each, int64 (N,)."""

    images: np.ndarray
    people: np.ndarray


class AttackTask:
    """ArcFace (Deng et al. 2019, Eq. 3) on the attackers' people, from the weights of a clear recognizer."""

    def __init__(self, recognizer: Recognizer, params: RecognitionParams, pictures: Pictures, seed: int):
        self.recognizer, self.params, self.seed = recognizer, params, seed
        self.device = next(recognizer.parameters()).device
        self.pictures, self.labels = torch.from_numpy(pictures.images), torch.from_numpy(pictures.people)
        self.head = ArcMargin(EMBEDDING, int(pictures.people.max()) + 1, params.scale, params.margin).to(self.device)
        self.head.weight.data.copy_(self._centers(pictures))
        self.modules = {"recognizer": recognizer.requires_grad_(True).train(), "head": self.head}
        rates = params.learning_rate, params.kernel_rate
        self.optimizers = {"all": Optimizers.with_kernels(self.modules, *rates, BETAS)}

    def _centers(self, pictures: Pictures) -> Tensor:
        """The mean embedding of each person, by the recognizer as it is now."""
        embeddings = torch.from_numpy(embedder(self.recognizer.eval())(to_float(pictures.images)))
        sums = torch.zeros(len(self.head.weight), EMBEDDING).index_add_(0, self.labels, embeddings)
        return functional.normalize(sums)

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the loss and the share of images whose person has the largest logit."""
        draw = seeding.make_generator(self.seed, "attack", step)
        torch.manual_seed(seeding.derive_seed(self.seed, "dropout", step))
        rows = torch.from_numpy(draw.integers(0, len(self.pictures), self.params.batch))
        images, labels = augment(self.pictures[rows], draw).to(self.device), self.labels[rows].to(self.device)
        logits = self.head(self.recognizer(images), labels)
        loss = functional.cross_entropy(logits, labels)
        self.optimizers["all"].descend(loss, compute_warmup_cosine(step, self.params.steps))
        return {"loss": loss.item(), "accuracy": (logits.argmax(1) == labels).float().mean().item()}


def embedder(network: nn.Module) -> EmbeddingsOf:
    """A network as a function of images float32 (N, 3, H, W) in [-1, 1] -> embeddings float32 (N, D)."""
    return lambda images: apply_in_batches(network, AT_ONCE, images).numpy()


def load_clear(backbone: str, checkpoint: Path) -> EmbeddingsOf:
    """The recognizer of a backbone that knows unprotected faces alone."""
    return embedder(fold_batch_norms(loaded_backbone(backbone, {backbone: checkpoint})))


def load_recognizer(checkpoint: Path) -> EmbeddingsOf:
    """The recognizer of a checkpoint that `train` wrote."""
    return load_clear(checkpoints.load_checkpoint(checkpoint)[1]["start"], checkpoint)


def train(
    name: str,
    params: RecognitionParams,
    pictures: Pictures,
    training_set: AttackerTrainingSet,
    linking: bool,
    job: TrainingJob,
) -> dict[str, float]:
    """Train, write the checkpoint, and return the figures on held-out people (see `Attacker.train`).

    ``before`` and ``after``: the separability under the condition of the attack. ``clear_before``, ``clear_after``: of
    unprotected images against unprotected ones. ``accuracy``: of the last batch, on people who were learned; missing if
    the training was stopped after its last step.
    """
    training = Training(job, params, name, training_set.digest)
    start = job.backbones[params.start]
    _, metadata = checkpoints.load_checkpoint(start)
    untrained = load_clear(params.start, start)
    recognizer = loaded_backbone(params.start, job.backbones)
    task = AttackTask(recognizer, params, pictures, training.seed)
    curve: dict[str, float] = {}

    def log(step: int, losses: Mapping[str, float]) -> None:
        curve.update(losses)
        job.log(step, losses)

    training.fit(task, params.steps, log=log)
    learned = embedder(recognizer.eval())
    figures = {
        "before": measure_separability(compare(untrained, training_set.held_out, linking)),
        "after": measure_separability(compare(learned, training_set.held_out, linking)),
        "clear_before": measure_separability(compare(untrained, _only_clear(training_set.held_out), True)),
        "clear_after": measure_separability(compare(learned, _only_clear(training_set.held_out), True)),
    }
    if "accuracy" in curve:
        figures["accuracy"] = curve["accuracy"]
    better = figures["after"] > figures["before"]
    network = recognizer.network if better else loaded_backbone(params.start, job.backbones).network
    training.save({"network": network}, {**metadata, "start": params.start, "learned": better})
    return {**figures, "learned": float(better)}


def compare(recognizer: EmbeddingsOf, pairs: Pairs, linking: bool) -> Distances:
    """The distances of anonymized images to the people of a gallery: anonymized (``linking``) or clear."""
    probes = EmbeddingSet(recognizer(to_float(pairs.anonymized)), pairs.people, pairs.ids)
    gallery = probes if linking else EmbeddingSet(recognizer(to_float(pairs.clear)), pairs.people, pairs.ids)
    return measure_distances(probes, gallery)


def _only_clear(pairs: Pairs) -> Pairs:
    return Pairs(pairs.clear, pairs.clear, pairs.people, pairs.ids)
