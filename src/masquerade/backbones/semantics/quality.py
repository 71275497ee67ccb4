"""Quality figures of a text-image model on unseen people: attributes by sentences, captions, nearest neighbors."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.nn import functional

from masquerade.backbones.semantics.network import SemanticEncoder, read_captions
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive
from masquerade.networks import inputs
from masquerade.training.settings import TrainingJob

LEAST = 5
"""Smallest number of images with an attribute, and of images without it, for which the attribute is measured."""

# A sentence about a face in the order of the captions. Each attribute below has two sets of words for one field; the
# other fields get several words, and the features of the sentences are averaged (prompt ensembling, Radford et al.
# 2021, section 3.1.4).
SENTENCE = "A {who} with {skin} skin{hair}{details}{wearing}, {mood}{mouth}."
PLAIN = {
    "who": ("man", "woman"),
    "skin": ("light", "tan", "dark"),
    "hair": (" and short straight brown hair", " and long wavy black hair"),
    "details": ("",),
    "wearing": ("",),
    "mood": ("with a neutral expression",),
    "mouth": ("",),
}
_CUTS = ("short straight", "short wavy", "long straight", "long wavy")


def _list_hair(*colors: str) -> tuple[str, ...]:
    return tuple(f" and {cut} {color} hair" for color in colors for cut in _CUTS)


_HAIRY = _list_hair("black", "brown")
_SHAVEN = ("",)
# The captions of rendered faces say "grey" and "moustache": the words of a prompt are those of the captions.
PROMPTS = {
    "5_o_Clock_Shadow": ("details", (" and stubble",), _SHAVEN),
    "Bald": ("hair", (" and a bald head",), _HAIRY),
    "Bangs": ("details", (" and bangs",), ("",)),
    "Black_Hair": ("hair", _list_hair("black"), _list_hair("brown", "dark brown", "blond", "grey", "red")),
    "Blond_Hair": ("hair", _list_hair("blond"), _list_hair("black", "brown", "dark brown", "grey", "red")),
    "Brown_Hair": ("hair", _list_hair("brown", "dark brown"), _list_hair("black", "blond", "grey", "red")),
    "Bushy_Eyebrows": ("details", (" and bushy eyebrows",), ("",)),
    "Eyeglasses": ("wearing", (", wearing eyeglasses",), ("",)),
    "Goatee": ("details", (" and a goatee",), _SHAVEN),
    "Gray_Hair": ("hair", _list_hair("grey"), _list_hair("black", "brown", "dark brown", "blond", "red")),
    "Male": ("who", ("man", "young man", "old man"), ("woman", "young woman", "old woman")),
    "Mouth_Slightly_Open": ("mouth", (", mouth slightly open",), ("",)),
    "Mustache": ("details", (" and a moustache",), _SHAVEN),
    "No_Beard": ("details", _SHAVEN, (" and a full beard", " and a goatee", " and a moustache", " and stubble")),
    "Pale_Skin": ("skin", ("very light",), ("light", "olive", "tan", "brown", "dark")),
    "Receding_Hairline": ("hair", (" and receding brown hair", " and receding grey hair"), _HAIRY),
    "Smiling": ("mood", ("smiling",), ("with a neutral expression", "looking sad", "looking stern")),
    "Straight_Hair": (
        "hair",
        (" and short straight black hair", " and long straight brown hair"),
        (" and short wavy black hair", " and long curly brown hair", " and a bald head"),
    ),
    "Wavy_Hair": (
        "hair",
        (" and short wavy black hair", " and long curly brown hair"),
        (" and short straight black hair", " and long straight brown hair", " and a bald head"),
    ),
    "Wearing_Hat": ("wearing", (", wearing a knitted hat",), ("",)),
    "Wearing_Lipstick": ("wearing", (", wearing lipstick",), ("",)),
    "Young": (
        "who",
        ("young man", "young woman"),
        ("middle-aged man", "middle-aged woman", "old man", "old woman"),
    ),
}
"""CelebA's attribute -> the field of the sentence, the words for true, and the words for false."""


def quality(encoder: SemanticEncoder, job: TrainingJob, floors: Mapping[str, float]) -> dict[str, float]:
    """Quality figures on the validation split.

    Always `measure_neighbor`; `measure_zero_shot` if the network has a text encoder; `measure_retrieval` if the faces
    also have captions. Raises ParameterError if a figure has a floor and cannot be measured.
    """
    encoder = inputs.place(encoder)
    archive = FaceArchive(job.faces)
    rows = archive.select("validation")
    with torch.inference_mode():
        features = torch.cat(
            [
                encoder.cls(torch.from_numpy(faces.images).to(encoder.mean.device))
                for faces in archive.batches(64, rows=rows)
            ]
        )
        attributes = read_attributes(rows)
        figures = measure_neighbor(features, rows["identity"].tolist(), attributes)
        if encoder.tokenizer is not None:
            figures |= measure_zero_shot(encoder, features, attributes)
            if "caption" in rows:
                figures |= measure_retrieval(encoder, features, read_captions(archive, rows))
    refuse_missing(figures, floors)
    return figures


def refuse_missing(figures: Mapping[str, float], floors: Mapping[str, float]) -> None:
    """Raise ParameterError if a figure that has a floor could not be measured."""
    missing = [name for name in floors if name not in figures]
    if missing:
        raise ParameterError(
            f"backbones.semantics has a floor for {' and '.join(missing)}, which cannot be measured here: the network "
            f"has no text encoder, the faces have no captions, or no attribute has {LEAST} validation images with it "
            f"and {LEAST} without it. If this is intended, set the floor to 0."
        )


def read_attributes(rows: pd.DataFrame) -> dict[str, np.ndarray]:
    """Attribute -> bool (N,), for the attributes with at least LEAST images of each value."""
    attributes = {
        name.removeprefix("attribute."): rows[name].to_numpy(bool)
        for name in rows.columns
        if name.startswith("attribute.") and rows[name].dtype == bool
    }
    return {name: truth for name, truth in attributes.items() if min(truth.sum(), (~truth).sum()) >= LEAST}


def compute_balanced_accuracy(predicted: np.ndarray, truth: np.ndarray) -> float:
    """(true positive rate + true negative rate) / 2, of bool (N,); 0.5 is chance."""
    return float((predicted[truth].mean() + (~predicted[~truth]).mean()) / 2)


def measure_zero_shot(
    encoder: SemanticEncoder, features: Tensor, attributes: Mapping[str, np.ndarray]
) -> dict[str, float]:
    """Balanced accuracy of attributes that are predicted by sentences: the nearer side of `PROMPTS`, by cosine.

    ``zero_shot``: the mean over ``zero_shot_attributes`` attributes; ``zero_shot.<attribute>``: each of them.
    """
    pictures = functional.normalize(features, dim=-1)
    names = sorted(PROMPTS.keys() & attributes.keys())
    scores = {}
    for name in names:
        field, true_words, false_words = PROMPTS[name]
        margin = pictures @ (
            _encode_ensemble(encoder, field, true_words) - _encode_ensemble(encoder, field, false_words)
        )
        scores[f"zero_shot.{name}"] = compute_balanced_accuracy((margin > 0).cpu().numpy(), attributes[name])
    mean = {"zero_shot": float(np.mean(list(scores.values())))} if scores else {}
    return mean | scores | {"zero_shot_attributes": float(len(names))}


def _encode_ensemble(encoder: SemanticEncoder, field: str, words: tuple[str, ...]) -> Tensor:
    """(D,) of length 1: the mean feature of the sentences with ``words`` in one field and `PLAIN` in the others."""
    fields = {**PLAIN, field: words}
    sentences = [SENTENCE.format(**dict(zip(fields, values, strict=True))) for values in product(*fields.values())]
    return functional.normalize(encoder.text(sentences).mean(0), dim=-1)


def measure_retrieval(encoder: SemanticEncoder, features: Tensor, captions: list[str]) -> dict[str, float]:
    """Share of the images whose own caption is the nearest, or among the nearest five, of all different captions."""
    different = sorted(set(captions))
    own_caption = torch.tensor([different.index(caption) for caption in captions], device=features.device)
    cosines = functional.normalize(features, dim=-1) @ encoder.text(different).T
    nearer = (cosines > cosines.gather(1, own_caption[:, None])).sum(1)
    return {
        "retrieval_1": float((nearer < 1).float().mean()),
        "retrieval_5": float((nearer < 5).float().mean()),
        "retrieval_captions": float(len(different)),
    }


def measure_neighbor(features: Tensor, identities: list[str], attributes: Mapping[str, np.ndarray]) -> dict[str, float]:
    """``neighbor``: how well the nearest image of ANOTHER person, as FALCO pairs, predicts the attributes.

    The distance is Euclidean, of the class features (FALCO section 3.2). The figure is the mean balanced accuracy over
    the attributes.
    """
    names = np.asarray(identities)
    distances = torch.cdist(features.double(), features.double())
    distances[torch.from_numpy(names[:, None] == names[None, :])] = torch.inf
    nearest = distances.argmin(1).cpu().numpy()
    scores = [compute_balanced_accuracy(truth[nearest], truth) for truth in attributes.values()]
    return {"neighbor": float(np.mean(scores))} if scores else {}
