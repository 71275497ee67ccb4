"""Converts published weight files of StyleGAN2, e4e and pSp to the tensor names of the networks here.

No code from a file is run: torch files are read as tensors and plain containers only. The layouts differ in names, in
the offset of the biases and in the orientation of the up-sampling kernels, as stated in each function.
"""

import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from masquerade.core.errors import CheckpointError
from masquerade.networks.stylegan2_layers import NOISE_SEED, TAPS, draw_noise_maps

logger = logging.getLogger(__name__)

State = dict[str, Tensor]


def read_generator(content: Any, path: Path) -> tuple[State, str]:
    """(tensors of a published generator in rosinality's names, with ``latent_avg``; name of the layout).

    It reads rosinality (``g_ema``) and GenForce (``generator_smooth``). Raises CheckpointError.
    """
    if isinstance(content, Mapping):
        if "g_ema" in content:
            return convert_rosinality(content, path), "rosinality"
        if "generator_smooth" in content:
            return convert_genforce(content["generator_smooth"], path), "GenForce"
    keys = ", ".join(map(str, list(content)[:6])) if isinstance(content, Mapping) else type(content).__name__
    raise CheckpointError(
        f"{path} is no generator of a known layout: it needs the key g_ema (rosinality) or generator_smooth "
        f"(GenForce), and holds {keys}. Name another file."
    )


def convert_rosinality(content: Mapping, path: Path) -> State:
    """The names are ours. ``latent_avg`` is beside ``g_ema``; if the file lacks it, it is measured after loading.

    The file of 256 pixels (550000.pt) was saved before the code kept the fixed noise in the file. Where all noise maps
    are absent, and only then, they are drawn from a seed.
    """
    state = dict(content["g_ema"])
    if not any(name.startswith("noises.") for name in state):
        noise_maps = draw_noise_maps(sum(name.endswith(".noise.weight") for name in state), NOISE_SEED)
        logger.info("%s holds no fixed noise: %d maps are drawn from seed %d", path, len(noise_maps), NOISE_SEED)
        state |= {f"noises.noise_{layer}": noise for layer, noise in enumerate(noise_maps)}
    if "latent_avg" in content:
        state["latent_avg"] = content["latent_avg"].reshape(-1)
    for name, kernel in state.items():
        if name.endswith(".kernel"):
            _check_taps(kernel, name, path)
    return state


def convert_genforce(published: Mapping[str, Tensor], path: Path) -> State:
    """GenForce (and FALCO's files): style biases start at 0, not 1; up-sampling kernels are rotated by 180 degrees."""
    state: State = {}
    for name, value in published.items():
        if name.endswith("kernel"):
            _check_taps(value.reshape(4, 4), name, path)
            continue
        new, change = _convert_name(name, path)
        state[new] = change(value)
    for name in [name for name in state if name.endswith(".conv.weight") and name.startswith("convs.")]:
        level = int(name.split(".")[1])
        if level % 2 == 0:
            state[name] = state[name].flip(-2, -1)
            state[f"convs.{level}.conv.blur.kernel"] = _build_taps()
    for level in {name.split(".")[1] for name in state if name.startswith("to_rgbs.")}:
        state[f"to_rgbs.{level}.upsample.kernel"] = _build_taps()
    return state


def _keep(value: Tensor) -> Tensor:
    return value


GENFORCE = {
    "weight": ("conv.weight", lambda value: value[None]),  # (outputs, inputs, k, k) -> (1, outputs, inputs, k, k)
    "style.weight": ("conv.modulation.weight", _keep),
    "style.bias": ("conv.modulation.bias", lambda value: value + 1.0),
}
"""GenForce's name in a layer or an output -> our name in its block, and what becomes of the tensor."""
BLOCKS = {
    "layer": ("conv1", "convs", GENFORCE | {
        "noise_strength": ("noise.weight", lambda value: value.reshape(1)), "bias": ("activate.bias", _keep)}),
    "output": ("to_rgb1", "to_rgbs", GENFORCE | {"bias": ("bias", lambda value: value.reshape(1, -1, 1, 1))}),
}  # fmt: skip
"""GenForce's kind of block -> our first block, our further ones, and the tensors of each."""


def _convert_name(name: str, path: Path) -> tuple[str, Callable[[Tensor], Tensor]]:
    """(our name, the function that converts the tensor) of a tensor of GenForce."""
    if match := re.fullmatch(r"mapping\.dense(\d+)\.(weight|bias)", name):
        return f"style.{int(match[1]) + 1}.{match[2]}", _keep
    if match := re.fullmatch(r"synthesis\.layer(\d+)\.noise", name):
        return f"noises.noise_{match[1]}", _keep
    if name in (whole := {"truncation.w_avg": "latent_avg", "synthesis.early_layer.const": "input.input"}):
        return whole[name], _keep
    if match := re.fullmatch(r"synthesis\.(layer|output)(\d+)\.(.+)", name):
        first, further, tensors = BLOCKS[match[1]]
        if match[3] in tensors:
            ours, change = tensors[match[3]]
            return f"{f'{further}.{int(match[2]) - 1}' if int(match[2]) else first}.{ours}", change
    raise CheckpointError(f"{path}: '{name}' is left over: GenForce's StyleGAN2 has no such tensor.")


def _build_taps() -> Tensor:
    """The up-sampling kernel (4, 4)."""
    taps = torch.tensor(TAPS)
    kernel = taps[:, None] * taps[None, :]
    return kernel / kernel.sum() * 4


def _check_taps(kernel: Tensor, name: str, path: Path) -> None:
    if kernel.shape != (4, 4) or not torch.allclose(kernel.float(), _build_taps(), atol=1e-4):
        raise CheckpointError(f"{path}: the low-pass filter '{name}' is not [1, 3, 3, 1], the only one supported here.")


def read_encoder(content: Any, path: Path) -> tuple[State, State, Tensor]:
    """(encoder, generator, mean codes (layers, style)) of a published e4e or pSp file, without the name prefixes."""
    if not isinstance(content, Mapping) or not {"state_dict", "latent_avg"} <= content.keys():
        raise CheckpointError(f"{path} is no e4e or pSp file: it needs the keys state_dict and latent_avg.")
    parts: dict[str, State] = {"encoder": {}, "decoder": {}}
    for name, value in content["state_dict"].items():
        part, _, rest = name.partition(".")
        if part not in parts:
            raise CheckpointError(
                f"{path}: '{name}' is left over: an e4e or pSp file has only encoder.* and decoder.*."
            )
        parts[part][rest] = value
    return parts["encoder"], parts["decoder"], content["latent_avg"]
