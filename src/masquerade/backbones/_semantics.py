"""CLIP (Radford et al. 2021) as open_clip builds it, what it reads, and its contrastive training on captions."""

import json
import logging
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade import seeding, training
from masquerade._torchvision import ensure
from masquerade.errors import ArchiveError, CheckpointError, ParameterError
from masquerade.images import FaceArchive, to_uint8
from masquerade.methods import TrainingJob

if TYPE_CHECKING:
    from masquerade.backbones.semantics import Semantics

logger = logging.getLogger(__name__)

OURS = {"mean": [0.5] * 3, "std": [0.5] * 3}
"""Of networks trained here: the picture in [0, 1], brought back to [-1, 1]."""
CLIPS = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
"""Of CLIP's published weights, and of FaRL's (both in their own code): of pictures in [0, 1]."""
CLIP_VOCABULARY = 49408
_LARGEST_SCALE = 100.0  # Radford et al. 2021, section 2.5


class SemanticEncoder(nn.Module):
    """CLIP behind the image contract: pictures (N, 3, H, W) in [-1, 1], any size, and sentences, to features.

    ``network`` has open_clip's keys; ``facts`` are those of its checkpoint: its architecture, the mean and the standard
    deviation of its pictures in [0, 1], and its vocabulary. Everything is differentiable in the pictures.
    """

    def __init__(self, network: nn.Module, facts: Mapping):
        super().__init__()
        self.network, self.facts, self.image_size = network, dict(facts), facts["image_size"]
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(facts[name]).view(1, 3, 1, 1), persistent=False)
        self.tokenizer = tokenizer(facts["text"]) if facts["text"] else None

    def prepared(self, images: Tensor) -> Tensor:
        """What the network receives: (N, 3, image_size, image_size), resized (bilinear, antialiased), normalised."""
        if images.shape[-2:] != (self.image_size,) * 2:
            images = functional.interpolate(
                images, size=(self.image_size,) * 2, mode="bilinear", align_corners=False, antialias=True
            )
        return (images * 0.5 + 0.5 - self.mean) / self.std

    def both(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """`cls` and `tokens` in one pass."""
        seen = self._visual(images)
        return seen["image_features"], _sequence(seen)

    def cls(self, images: Tensor) -> Tensor:
        """(N, D): the class token, normed and projected, NOT of unit length (FALCO pairs by Euclidean distance)."""
        return self.network.visual(self.prepared(images))

    def tokens(self, images: Tensor) -> Tensor:
        """(N, 1 + P, W): the transformer's output, class token first, then the patches row by row.

        Before the last norm and the projection, as FALCO's published code takes them for its Eq. 3.
        """
        return _sequence(self._visual(images, intermediates_only=True))

    def _visual(self, images: Tensor, **options: bool) -> dict[str, list[Tensor] | Tensor]:
        return self.network.visual.forward_intermediates(
            self.prepared(images), indices=1, output_fmt="NLC", output_extra_tokens=True, **options
        )

    def text(self, sentences: list[str]) -> Tensor:
        """(M, D) features of length 1. Raises CheckpointError where the weights are of the image encoder alone."""
        if self.tokenizer is None:
            raise CheckpointError(
                "This text-image model holds the image encoder only (its published file had no text encoder), so it "
                "cannot read sentences. Adopt CLIP's own weights, or train one here (params.yaml, backbones.semantics)."
            )
        return functional.normalize(self.network.encode_text(self.tokenizer(sentences).to(self.mean.device)), dim=-1)


class ImageEncoder(nn.Module):
    """The visual side of CLIP alone, under the same keys."""

    def __init__(self, visual: nn.Module):
        super().__init__()
        self.visual = visual


def _sequence(seen: Mapping) -> Tensor:
    return torch.cat([seen["image_intermediates_prefix"][-1], seen["image_intermediates"][-1]], 1)


class Words:
    """A tokenizer of few words: 0 padding, 1 any unknown word, then the words, then start and end (the largest: CLIP
    reads a sentence off at its largest token). Case and punctuation are left out.
    """

    def __init__(self, words: list[str], context: int):
        self.places = {word: place for place, word in enumerate(words, 2)}
        self.start, self.end, self.context = len(words) + 2, len(words) + 3, context

    def __call__(self, sentences: list[str]) -> Tensor:
        """int64 (M, context). Logs the words that it does not know."""
        rows = torch.zeros(len(sentences), self.context, dtype=torch.long)
        unknown = set()
        for row, sentence in zip(rows, sentences, strict=True):
            found = words_of(sentence)
            unknown |= {word for word in found if word not in self.places}
            places = [self.places.get(word, 1) for word in found][: self.context - 2]
            row[: len(places) + 2] = torch.tensor([self.start, *places, self.end])
        if unknown:
            logger.warning("no training caption holds the words %s: their meaning is lost", ", ".join(sorted(unknown)))
        return rows


def words_of(sentence: str) -> list[str]:
    """Its words in lower case, hyphens within: 'A chin-length cut.' -> a, chin-length, cut."""
    return re.findall(r"[^\W_]+(?:[-'][^\W_]+)*", sentence.lower())


def tokenizer(text: Mapping):
    """What turns a list of sentences into int64 (M, context), by the facts of the text encoder."""
    if text["vocabulary"] == "clip":
        ensure()
        from open_clip.tokenizer import SimpleTokenizer

        return SimpleTokenizer(context_length=text["context"])
    return Words(text["words"], text["context"])


def architecture(params: "Semantics.Params", words: Iterable[str] = ()) -> dict[str, object]:
    """The facts of a checkpoint that `build` needs. Raises ParameterError where the sizes do not divide."""
    for whole, part, what in (
        (params.image_size, params.patch, "image_size by patch"),
        (params.width, params.heads, "width by heads"),
        (params.text.width, params.text.heads, "text.width by text.heads"),
    ):
        if whole % part:
            raise ParameterError(f"backbones.semantics: {what} must divide without rest; {whole} / {part} does not.")
    knobs = ("image_size", "patch", "width", "layers", "heads", "embedding", "activation")
    text = params.text.model_dump(mode="json") | (
        {"words": list(words)} if params.text.vocabulary == "captions" else {}
    )
    return {**{knob: getattr(params, knob) for knob in knobs}, "text": text}


def build(facts: Mapping, temperature: float = 0.07) -> nn.Module:
    """open_clip's CLIP of these facts, with random weights; without its text side where ``facts['text']`` is None."""
    ensure()
    from open_clip.model import CLIP

    text = facts["text"] or {"vocabulary": "captions", "words": [], "context": 4, "width": 1, "layers": 1, "heads": 1}
    network = CLIP(
        facts["embedding"],
        {
            "image_size": facts["image_size"],
            "patch_size": facts["patch"],
            "width": facts["width"],
            "layers": facts["layers"],
            "head_width": facts["width"] // facts["heads"],
        },
        {
            "context_length": text["context"],
            "vocab_size": CLIP_VOCABULARY if text["vocabulary"] == "clip" else len(text["words"]) + 4,
            "width": text["width"],
            "layers": text["layers"],
            "heads": text["heads"],
        },
        quick_gelu=facts["activation"] == "quick_gelu",
        init_logit_scale=math.log(1 / temperature),
    )
    return network if facts["text"] else ImageEncoder(network.visual)


def contrastive_loss(images: Tensor, sentences: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Symmetric cross entropy of N pictures against N sentences, and the logits (N, N); features (N, D) of any length.

    Radford et al. 2021, Figure 3: logits = scale * cosines; the diagonal is right, by rows and by columns.
    """
    logits = scale * functional.normalize(images, dim=-1) @ functional.normalize(sentences, dim=-1).T
    right = torch.arange(len(logits), device=logits.device)
    return (functional.cross_entropy(logits, right) + functional.cross_entropy(logits.T, right)) / 2, logits


class ContrastiveTask:
    """Pictures and their captions, told apart within a batch (Radford et al. 2021, section 2.3)."""

    def __init__(self, encoder: SemanticEncoder, params: "Semantics.Params", pictures: np.ndarray, captions: list[str],
                 seed: int):  # fmt: skip
        self.encoder, self.params, self.seed = encoder, params, seed
        self.device = encoder.mean.device
        self.pictures = torch.from_numpy(pictures)
        self.sentences = encoder.tokenizer(captions)
        self.mirrored_sentences = encoder.tokenizer([mirrored(caption) for caption in captions])
        network = encoder.network.train()
        self.modules = {"clip": network}
        weights = [weight for weight in network.parameters() if weight.ndim > 1]
        others = [weight for weight in network.parameters() if weight.ndim <= 1]  # gains, biases, the temperature
        self.optimisers = {
            "all": torch.optim.AdamW(
                [{"params": weights, "weight_decay": params.weight_decay}, {"params": others, "weight_decay": 0.0}],
                lr=params.learning_rate,
                betas=params.betas,
                eps=params.epsilon,
            )  # fmt: skip
        }

    def step(self, step: int) -> dict[str, float]:
        rate = self._rate(step)
        for group in self.optimisers["all"].param_groups:
            group["lr"] = rate
        draw = seeding.generator(self.seed, "semantics", step)
        chosen = torch.from_numpy(draw.permutation(len(self.pictures))[: self.params.batch])
        turned = torch.from_numpy(draw.random(len(chosen)) < 0.5)
        images = augmented(self.pictures[chosen], turned, draw).to(self.device)
        ids = torch.where(turned[:, None], self.mirrored_sentences[chosen], self.sentences[chosen]).to(self.device)
        network = self.encoder.network
        features = network.visual(self.encoder.prepared(images))
        loss, logits = contrastive_loss(features, network.encode_text(ids), network.logit_scale.exp())
        self.optimisers["all"].zero_grad(set_to_none=True)
        loss.backward()
        self.optimisers["all"].step()
        with torch.no_grad():
            network.logit_scale.clamp_(max=math.log(_LARGEST_SCALE))
        right = (logits.argmax(1) == torch.arange(len(logits), device=self.device)).float().mean()
        return {
            "loss": loss.item(),
            "accuracy": right.item(),
            "temperature": math.exp(-network.logit_scale.item()),
            "learning_rate": rate,
        }

    def _rate(self, step: int) -> float:
        if step < self.params.warmup:
            return self.params.learning_rate * (step + 1) / self.params.warmup
        place = (step + 1 - self.params.warmup) / max(1, self.params.steps - self.params.warmup)
        return self.params.learning_rate * 0.5 * (1 + math.cos(math.pi * place))


def mirrored(caption: str) -> str:
    """The caption of the mirrored picture: left and right change places."""
    other = {"left": "right", "right": "left"}
    return re.sub(r"\b(left|right)\b", lambda found: other[found[0]], caption)


def augmented(pictures: Tensor, turned: Tensor, draw: np.random.Generator) -> Tensor:
    """uint8 (N, H, W, 3) -> float (N, 3, H, W) in [-1, 1]: mirrored where ``turned``, all shifted by up to 6 %."""
    images = pictures.permute(0, 3, 1, 2).float() / 127.5 - 1.0
    images = torch.where(turned[:, None, None, None], images.flip(-1), images)
    size = images.shape[-1]
    reach = max(1, round(0.06 * size))
    across, down = (int(value) for value in draw.integers(-reach, reach + 1, 2))
    images = functional.pad(images, (reach,) * 4, mode="replicate")
    return images[..., reach + down : reach + down + size, reach + across : reach + across + size]


def train(params: "Semantics.Params", job: TrainingJob) -> None:
    """Train on the pictures and captions of the train split and write the checkpoint."""
    torch.set_num_threads(job.threads)
    archive = FaceArchive(job.faces)
    rows = archive.select("train")
    captions = captions_of(archive, rows)
    if len(rows) < 2:
        raise ArchiveError(f"{job.faces} has {len(rows)} usable training pictures; a contrast needs 2.")
    logger.info("training on %d pictures with %d different captions", len(rows), len(set(captions)))
    pictures = np.concatenate([to_uint8(part.images) for part in archive.batches(64, rows=rows)])
    facts = architecture(params, sorted({word for caption in captions for word in words_of(caption)})) | OURS
    seed = seeding.derive(job.seed, "semantics")
    torch.manual_seed(seeding.derive(seed, "weights"))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoder = SemanticEncoder(build(facts, params.temperature), facts).to(device)
    encoder.network.set_grad_checkpointing(device.type == "cuda")  # a large batch is worth more than its time
    task = ContrastiveTask(encoder, params, pictures, captions, seed)
    fingerprint = json.dumps([params.model_dump(mode="json"), facts, seed, archive.facts["checksum"]])
    training.fit(task, steps=params.steps, state=job.state, fingerprint=fingerprint, log=job.log)
    training.save_checkpoint(job.checkpoint, {"clip": encoder.network}, facts)
    training.finish(job.state)


def captions_of(archive: FaceArchive, rows) -> list[str]:
    """The column ``caption``. Raises ArchiveError where the faces have none."""
    if "caption" not in rows or rows["caption"].isna().any():
        raise ArchiveError(f"{archive.path}: a text-image model needs a caption of every picture; there is none.")
    return rows["caption"].tolist()


def load(checkpoint: Path) -> SemanticEncoder:
    """The encoder of a checkpoint, frozen. Raises CheckpointError where it does not fit."""
    tensors, facts = training.load_checkpoint(checkpoint)
    try:
        encoder = SemanticEncoder(build(facts), facts)
        training.load_into(encoder.network, tensors["clip"], checkpoint)
    except (KeyError, TypeError) as error:
        raise CheckpointError(
            f"{checkpoint} is not a checkpoint of this backbone: it does not state its {error}."
        ) from error
    return encoder.eval().requires_grad_(False)
