"""CLIP (Radford et al. 2021) as open_clip builds it, with the image contract as its input, and its tokenizers."""

import logging
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from masquerade.backbones.semantics import SemanticsSettings
from masquerade.core.errors import ArchiveError, CheckpointError, ParameterError, suggest_nearest
from masquerade.core.images import FaceArchive
from masquerade.networks import deterministic, torchvision_internals
from masquerade.training.checkpoints import Saved

logger = logging.getLogger(__name__)

OURS = {"mean": [0.5] * 3, "std": [0.5] * 3}
"""Normalization of networks trained here: from [0, 1] to [-1, 1]."""
CLIPS = {"mean": [0.48145466, 0.4578275, 0.40821073], "std": [0.26862954, 0.26130258, 0.27577711]}
"""Normalization of images in [0, 1] for the published weights of CLIP and FaRL, from the code of each."""
CLIP_VOCABULARY = 49408


class SemanticEncoder(nn.Module):
    """CLIP: from images (N, 3, H, W) in [-1, 1], any size, and from sentences to features.

    ``network`` has open_clip's keys. ``metadata`` is that of its checkpoint: the architecture, the mean and the
    standard deviation of images in [0, 1], and the vocabulary. All features are differentiable in the images.
    """

    network: Any
    """open_clip's model, which has no types of its own."""
    mean: Tensor
    std: Tensor

    def __init__(self, network: nn.Module, metadata: Mapping):
        super().__init__()
        self.network, self.metadata, self.image_size = network, dict(metadata), metadata["image_size"]
        for name in ("mean", "std"):
            self.register_buffer(name, torch.tensor(metadata[name]).view(1, 3, 1, 1), persistent=False)
        self.tokenizer = build_tokenizer(metadata["text"]) if metadata["text"] else None

    def prepared(self, images: Tensor) -> Tensor:
        """The network's input: (N, 3, image_size, image_size), resized (bilinear, antialiased), normalized."""
        images = deterministic.resize(images, (self.image_size,) * 2)
        return (images * 0.5 + 0.5 - self.mean) / self.std

    def both(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """`cls` and `tokens` in one pass."""
        outputs = self._visual(images)
        return outputs["image_features"], _join_tokens(outputs)

    def cls(self, images: Tensor) -> Tensor:
        """(N, D): the class token, normed and projected, NOT of unit length (FALCO pairs by Euclidean distance)."""
        return self.network.visual(self.prepared(images))

    def tokens(self, images: Tensor) -> Tensor:
        """(N, 1 + P, W): the transformer's output, class token first, then the patches row by row.

        Before the last norm and the projection, as FALCO's published code takes them for its Eq. 3.
        """
        return _join_tokens(self._visual(images, intermediates_only=True))

    def _visual(self, images: Tensor, **options: bool) -> dict[str, Any]:
        return self.network.visual.forward_intermediates(
            self.prepared(images), indices=1, output_fmt="NLC", output_extra_tokens=True, **options
        )

    def text(self, sentences: list[str]) -> Tensor:
        """(M, D) features of length 1. Raises CheckpointError if there is only the image encoder."""
        if self.tokenizer is None:
            raise CheckpointError(
                "This text-image model holds the image encoder only (its published file had no text encoder), so it "
                "cannot encode sentences. Adopt CLIP's weights, or train one here (params.yaml, backbones.semantics)."
            )
        ids = self.tokenizer(sentences).to(self.mean.device)
        return functional.normalize(encode_sentences(self.network, ids), dim=-1)


def encode_sentences(network: Any, ids: Tensor) -> Tensor:
    """(M, context) -> (M, D): open_clip's ``encode_text``, at the length of the longest sentence.

    A position attends only to earlier ones, and the feature is taken at the end of the sentence. So the padding has no
    effect and is cut off.
    """
    ids = ids[:, : int((ids != 0).sum(1).max())]
    length = ids.shape[1]
    tokens = network.token_embedding(ids) + network.positional_embedding[:length]
    tokens = network.transformer(tokens, attn_mask=network.attn_mask[:length, :length])
    ends = network.ln_final(tokens)[torch.arange(len(ids), device=ids.device), ids.argmax(1)]
    return ends @ network.text_projection


class ImageEncoder(nn.Module):
    """The image encoder of CLIP alone, under the same keys."""

    def __init__(self, visual: nn.Module):
        super().__init__()
        self.visual = visual


def _join_tokens(outputs: Mapping) -> Tensor:
    """(N, 1 + P, W): the class token and the patches."""
    return torch.cat([outputs["image_intermediates_prefix"][-1], outputs["image_intermediates"][-1]], 1)


class Words:
    """A tokenizer with few words: 0 padding, 1 any unknown word, then the words, then start and end.

    The end is the largest token, because CLIP takes the feature of a sentence at its largest token. Case and
    punctuation are ignored.
    """

    def __init__(self, words: list[str], context: int):
        self.ids = {word: number for number, word in enumerate(words, 2)}
        self.start, self.end, self.context = len(words) + 2, len(words) + 3, context

    def __call__(self, sentences: list[str]) -> Tensor:
        """Token ids, int64 (M, context). Logs a warning with the unknown words."""
        rows = torch.zeros(len(sentences), self.context, dtype=torch.long)
        unknown = set()
        for row, sentence in zip(rows, sentences, strict=True):
            words = split_words(sentence)
            unknown |= {word for word in words if word not in self.ids}
            ids = [self.ids.get(word, 1) for word in words][: self.context - 2]
            row[: len(ids) + 2] = torch.tensor([self.start, *ids, self.end])
        if unknown:
            logger.warning(
                "no training caption holds the words %s: they are encoded as unknown words", ", ".join(sorted(unknown))
            )
        return rows


def split_words(sentence: str) -> list[str]:
    """The words of a sentence in lower case; hyphens stay: 'A chin-length cut.' -> a, chin-length, cut."""
    return re.findall(r"[^\W_]+(?:[-'][^\W_]+)*", sentence.lower())


def build_tokenizer(text: Mapping):
    """The function that turns sentences into token ids, int64 (M, context). ``text``: of the metadata."""
    if text["vocabulary"] == "clip":
        torchvision_internals.ensure()  # open_clip imports torchvision
        from open_clip.tokenizer import SimpleTokenizer

        return SimpleTokenizer(context_length=text["context"])
    return Words(text["words"], text["context"])


def describe_architecture(params: SemanticsSettings, words: Iterable[str] = ()) -> dict[str, object]:
    """The metadata of a checkpoint that `build` needs. Raises ParameterError if the sizes do not divide.

    ``words``: the vocabulary, if it is that of the captions.
    """
    for whole, part, what in (
        (params.image_size, params.patch, "image_size by patch"),
        (params.width, params.heads, "width by heads"),
        (params.text.width, params.text.heads, "text.width by text.heads"),
    ):
        if whole % part:
            raise ParameterError(
                f"backbones.semantics: {what} must divide without rest; {whole} / {part} does not. Change either."
            )
    stem_widths = params.small_scale.stem
    if stem_widths and 2 ** len(stem_widths) != params.patch:
        raise ParameterError(
            f"backbones.semantics: a stem of {len(stem_widths)} convolutions makes patches of {2 ** len(stem_widths)} "
            f"pixels, and patch is {params.patch}. Change one of the two."
        )
    knobs = ("image_size", "patch", "width", "layers", "heads", "embedding", "activation")
    text = params.text.model_dump(mode="json") | (
        {"words": list(words)} if params.text.vocabulary == "captions" else {}
    )
    return {**{knob: getattr(params, knob) for knob in knobs}, "stem": list(stem_widths), "text": text}


def build(metadata: Mapping, temperature: float = 0.07) -> nn.Module:
    """open_clip's CLIP of this metadata, with random weights; without text encoder if ``metadata['text']`` is None."""
    torchvision_internals.ensure()  # open_clip imports torchvision
    from open_clip.model import CLIP

    no_text = {"vocabulary": "captions", "words": [], "context": 4, "width": 1, "layers": 1, "heads": 1}
    text = metadata["text"] or no_text
    network = CLIP(
        metadata["embedding"],
        {
            "image_size": metadata["image_size"],
            "patch_size": metadata["patch"],
            "width": metadata["width"],
            "layers": metadata["layers"],
            "head_width": metadata["width"] // metadata["heads"],
        },
        {
            "context_length": text["context"],
            "vocab_size": CLIP_VOCABULARY if text["vocabulary"] == "clip" else len(text["words"]) + 4,
            "width": text["width"],
            "layers": text["layers"],
            "heads": text["heads"],
        },
        quick_gelu=metadata["activation"] == "quick_gelu",
        init_logit_scale=math.log(1 / temperature),
    )
    if metadata["stem"]:
        network.visual.conv1 = build_stem(metadata["stem"], metadata["width"])
    return network if metadata["text"] else ImageEncoder(network.visual)


def build_stem(widths: list[int], out: int) -> nn.Sequential:
    """(N, 3, S, S) -> (N, out, S / 2^n, S / 2^n) by n convolutions of stride 2 (Xiao et al. 2021)."""
    layers, before = [], 3
    for width in widths:
        layers += [nn.Conv2d(before, width, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(width), nn.GELU()]
        before = width
    return nn.Sequential(*layers, nn.Conv2d(before, out, 1, bias=False))


def read_captions(archive: FaceArchive, rows) -> list[str]:
    """The column ``caption``. Raises ArchiveError if a face has none."""
    if "caption" not in rows or rows["caption"].isna().any():
        raise ArchiveError(
            f"{archive.path}: a text-image model needs a caption of every image, and some have none. Train on faces "
            "with captions, or adopt published weights (backbones.semantics.published)."
        )
    return rows["caption"].tolist()


def load(checkpoint: Path) -> SemanticEncoder:
    """The encoder of a checkpoint, frozen. Raises CheckpointError if it does not fit."""
    saved = Saved(checkpoint)
    encoder = SemanticEncoder(build(saved.metadata), saved.metadata)
    saved.frozen("clip", encoder.network)
    return encoder.eval().requires_grad_(False)


def refuse_unknown(sentences: Sequence[str], tokenizer: object) -> None:
    """Raises ParameterError, with the nearest known words, if the text-image model does not know a word.

    ``$`` in a sentence stands for another sentence. A tokenizer of word pieces, such as CLIP's, knows all words.
    """
    if not isinstance(tokenizer, Words):
        return
    words = sorted({word for sentence in sentences for word in split_words(sentence.replace("$", " "))})
    unknown = [word for word in words if word not in tokenizer.ids]
    if unknown:
        hints = " ".join(f"'{word}': {suggest_nearest(word, list(tokenizer.ids))}" for word in unknown)
        raise ParameterError(
            f"The text-image model learned no caption with the words {', '.join(unknown)}. {hints} Change the prompt, "
            "the source or the templates."
        )
