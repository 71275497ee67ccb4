"""Writes files of random weights in the layouts in which the official ones are published.

The names and shapes of layouts/official.yaml come from the published code, not from our networks. If such a file loads
strictly, our networks have the published tensors. The numbers are random and scaled so that a forward pass is finite.
"""

import argparse
import math
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from unittest import mock

import torch
import yaml
from torch import Tensor

import graph_models
from masquerade.networks import torchvision_internals

Shapes = dict[str, tuple[int, ...]]
LAYOUTS = yaml.safe_load((Path(__file__).parent / "layouts/official.yaml").read_text(encoding="utf-8"))
POOL = 2**22  # random numbers that are drawn; longer tensors repeat them
SHARED = 2**16  # tensors with more numbers are views of the drawn ones


def write(role: str, path: Path, seed: int = 0) -> Path:
    """Writes the file of a role of the registry at ``path``, creates its folders, and returns ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if role == "clip_vit_b32":  # published as a TorchScript program
        torch.jit.save(program({name: value.half() for name, value in content(role, seed).items()}), path)
    elif role == "faceplugin":  # published as an ONNX file
        path.write_bytes((Path(__file__).parent / "layouts/faceplugin.onnx").read_bytes())
    elif role in ("human", "human_models"):  # published as npm packages
        graph_models.write_official(role, path)
    elif role == "faceres":  # published as the numbers of its tensors, one after the other
        path.write_bytes(b"".join(value.numpy().tobytes() for value in content(role, seed).values()))
    else:
        torch.save(content(role, seed), path)
    return path


def content(role: str, seed: int = 0) -> dict:
    """The content of the file of a role."""
    return FILES[role](seed)


# --- layouts ------------------------------------------------------------------------------------------------------


def shapes(layout: str) -> Shapes:
    """The names and shapes of a layout of official.yaml."""
    named = {name: tuple(shape) for names, shape in LAYOUTS[layout].items() for name in expand(names)}
    counters = {name.replace("running_var", "num_batches_tracked"): () for name in named if "running_var" in name}
    return named | counters


def expand(names: str) -> Iterator[str]:
    """layer{0..1}.{weight,bias} -> layer0.weight, layer0.bias, layer1.weight, layer1.bias."""

    def choices(part: str) -> Iterator[str]:
        for choice in part.split(","):
            first, _, last = choice.partition("..")
            yield from map(str, range(int(first), int(last) + 1)) if last else [first]

    parts = re.split(r"\{(.*?)\}", names)  # fixed text, choices, fixed text, ...
    return map("".join, product(*(choices(part) if number % 2 else [part] for number, part in enumerate(parts))))


def stylegan2(size: int) -> Shapes:
    """The first levels of the generator of 1024 pixels: the channels of a level do not depend on the size."""
    levels = int(math.log2(size)) - 2
    layers = {"convs": 2 * levels, "to_rgbs": levels, "noises": 2 * levels + 1}

    def is_in(name: str) -> bool:
        first, number, *_ = (*re.split(r"\.(?:noise_)?", name), "")
        return first not in layers or int(number) < layers[first]

    return {name: shape for name, shape in shapes("stylegan2").items() if is_in(name)}


def facenet(people: int) -> Shapes:
    """The network of the package facenet-pytorch, with its classification layer."""
    torchvision_internals.ensure()
    from facenet_pytorch import InceptionResnetV1

    with torch.device("meta"):
        return shapes_of(InceptionResnetV1(classify=True, num_classes=people))


def inception_fid() -> Shapes:
    """pt_inception-2015-12-05-6726825d.pth: the network into which pytorch-fid loads it, with its 1008 classes."""
    torchvision_internals.ensure()
    from pytorch_fid import inception

    with (
        torch.device("meta"),
        mock.patch.object(inception, "load_state_dict_from_url"),
        mock.patch("torchvision.models.Inception3.load_state_dict"),
    ):
        return shapes_of(inception.fid_inception_v3())


def torchvision_network(name: str) -> Shapes:
    """The ImageNet file of ``alexnet`` or ``vgg16``: the network of torchvision, to which LPIPS adds its heads."""
    torchvision_internals.ensure()
    from torchvision import models

    with torch.device("meta"):
        return shapes_of(getattr(models, name)(weights=None))


def shapes_of(network: torch.nn.Module) -> Shapes:
    return {name: tuple(value.shape) for name, value in network.state_dict().items()}


# --- values -------------------------------------------------------------------------------------------------------


class Pool:
    """Standard normal numbers, drawn once, times a factor. Each tensor takes them from a different start.

    Large tensors with the same factor share their memory. A file holds shared memory once: the file of an encoder with
    267 million numbers has 100 MB instead of 1 GB, and networks that load it copy each tensor.
    """

    def __init__(self, seed: int):
        self._numbers = {1.0: torch.randn(POOL, generator=torch.Generator().manual_seed(seed))}
        self._place = 0

    def take(self, shape: Iterable[int], factor: float = 1.0) -> Tensor:
        shape = tuple(shape)
        count = math.prod(shape)
        self._place = (self._place + 7919) % POOL
        if count <= SHARED:
            return (self._repeated(1.0, count) * factor).reshape(shape)
        if factor not in self._numbers:
            self._numbers[factor] = self._numbers[1.0] * factor
        return self._repeated(factor, count).reshape(shape)

    def _repeated(self, factor: float, count: int) -> Tensor:
        numbers = self._numbers[factor]
        if count > POOL:
            return numbers.repeat(-(-count // POOL))[:count]
        start = self._place % (POOL - count + 1)
        return numbers[start : start + count]


def values(shapes: Shapes, seed: int, spread: float | None = None) -> dict[str, Tensor]:
    """Random weights of these shapes. ``spread``: standard deviation; default: one over the square root of fan-in."""
    pool = Pool(seed)
    return {name: _value(name, shape, pool, spread) for name, shape in shapes.items()}


def _value(name: str, shape: tuple[int, ...], pool: Pool, spread: float | None) -> Tensor:
    last = name.rpartition(".")[2]
    if last == "num_batches_tracked":
        return torch.tensor(1000)
    if last == "running_mean":
        return 0.1 * pool.take(shape)
    if last == "running_var":
        return 1.0 + 0.1 * pool.take(shape).abs()
    if last == "logit_scale":
        return torch.tensor(math.log(100.0))
    if len(shape) < 2:
        return (1.0 if last == "weight" else 0.0) + 0.05 * pool.take(shape)
    return pool.take(shape, spread or math.prod(shape[1:]) ** -0.5)


def generator_values(size: int, seed: int) -> dict[str, Tensor]:
    """Weights of `stylegan2`: initialized as in Karras et al. 2020, with a little noise and uneven biases."""
    pool, state = Pool(seed), {}
    taps = torch.tensor([1.0, 3.0, 3.0, 1.0])
    for name, shape in stylegan2(size).items():
        if name.endswith("kernel"):
            state[name] = torch.outer(taps, taps) / 64 * 4
        elif name.startswith("style.") and name.endswith("weight"):
            state[name] = pool.take(shape, 100.0)  # equalized: the layer multiplies by its learning rate
        elif name.endswith(("bias", "noise.weight")):
            state[name] = float("modulation" in name) + 0.1 * pool.take(shape)
        else:
            state[name] = pool.take(shape)
    return state


# --- files --------------------------------------------------------------------------------------------------------


def plain(layout: Callable[[], Shapes], spread: float | None = None) -> Callable[[int], dict]:
    return lambda seed: values(layout(), seed, spread)


def faceres(seed: int) -> dict[str, Tensor]:
    """faceres.bin of @vladmandic/human: the tensors of faceres.json in its order, kernels as (H, W, in, out).

    Each ReLU6 has its two limits beside it, and the mean its axes.
    """
    limits = torch.tensor([6.0, 0.0])
    shapes = {"age_pred": (256, 100), "feats": (1024, 256), "gender_pred": (256, 1), "conv1": (3, 3, 3, 32)}
    inputs = 32
    for number, outputs in enumerate((64, 128, 128, 256, 256, *(512,) * 6, 1024, 1024), start=1):
        shapes |= {f"conv_dw_{number}": (3, 3, inputs, 1), f"conv_pw_{number}": (1, 1, inputs, outputs)}
        inputs = outputs
    pool, state = Pool(seed), {}
    for name, shape in shapes.items():
        *kernel, before, after = shape
        depthwise = "_dw_" in name
        state[f"{name}.kernel"] = pool.take(shape, (math.prod(kernel) * (1 if depthwise else before) / 2) ** -0.5)
        if depthwise:
            state[f"{name}.factor"] = 1 + 0.05 * pool.take((before,))
        state[f"{name}.bias"] = 0.05 * pool.take((before if depthwise else after,))
        if kernel:
            state[f"{name}.limits"] = limits
    return {name: value.half() for name, value in state.items()} | {"axes": torch.tensor([1, 2], dtype=torch.int32)}


def lightning(seed: int) -> dict:
    """A checkpoint of PyTorch Lightning: the network as ``model.*``, and a head (here of ten classes)."""
    state = {f"model.{name}": value for name, value in values(shapes("adaface_ir50"), seed).items()}
    head = {"head.kernel": torch.ones(512, 10), "head.t": torch.zeros(1)}
    head |= {"head.batch_mean": torch.ones(1), "head.batch_std": torch.ones(1)}
    return {"epoch": 25, "global_step": 1, "pytorch-lightning_version": "1.4.4", "state_dict": state | head}


def rosinality(size: int) -> Callable[[int], dict]:
    """What rosinality's convert_weight.py (commit bef283a) writes without its options --gen and --disc."""
    return lambda seed: {"g_ema": generator_values(size, seed), "latent_avg": 0.1 * Pool(seed + 1).take((512,))}


def old_rosinality(size: int) -> Callable[[int], dict]:
    """A snapshot of rosinality's train.py before commit f79322a (15 January 2020): no fixed noise, no mean of W.

    The file of 256 pixels is such a one: the missing noise is in issues 71 and 176, the missing mean in issue 239.
    """

    def made(seed: int) -> dict:
        weights = {name: value for name, value in generator_values(size, seed).items() if "noises." not in name}
        other = torch.nn.Linear(1, 1)  # stands for the discriminator; both optimizers are saved, too
        adam = torch.optim.Adam(other.parameters(), lr=0.002).state_dict()
        return {"g": weights, "d": other.state_dict(), "g_ema": weights, "g_optim": adam, "d_optim": adam}

    return made


def genforce(size: int) -> Callable[[int], dict]:
    def made(seed: int) -> dict:
        state = generator_values(size, seed) | {"latent_avg": 0.1 * Pool(seed + 1).take((512,))}
        return {"generator": {}, "generator_smooth": as_genforce(state), "discriminator": {}}

    return made


def as_genforce(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of rosinality's generator under GenForce's names, in its orientations."""
    kernel = state["convs.0.conv.blur.kernel"].reshape(1, 1, 4, 4)
    out = {"truncation.w_avg": state["latent_avg"], "synthesis.early_layer.const": state["input.input"]}
    out["synthesis.upsample.kernel"] = kernel
    for name, value in state.items():
        parts = name.split(".")
        if parts[0] == "style":
            out[f"mapping.dense{int(parts[1]) - 1}.{parts[2]}"] = value
        elif parts[0] == "noises":
            out[f"synthesis.layer{parts[1].split('_')[1]}.noise"] = value
        elif parts[0] in ("conv1", "convs", "to_rgb1", "to_rgbs"):
            single = parts[0].endswith("1")
            number = 0 if single else int(parts[1]) + 1
            rest = ".".join(parts[1:] if single else parts[2:])
            block = f"synthesis.{'layer' if 'conv' in parts[0] else 'output'}{number}"
            up = parts[0] == "convs" and number % 2 == 1
            if rest == "conv.weight":
                out[f"{block}.weight"] = value[0].flip(-2, -1) if up else value[0]
            elif rest == "conv.modulation.bias":
                out[f"{block}.style.bias"] = value - 1.0
            elif rest == "conv.modulation.weight":
                out[f"{block}.style.weight"] = value
            elif rest == "noise.weight":
                out[f"{block}.noise_strength"] = value.reshape(())
            elif rest in ("activate.bias", "bias"):
                out[f"{block}.bias"] = value.reshape(-1)
            elif rest == "conv.blur.kernel":
                out[f"{block}.filter.kernel"] = kernel
    return out


def inversion(size: int, styles: int) -> Callable[[int], dict]:
    """e4e or pSp: its decoder is the generator that `rosinality` writes with the same seed.

    The keys are those of training/coach.py in encoder4editing (commit 99ea505) and pixel2style2pixel (5cfff38).
    """

    def made(seed: int) -> dict:
        state = {f"encoder.{name}": value for name, value in values(shapes("encoder"), seed + 1).items()}
        state |= {f"decoder.{name}": value for name, value in generator_values(size, seed).items()}
        options = vars(argparse.Namespace(device="cuda:0", start_from_latent_avg=True, learning_rate=0.0001))
        return {"state_dict": state, "latent_avg": 0.1 * Pool(seed + 2).take((styles, 512)), "opts": options}

    return made


class Part(torch.nn.Module):
    """A module of a program. It holds named tensors and computes nothing."""

    def forward(self, x: int) -> int:
        return x


def grown(role: str) -> Callable[[int], dict]:
    """DeepPrivacy, branch v1: the averaged generator after its growth, beside the other networks (here: a number)."""
    return lambda seed: {
        "running_average_generator": {
            "transition_step": 5,
            "transition_value": 1.0,
            "parameters": values(shapes(role), seed),
        },
        "batch_size": 64,
    }


def averaged(role: str) -> Callable[[int], dict]:
    """DeepPrivacy2: the averaged generator, with the filter that its code computes."""

    def content(seed: int) -> dict:
        state, taps = values(shapes(role), seed), torch.tensor([1.0, 3.0, 3.0, 1.0])
        filters = {name: torch.outer(taps, taps) / 64 for name in state if name.endswith("resample_filter")}
        return {"EMA_generator": state | filters}

    return content


def program(state: dict[str, Tensor]) -> torch.jit.ScriptModule:
    """A TorchScript program with these parameters, as OpenAI publishes CLIP in half precision."""
    root = Part()
    for name, value in state.items():
        *parents, last = name.split(".")
        part = root
        for parent in parents:
            if parent not in part._modules:
                part.add_module(parent, Part())
            part = part.get_submodule(parent)
        part.register_parameter(last, torch.nn.Parameter(value, requires_grad=False))
    return torch.jit.script(root)


def farl(seed: int) -> dict:
    return {"state_dict": values(shapes("farl"), seed, spread=0.02)}


FILES: dict[str, Callable[[int], dict]] = {
    **{
        layout: plain(partial(shapes, layout))
        for layout in ("ir_se50", "bisenet", "fan4", "s3fd", "ciagan", "dartblur")
    },
    "facenet_vggface2": plain(partial(facenet, 8631)),  # people whom it learned: facenet-pytorch, InceptionResnetV1
    "facenet_casia": plain(partial(facenet, 10575)),
    "adaface_ir50": lightning,
    "stylegan2_256": old_rosinality(256),
    "stylegan2_1024": rosinality(1024),
    "stylegan2_1024_genforce": genforce(1024),
    "e4e_1024": inversion(1024, 18),
    "psp_1024": inversion(1024, 18),
    "farl_ep64": farl,
    "farl_ep16": farl,
    "clip_vit_b32": plain(partial(shapes, "clip_vit_b32"), spread=0.02),
    "inception_fid": plain(inception_fid),
    "faceres": faceres,
    **{name: plain(partial(torchvision_network, name)) for name in ("alexnet", "vgg16")},
    **{role: grown(role) for role in ("deepprivacy_default", "deepprivacy_large")},
    **{role: averaged(role) for role in ("deepprivacy2_fdf256", "deepprivacy2_fdf128")},
}
"""Role of the registry -> what its file holds, by seed."""
