"""The generator of faces in the package `random-face`: MobileStyleGAN for FFHQ, read without OpenVINO.

The package holds two networks in OpenVINO's format. A checkpoint does not contain them: it has our head for 256 pixels
and the mean of W, and the package is read again with each loading.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from tqdm import trange

from masquerade.assets.random_face import PUBLISHED, files
from masquerade.backbones.generator import HeadSettings
from masquerade.core import seeding
from masquerade.networks.mobile_stylegan import CHANNELS, LARGE, LEVELS, SIZE, STYLE, MobileStyleGAN, inverse_haar
from masquerade.training import checkpoints, precision, pretrained

DTYPES = {"f32": "<f4", "i64": "<i8", "i32": "<i4"}


class Graph:
    """The layers of a graph, by id. No code from the files is run."""

    def __init__(self, xml: Path):
        root, numbers = ElementTree.parse(xml).getroot(), xml.with_suffix(".bin").read_bytes()
        self.names: dict[str, str] = {}
        self.kinds: dict[str, str] = {}
        self.inputs: dict[str, list[str]] = {}
        self.users: dict[str, list[str]] = {}
        self._constants: dict[str, np.ndarray] = {}
        for layer in root.iterfind("layers/layer"):
            number, data = layer.attrib["id"], layer.find("data")
            self.names[number], self.kinds[number] = layer.attrib["name"], layer.attrib["type"]
            if layer.attrib["type"] == "Const" and data is not None:
                start, size = int(data.attrib["offset"]), int(data.attrib["size"])
                shape = [int(side) for side in data.attrib["shape"].split(",") if side.strip()]
                values = np.frombuffer(numbers[start : start + size], DTYPES[data.attrib["element_type"]])
                self._constants[number] = values.reshape(shape)
        for edge in root.iterfind("edges/edge"):
            self.inputs.setdefault(edge.attrib["to-layer"], []).append(edge.attrib["from-layer"])
            self.users.setdefault(edge.attrib["from-layer"], []).append(edge.attrib["to-layer"])

    def of_kind(self, kind: str) -> list[str]:
        """The layers of a kind, in the order of the file."""
        return [number for number, layer_kind in self.kinds.items() if layer_kind == kind]

    def named(self, name: str) -> Tensor:
        """The constant of a name. Raises KeyError."""
        number = next((number for number, layer_name in self.names.items() if layer_name == name), None)
        if number not in self._constants:
            raise KeyError(name)
        return torch.tensor(self._constants[number])

    def operand(self, layer: str) -> Tensor:
        """The floating-point constant that a layer takes, also through a reshaping. Raises KeyError."""
        sources = self.inputs[layer]
        reshapings = (source for source in sources if self.kinds[source] == "Reshape")
        reshaped = [number for reshaping in reshapings for number in self.inputs[reshaping]]
        for number in (*sources, *reshaped):
            if number in self._constants and self._constants[number].dtype == np.float32:
                return torch.tensor(self._constants[number])
        raise KeyError(layer)

    def after(self, layer: str, kind: str) -> str:
        """The layer of a kind that takes the output of a layer. Raises KeyError."""
        for number in self.users[layer]:
            if self.kinds[number] == kind:
                return number
        raise KeyError(f"no {kind} after {self.names[layer]}")


class Own(nn.Module):
    """What the package does not have: our head for 256 pixels, and the mean of W."""

    latent_avg: Tensor

    def __init__(self, network: MobileStyleGAN):
        super().__init__()
        self.head = network.head
        self.register_buffer("latent_avg", network.latent_avg)


def read_state() -> dict[str, Tensor]:
    """The tensors of `MobileStyleGAN` that the package has. Raises CheckpointError as `files`."""
    paths = files()
    return {
        **_read_mapping(Graph(paths["MappingNetwork.xml"])),
        **_read_synthesis(Graph(paths["SynthesisNetwork.xml"])),
    }


def build(tensors: Mapping[str, Tensor], path: Path) -> MobileStyleGAN:
    """The generator with ``tensors``, those of `Own`, of the file at ``path``, frozen.

    Raises CheckpointError if they do not fit.
    """
    network = MobileStyleGAN()
    checkpoints.load_into(network, {**read_state(), **tensors}, path)
    network.quicken()
    return network.eval().requires_grad_(False)


def build_without_head() -> MobileStyleGAN:
    """The generator as the package has it, frozen: its head for 256 pixels is empty, and the mean of W is 0."""
    tensors = Own(MobileStyleGAN()).state_dict()
    return build({name: torch.zeros_like(tensor) for name, tensor in tensors.items()}, Path(PUBLISHED))


def load_with_head(path: Path) -> MobileStyleGAN:
    """The generator with the head of a checkpoint or of a file of weights/, frozen. Raises CheckpointError."""
    tensors, _ = pretrained.read_weights(path)
    return build({name.removeprefix("generator."): tensor for name, tensor in tensors.items()}, path)


def _read_mapping(graph: Graph) -> dict[str, Tensor]:
    tensors = {}
    for number, product in enumerate(graph.of_kind("MatMul")):
        tensors[f"mapping.{number}.weight"] = graph.operand(product)
        tensors[f"mapping.{number}.bias"] = graph.operand(graph.after(product, "Add")).reshape(-1)
    return tensors


def _read_synthesis(graph: Graph) -> dict[str, Tensor]:
    """The convolutions' weights contain the demodulation, which is a constant in this network."""
    depthwise = {_find_kernel_name(graph, layer): layer for layer in graph.of_kind("GroupConvolution")}
    tensors = {"input": graph.named("m.input.input")}
    tensors |= _read_convolution(graph, "conv", "m.conv1", graph.of_kind("Convolution")[0], None)
    last = len(CHANNELS) - 1
    for level in range(last):
        published, level_name = f"m.layers.{level}", f"levels.{level}"
        order = order_blocks(CHANNELS[level])
        for name, value in _read_style(graph, f"{published}.up", 0.5).items():  # half of the sums of the Haar wavelet
            tensors[f"{level_name}.up.{name}"] = value[order]
        for conv in ("conv1", "conv2"):
            layer = depthwise[f"{published}.{conv}.conv.weight_dw"]
            tensors |= _read_convolution(
                graph, f"{level_name}.{conv}", f"{published}.{conv}", graph.after(layer, "Convolution"), layer
            )
    for level in range(last - 1):  # what enters the next wavelet has its order
        order = order_blocks(CHANNELS[level + 1])
        for name in ("kernel", "bias"):
            tensors[f"levels.{level}.conv2.{name}"] = tensors[f"levels.{level}.conv2.{name}"][order]
    for name in ("kernel", "bias"):
        tensors[f"conv.{name}"] = tensors[f"conv.{name}"][order_blocks(CHANNELS[0])]
    head = f"m.layers.{last - 1}.to_img"
    order = order_blocks(12)
    tensors |= {
        f"large_head.style.{name}": value for name, value in _read_style(graph, f"{head}.conv", 0.5 / 8).items()
    }
    tensors["large_head.kernel"] = graph.named(f"{head}.conv.weight")[order]
    tensors["large_head.bias"] = graph.named(f"{head}.bias").reshape(-1)[order] * 0.5
    return tensors


def _read_convolution(
    graph: Graph, own: str, published: str, pointwise: str, depthwise: str | None
) -> dict[str, Tensor]:
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
    return tensors | {
        f"{own}.style.{name}": value for name, value in _read_style(graph, f"{published}.conv", gain).items()
    }


def _read_style(graph: Graph, published: str, gain: float) -> dict[str, Tensor]:
    """The map from a code to the style of a layer, times ``gain``."""
    weight, bias = (graph.named(f"{published}.modulation.{name}") for name in ("weight", "bias"))
    return {"weight": weight * gain, "bias": bias.reshape(-1) * gain}


def _find_kernel_name(graph: Graph, layer: str) -> str:
    return next(graph.names[number] for number in graph.inputs[layer] if graph.kinds[number] == "Const")


def order_blocks(channels: int) -> Tensor:
    """The order that turns the wavelet's channels [C low, (C, 3) high] into the blocks [low, high, high, high]."""
    low = channels // 4
    return torch.cat([torch.arange(low), *(low + 3 * torch.arange(low) + number for number in range(3))])


DRAWN = 4  # images that are drawn at a time
POINTS = 256  # pixels of an image from which the head learns
BATCH = 32  # images of an update
STYLE_RATE, KERNEL_RATE = 1e-4, 3e-4
PSI = (0.5, 1.0)  # truncations of the images
MIXED = 0.25  # share of the images whose last layers have the code of another one


@dataclass(frozen=True)
class Examples:
    """``codes`` (M, STYLE) of the head, ``features`` (M, C, POINTS) of 256 pixels, and their ``colors``
    (M, 3, POINTS).
    """

    codes: Tensor
    features: Tensor
    colors: Tensor


@torch.no_grad()
def draw_examples(network: MobileStyleGAN, count: int, seed: int) -> Examples:
    """Features and colors of ``count`` drawn images at random pixels."""
    rows: list[tuple[Tensor, Tensor, Tensor]] = []
    for batch in trange(-(-count // DRAWN), desc="examples of the head", mininterval=5):
        draw = seeding.make_generator(seed, "head", batch)
        z = torch.from_numpy(draw.standard_normal((2 * DRAWN, STYLE), dtype=np.float32))
        psi = torch.from_numpy(draw.uniform(*PSI, (2 * DRAWN, 1))).float()
        w, other_w = (network.latent_avg + psi * (network.map(z) - network.latent_avg)).chunk(2)
        layers = 2 * LEVELS[LARGE] + 1
        first_layers = int(draw.integers(2, 2 * LEVELS[SIZE])) if draw.random() < MIXED else layers
        codes = [w] * first_layers + [other_w] * (layers - first_layers)
        with precision.use_bfloat16(z.device, network.mixed):
            features = network.features(codes, LEVELS[SIZE])
            last = network.levels[LEVELS[SIZE]](features, codes[-1], codes[-1])
            pictures = inverse_haar(network.large_head(last, codes[-1])).float()
        colors = functional.avg_pool2d(pictures, LARGE // SIZE).flatten(2)
        points = torch.from_numpy(draw.integers(0, SIZE * SIZE, POINTS))
        rows.append((codes[-1], features.float().flatten(2)[..., points].half(), colors[..., points]))
    return Examples(*(torch.cat(column)[:count] for column in zip(*rows, strict=True)))


def train_head(network: MobileStyleGAN, settings: HeadSettings, seed: int) -> dict[str, float]:
    """Train the head of ``network``, in place. Returns its PSNR in dB on images of which it did not learn."""
    examples = draw_examples(network, settings.pictures, seed)
    held = max(BATCH, settings.pictures // 30)
    mean, deviation = examples.codes.mean(0), examples.codes.std()
    codes = (examples.codes - mean) / deviation
    size = examples.features[:-held].float().square().mean((0, 2)).sqrt() + 1e-4
    style = nn.Linear(STYLE, len(size))
    nn.init.zeros_(style.weight)
    nn.init.ones_(style.bias)

    def scaled(rows: Tensor) -> Tensor:
        return examples.features[rows].float() / size[:, None] * style(codes[rows])[..., None]

    def solved() -> tuple[Tensor, Tensor]:
        """The convolution and its bias by least squares: (3, C) and (3,)."""
        products, targets = torch.zeros(len(size) + 1, len(size) + 1).double(), torch.zeros(len(size) + 1, 3).double()
        with torch.no_grad():
            for rows in torch.arange(len(codes) - held).split(BATCH):
                x = functional.pad(scaled(rows), (0, 0, 0, 1), value=1.0).transpose(0, 1).flatten(1).double()
                products += x @ x.T
                targets += x @ examples.colors[rows].transpose(0, 1).flatten(1).T.double()
        products += 1e-4 * products.diagonal().mean() * torch.eye(len(products))
        solution = torch.linalg.solve(products, targets).float()
        return solution[:-1].T.contiguous(), solution[-1]

    def errors(rows: Tensor, kernel: Tensor, bias: Tensor) -> Tensor:
        return (kernel @ scaled(rows) + bias[:, None] - examples.colors[rows]).square().mean()

    kernel, bias = (values.requires_grad_(True) for values in solved())
    optimizer = torch.optim.AdamW(
        [{"params": style.parameters(), "lr": STYLE_RATE}, {"params": [kernel, bias], "lr": KERNEL_RATE}],
        betas=(0.9, 0.98), weight_decay=0.0,
    )  # fmt: skip
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, settings.steps)
    for step in range(settings.steps):
        draw = seeding.make_generator(seed, "head updates", step)
        loss = errors(torch.from_numpy(draw.integers(0, len(codes) - held, BATCH)), kernel, bias)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        kernel, bias = solved()
        unseen = errors(torch.arange(len(codes) - held, len(codes)), kernel, bias)
        head = network.head
        head.style.weight.copy_(style.weight / deviation / size[:, None])
        head.style.bias.copy_((style.bias - style.weight @ mean / deviation) / size)
        head.kernel.copy_(kernel[..., None, None])
        head.bias.copy_(bias)
    return {"psnr": 10 * float(torch.log10(4 / unseen))}
