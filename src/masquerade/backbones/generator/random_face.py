"""The generator of faces in the package `random-face`: MobileStyleGAN for FFHQ, read without OpenVINO.

The package holds two networks in OpenVINO's format. A checkpoint does not contain them: it has our head for 256 pixels
and the mean of W, and the package is read again with each loading.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from masquerade.assets.random_face import PUBLISHED, files
from masquerade.networks.mobile_stylegan import CHANNELS, MobileStyleGAN
from masquerade.networks.openvino_ir import Graph
from masquerade.training import checkpoints, half_precision


class Own(nn.Module):
    """What the package does not have: our head for 256 pixels, and the mean of W."""

    latent_avg: Tensor

    def __init__(self, network: MobileStyleGAN):
        super().__init__()
        self.head = network.head
        self.register_buffer("latent_avg", network.latent_avg)


def state() -> dict[str, Tensor]:
    """The tensors of `MobileStyleGAN` that the package has. Raises CheckpointError as `files`."""
    paths = files()
    return {**_mapping(Graph(paths["MappingNetwork.xml"])), **_synthesis(Graph(paths["SynthesisNetwork.xml"]))}


def build(own: Mapping[str, Tensor], path: Path) -> MobileStyleGAN:
    """The generator with the tensors ``own`` (those of `Own`) of the file at ``path``, frozen.

    Raises CheckpointError if they do not fit.
    """
    network = MobileStyleGAN()
    checkpoints.load_into(network, {**state(), **own}, path)
    network.quicken()
    return network.eval().requires_grad_(False)


def without_head() -> MobileStyleGAN:
    """The generator as the package has it, frozen: its head for 256 pixels is empty, and the mean of W is 0."""
    own = Own(MobileStyleGAN()).state_dict()
    return build({name: torch.zeros_like(tensor) for name, tensor in own.items()}, Path(PUBLISHED))


def with_head(path: Path) -> MobileStyleGAN:
    """The generator with the head of a checkpoint or of a file of weights/, frozen. Raises CheckpointError."""
    tensors, _ = half_precision.read(path)
    return build({name.removeprefix("generator."): tensor for name, tensor in tensors.items()}, path)


def _mapping(graph: Graph) -> dict[str, Tensor]:
    tensors = {}
    for number, product in enumerate(graph.of_kind("MatMul")):
        tensors[f"mapping.{number}.weight"] = graph.operand(product)
        tensors[f"mapping.{number}.bias"] = graph.operand(graph.after(product, "Add")).reshape(-1)
    return tensors


def _synthesis(graph: Graph) -> dict[str, Tensor]:
    """The convolutions' weights contain the demodulation, which is a constant in this network."""
    depthwise = {_kernel_name(graph, layer): layer for layer in graph.of_kind("GroupConvolution")}
    tensors = {"input": graph.named("m.input.input")}
    tensors |= _convolution(graph, "conv", "m.conv1", graph.of_kind("Convolution")[0], None)
    last = len(CHANNELS) - 1
    for level in range(last):
        published, own = f"m.layers.{level}", f"levels.{level}"
        order = blocked(CHANNELS[level])
        for name, value in _style(graph, f"{published}.up", 0.5).items():  # half of the sums of the Haar wavelet
            tensors[f"{own}.up.{name}"] = value[order]
        for conv in ("conv1", "conv2"):
            layer = depthwise[f"{published}.{conv}.conv.weight_dw"]
            tensors |= _convolution(
                graph, f"{own}.{conv}", f"{published}.{conv}", graph.after(layer, "Convolution"), layer
            )
    for level in range(last - 1):  # what enters the next wavelet has its order
        order = blocked(CHANNELS[level + 1])
        for name in ("kernel", "bias"):
            tensors[f"levels.{level}.conv2.{name}"] = tensors[f"levels.{level}.conv2.{name}"][order]
    for name in ("kernel", "bias"):
        tensors[f"conv.{name}"] = tensors[f"conv.{name}"][blocked(CHANNELS[0])]
    head = f"m.layers.{last - 1}.to_img"
    order = blocked(12)
    tensors |= {f"large_head.style.{name}": value for name, value in _style(graph, f"{head}.conv", 0.5 / 8).items()}
    tensors["large_head.kernel"] = graph.named(f"{head}.conv.weight")[order]
    tensors["large_head.bias"] = graph.named(f"{head}.bias").reshape(-1)[order] * 0.5
    return tensors


def _convolution(graph: Graph, own: str, published: str, pointwise: str, depthwise: str | None) -> dict[str, Tensor]:
    kernel = graph.operand(pointwise)
    noise = graph.after(pointwise, "Add")
    tensors = {
        f"{own}.kernel": kernel,
        f"{own}.noise": graph.operand(noise),
        f"{own}.bias": graph.operand(graph.after(noise, "Add")).reshape(-1),
    }
    if depthwise is not None:
        tensors[f"{own}.depthwise"] = graph.named(f"{published}.conv.weight_dw")[:, 0]
    gain = 1 / math.sqrt(kernel.shape[1] * 9)
    return tensors | {f"{own}.style.{name}": value for name, value in _style(graph, f"{published}.conv", gain).items()}


def _style(graph: Graph, published: str, gain: float) -> dict[str, Tensor]:
    """The map from a code to the style of a layer, times ``gain``."""
    weight, bias = (graph.named(f"{published}.modulation.{name}") for name in ("weight", "bias"))
    return {"weight": weight * gain, "bias": bias.reshape(-1) * gain}


def _kernel_name(graph: Graph, layer: str) -> str:
    return next(graph.names[number] for number in graph.inputs[layer] if graph.kinds[number] == "Const")


def blocked(channels: int) -> Tensor:
    """The order that turns the wavelet's channels [C low, (C, 3) high] into the blocks [low, high, high, high]."""
    low = channels // 4
    return torch.cat([torch.arange(low), *(low + 3 * torch.arange(low) + number for number in range(3))])
