"""Contrastive training of a CLIP on faces and their captions."""

import logging
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.semantics import SemanticsSettings
from masquerade.backbones.semantics.network import (
    CLIPS,
    OURS,
    SemanticEncoder,
    build,
    describe_architecture,
    encode_sentences,
    read_captions,
    split_words,
)
from masquerade.core.errors import ArchiveError, CheckpointError, ParameterError
from masquerade.networks import inputs
from masquerade.training import checkpoints, weight_files
from masquerade.training.batches import BatchTask, mirror, move, to_images
from masquerade.training.optimizers import AdamOptions, Optimizers
from masquerade.training.settings import TrainingJob
from masquerade.training.training import Training

logger = logging.getLogger(__name__)

_LARGEST_SCALE = 100.0  # Radford et al. 2021, section 2.5
SPARED = ("embedding", "read")
"""Weights that Muon does not train: tables of words and positions, and the linear layer of WordLosses."""


def compute_contrastive_loss(images: Tensor, sentences: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """(symmetric cross entropy of N images and N sentences, logits (N, N)), of features (N, D) of any length.

    Radford et al. 2021, Figure 3: logits = scale * cosines; the right pairs are on the diagonal.
    """
    logits = scale * functional.normalize(images, dim=-1) @ functional.normalize(sentences, dim=-1).T
    right = torch.arange(len(logits), device=logits.device)
    return (functional.cross_entropy(logits, right) + functional.cross_entropy(logits.T, right)) / 2, logits


class ContrastiveTask(BatchTask):
    """Contrastive training: a batch of images is matched with its captions (Radford et al. 2021, section 2.3)."""

    stream = "semantics"

    def __init__(
        self,
        encoder: SemanticEncoder,
        params: SemanticsSettings,
        pictures: np.ndarray,
        captions: list[str],
        identities: np.ndarray,
        seed: int,
    ):
        self.encoder, self.identities = encoder, identities
        self.captions = (captions, [mirror_caption(caption) for caption in captions])
        assert encoder.tokenizer is not None
        self.sentences = torch.stack([encoder.tokenizer(part) for part in self.captions])  # (2, M, context)
        modules: dict[str, nn.Module] = {"clip": encoder.network}
        if params.small_scale.word_weight:
            words = list_words(captions)
            self.words = encoder.tokenizer(words).to(encoder.mean.device)
            self.holds = torch.stack([mark_words(part, words) for part in self.captions])  # (2, M, V)
            numbers = encoder.metadata["width"] * (encoder.image_size // encoder.metadata["patch"]) ** 2
            modules["words"] = WordLosses(self.holds[0].mean(0), numbers).to(encoder.mean.device)
        super().__init__(modules, params, pictures, np.arange(len(pictures)), seed)

    def build_optimizers(self) -> Optimizers:
        rates = self.params.learning_rate, self.params.small_scale.kernel_rate
        adam = AdamOptions(self.params.weight_decay, self.params.epsilon)
        return Optimizers.with_kernels(self.modules, *rates, self.params.betas, (2, 4), spared=SPARED, adam=adam)

    def step(self, step: int) -> dict[str, float]:
        curves, scale = super().step(step), self.encoder.network.logit_scale
        with torch.no_grad():
            scale.clamp_(max=math.log(_LARGEST_SCALE))
        return curves | {"temperature": math.exp(-scale.item())}

    def losses(self, draw: np.random.Generator, pictures: Tensor, targets: Tensor) -> dict[str, Tensor]:
        """``targets``: the numbers of the images, (N,)."""
        network = self.encoder.network
        is_mirrored = torch.from_numpy(draw.random(len(targets)) < 0.5)
        features, tokens = self.encoder.both(augment(pictures, is_mirrored, draw).to(self.device))
        sentences = encode_sentences(network, self.sentences[is_mirrored.long(), targets].to(self.device))
        loss, logits = compute_contrastive_loss(features, sentences, network.logit_scale.exp())
        right = logits.argmax(1) == torch.arange(len(logits), device=self.device)
        losses = {"contrast": loss, "loss": loss, "accuracy": right.float().mean()}
        if self.params.small_scale.word_weight:
            patches = network.visual.ln_post(tokens[:, 1:])
            holds = self.holds[is_mirrored.long(), targets].to(self.device)
            losses["words"] = self.modules["words"](features, patches, encode_sentences(network, self.words), holds)
            losses["loss"] = loss + self.params.small_scale.word_weight * losses["words"]
        return losses

    def draw_rows(self, draw: np.random.Generator) -> np.ndarray:
        """Rows of a batch: random images, or ``per_person`` of each person in a random order, then all the others."""
        order = draw.permutation(len(self.pictures))
        if self.params.small_scale.per_person:
            # people are numbered by their first image in the order
            people = pd.Series(pd.factorize(self.identities[order])[0])
            surplus = people.groupby(people).cumcount() >= self.params.small_scale.per_person
            order = order[np.lexsort((people, surplus))]
        return order[: self.params.batch]

    def compute_share(self, step: int) -> float:
        if step < self.params.warmup:
            return (step + 1) / self.params.warmup
        place = (step + 1 - self.params.warmup) / max(1, self.params.steps - self.params.warmup)
        return 0.5 * (1 + math.cos(math.pi * place))


class WordLosses(nn.Module):
    """Two losses that predict the words of the caption from the image. They teach a small network details.

    The first compares the class feature with the text feature of each word (the sigmoid loss of Zhai et al. 2023, with
    words instead of sentences). The second predicts the words from the patches by a linear layer, because a patch shows
    the same part of every aligned face. Both start at the share of captions that hold a word. They are not saved in the
    checkpoint.
    """

    def __init__(self, shares: Tensor, numbers: int):
        super().__init__()
        usual = torch.logit(shares.clamp(0.01, 0.99))
        self.log_scale, self.bias = nn.Parameter(torch.tensor(math.log(10.0))), nn.Parameter(usual.clone())
        self.read = nn.Linear(numbers, len(shares))
        nn.init.zeros_(self.read.weight)
        self.read.bias.data.copy_(usual)

    def forward(self, features: Tensor, patches: Tensor, words: Tensor, holds: Tensor) -> Tensor:
        """``features`` (N, D), ``patches`` (N, P, W), ``words`` (V, D), ``holds`` (N, V) of 0 and 1 -> their sum."""
        cosines = functional.normalize(features, dim=-1) @ functional.normalize(words, dim=-1).T
        logits = torch.stack([self.log_scale.exp() * cosines + self.bias, self.read(patches.flatten(1))])
        return functional.binary_cross_entropy_with_logits(logits, holds.expand_as(logits), reduction="sum") / len(
            holds
        )


def mirror_caption(caption: str) -> str:
    """The caption of the mirrored image: left and right change places."""
    other = {"left": "right", "right": "left"}
    return re.sub(r"\b(left|right)\b", lambda match: other[match[0]], caption)


def list_words(captions: list[str]) -> list[str]:
    """The words of the captions, sorted."""
    return sorted({word for caption in captions for word in split_words(caption)})


def mark_words(captions: list[str], words: list[str]) -> Tensor:
    """float (N, V): 1 where a caption holds a word."""
    word_sets = [set(split_words(caption)) for caption in captions]
    return torch.tensor([[float(word in word_set) for word in words] for word_set in word_sets])


def augment(pictures: Tensor, turned: Tensor, draw: np.random.Generator) -> Tensor:
    """uint8 (N, H, W, 3) -> float (N, 3, H, W) in [-1, 1]: mirrored if ``turned``, all shifted by up to 2 %."""
    return move(mirror(to_images(pictures), turned), draw, 0.02)


@torch.no_grad()
def initialize(visual: Any, position_std: float, attention_gain: float) -> None:
    """Initialize the position and class embeddings, and scale the weights of queries and keys.

    With large weights every head attends to a position of its own from the first step on, not to all positions alike.
    """
    visual.positional_embedding.normal_(std=position_std)
    visual.class_embedding.normal_(std=position_std)
    for block in visual.transformer.resblocks:
        block.attn.in_proj_weight[: -visual.transformer.width].mul_(attention_gain)  # rows: queries, keys, values


def train(params: SemanticsSettings, job: TrainingJob) -> None:
    """Train on the images and captions of the job's people and write the checkpoint."""
    training = Training(job, params, "semantics")
    archive = training.archive
    rows = archive.select(job.people)
    captions = read_captions(archive, rows)
    if len(rows) < 2:
        raise ArchiveError(
            f"{job.faces} has {len(rows)} usable training images; the loss needs 2. Train on more faces."
        )
    logger.info("training on %d images with %d different captions", len(rows), len(set(captions)))
    metadata = describe_architecture(params, list_words(captions)) | OURS
    training.start()
    encoder = inputs.place(SemanticEncoder(build(metadata, params.temperature), metadata))
    initialize(encoder.network.visual, params.small_scale.position_std, params.small_scale.attention_gain)
    # a large batch is worth the extra time
    encoder.network.set_grad_checkpointing(inputs.device().type == "cuda")
    people = rows["identity"].to_numpy()
    task = ContrastiveTask(encoder, params, archive.pictures(rows), captions, people, training.seed)
    training.fit(task, params.steps, None, metadata)
    training.save({"clip": encoder.network}, metadata)


FARL_HEADS = ("visual.lm_transformer.", "visual.ln_lm.", "visual.lm_head.", "visual.mask_token")
"""First letters of the tensors of FaRL's masked image modeling (farl/network/farl/model.py), which are not used."""
NUMBERS = ("input_resolution", "context_length", "vocab_size")
"""The entries of OpenAI's state dict that are not weights."""


def convert_official(params: SemanticsSettings, published: Path, job: TrainingJob) -> None:
    """Write the checkpoint of the job from a file of FaRL, CLIP or OpenCLIP with the architecture of ``params``.

    A file without a text encoder gives an image encoder only. Raises CheckpointError naming tensors that are missing,
    left over, of another shape, or with NaN or infinity. Raises ParameterError if the vocabulary is not CLIP's.
    """
    if params.text.vocabulary != "clip":
        raise ParameterError(
            "backbones.semantics: published weights use CLIP's byte pairs; set text.vocabulary to clip, or published "
            "to '' to train a network on the words of the captions."
        )
    weights = select_clip_tensors(weight_files.read(published), published)
    metadata = describe_architecture(params) | CLIPS
    if all(key.startswith("visual.") or key == "logit_scale" for key in weights):
        logger.warning("%s holds no text encoder: the network cannot encode sentences", published)
        metadata["text"] = None
        weights.pop("logit_scale", None)
    network = weight_files.load(build(metadata), weights, published)
    checkpoints.save_checkpoint(job.checkpoint, {"clip": network}, metadata)


def select_clip_tensors(content: Any, path: Path) -> dict[str, Tensor]:
    """CLIP's tensors of a state dict, which may be under the key ``state_dict``, by name as float32.

    `FARL_HEADS` and `NUMBERS` are left out, and the prefix ``module.`` of a parallel training is removed.
    """
    state = content.get("state_dict", content) if isinstance(content, Mapping) else {}
    weights = {
        key: value
        for key, value in ((str(key).removeprefix("module."), value) for key, value in state.items())
        if not key.startswith(FARL_HEADS) and key not in NUMBERS
    }
    if not any(key.startswith("visual.") for key in weights) or not all(map(torch.is_tensor, weights.values())):
        raise CheckpointError(
            f"{path} is no CLIP: it should hold tensors named visual.conv1.weight and so on, at the top or under "
            "'state_dict'. Download it again."
        )
    return {key: value.float() for key, value in weights.items()}
