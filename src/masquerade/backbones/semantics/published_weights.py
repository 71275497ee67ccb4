"""Reads the published weight files of FaRL, CLIP and OpenCLIP, strictly and without unpickling."""

import logging
import pickle
from collections.abc import Mapping
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from masquerade.backbones.semantics import SemanticsSettings, torchscript
from masquerade.backbones.semantics.network import CLIPS, architecture, build
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.training import checkpoints, weight_files

logger = logging.getLogger(__name__)

FARL_HEADS = ("visual.lm_transformer.", "visual.ln_lm.", "visual.lm_head.", "visual.mask_token")
"""First letters of the tensors of FaRL's masked image modeling (farl/network/farl/model.py), which are not used."""
NUMBERS = ("input_resolution", "context_length", "vocab_size")
"""The entries of OpenAI's state dict that are not weights."""


def adopt(params: SemanticsSettings, published: Path, checkpoint: Path) -> None:
    """Write ``checkpoint`` from an official file with the architecture of ``params``.

    A file without a text encoder gives an image encoder only. Raises CheckpointError naming tensors that are missing,
    left over, of another shape, or with NaN or infinity. Raises ParameterError if the vocabulary is not CLIP's.
    """
    if params.text.vocabulary != "clip":
        raise ParameterError(
            "backbones.semantics: published weights use CLIP's byte pairs; set text.vocabulary to clip, or published "
            "to '' to train a network on the words of the captions."
        )
    weights = weights_of(read(published))
    facts = architecture(params) | CLIPS
    if all(key.startswith("visual.") or key == "logit_scale" for key in weights):
        logger.warning("%s holds no text encoder: the network cannot encode sentences", published)
        facts["text"] = None
        weights.pop("logit_scale", None)
    network = build(facts)
    checkpoints.load_into(network, weights, published)
    weight_files.refuse_nan(weights, published)
    checkpoints.save_checkpoint(checkpoint, {"clip": network}, facts)


def read(published: Path) -> Mapping:
    """The content of a .safetensors file, of a PyTorch file of tensors, or the weights of a TorchScript program.

    Raises CheckpointError naming the file.
    """
    if not published.is_file():
        raise CheckpointError(
            f"{published} is missing. docs/semantics.md says where to get the official files. Or set "
            "backbones.semantics.published to '' to train the network here."
        )
    if torchscript.is_program(published):  # as OpenAI publishes CLIP
        return torchscript.state(published)
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
            "the published file is no CLIP: it should hold tensors named visual.conv1.weight and so on, at the top "
            "or under 'state_dict'. Download it again."
        )
    return {key: value.float() for key, value in weights.items()}
