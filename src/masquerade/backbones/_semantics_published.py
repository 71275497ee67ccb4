"""The published weight files of FaRL, CLIP and OpenCLIP, read strictly and never unpickled."""

import logging
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from masquerade import training
from masquerade.backbones import _torchscript
from masquerade.backbones._semantics import CLIPS, architecture, build
from masquerade.errors import CheckpointError, ParameterError

if TYPE_CHECKING:
    from masquerade.backbones.semantics import Semantics

logger = logging.getLogger(__name__)

FARL_HEADS = ("visual.lm_transformer.", "visual.ln_lm.", "visual.lm_head.", "visual.mask_token")
"""Of FaRL's masked image modelling (farl/network/farl/model.py): not part of the encoder."""
NUMBERS = ("input_resolution", "context_length", "vocab_size")
"""What OpenAI's state dict holds beside its weights."""


def adopt(params: "Semantics.Params", published: Path, checkpoint: Path) -> None:
    """Write ``checkpoint`` from an official file that has the architecture of ``params``.

    A file without any text encoder gives an encoder of pictures alone. Raises CheckpointError naming what is missing,
    left over, of another shape or not a number, and ParameterError where ``params`` ask for words of captions.
    """
    if params.text.vocabulary != "clip":
        raise ParameterError(
            "backbones.semantics: published weights read CLIP's byte pairs; set text.vocabulary to clip, or published "
            "to '' to train a network that reads the words of the captions."
        )
    weights = weights_of(read(published))
    facts = architecture(params) | CLIPS
    if all(key.startswith("visual.") or key == "logit_scale" for key in weights):
        logger.warning("%s holds no text encoder: the network will not read sentences", published)
        facts["text"] = None
        weights.pop("logit_scale", None)
    network = build(facts)
    training.load_into(network, weights, published)
    wrong = sorted(key for key, value in weights.items() if not torch.isfinite(value).all())
    if wrong:
        raise CheckpointError(f"{published}: {wrong[0]} holds values that are not numbers. Download the file again.")
    training.save_checkpoint(checkpoint, {"clip": network}, facts)


def read(published: Path) -> Mapping:
    """The content of a .safetensors file, of a PyTorch file of tensors, or the weights of a TorchScript program.

    Raises CheckpointError naming the file.
    """
    if not published.is_file():
        raise CheckpointError(
            f"{published} is missing. docs/semantics.md says where the official files are; or set "
            "backbones.semantics.published to '' and the network is trained here."
        )
    if _torchscript.is_program(published):  # as OpenAI publishes CLIP
        return _torchscript.state(published)
    try:
        if published.suffix == ".safetensors":
            return safetensors.torch.load_file(published)
        return torch.load(published, map_location="cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, RuntimeError, OSError, EOFError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"{published} cannot be read as a file of weights ({str(error).splitlines()[0]}). Download it again and "
            "compare its checksum."
        ) from error


def weights_of(content: Mapping) -> dict[str, Tensor]:
    """CLIP's own keys of a state dict, bare or under ``state_dict``, as float32.

    Left out, because they are known: `FARL_HEADS`, `NUMBERS`, and the prefix ``module.`` of a parallel training.
    """
    state = content.get("state_dict", content) if isinstance(content, Mapping) else {}
    found = {
        key: value
        for key, value in ((str(key).removeprefix("module."), value) for key, value in state.items())
        if not key.startswith(FARL_HEADS) and key not in NUMBERS
    }
    if not any(key.startswith("visual.") for key in found) or not all(map(torch.is_tensor, found.values())):
        raise CheckpointError(
            "the published file is no CLIP: it should hold tensors named visual.conv1.weight and so on, by themselves "
            "or under 'state_dict'."
        )
    return {key: value.float() for key, value in found.items()}
