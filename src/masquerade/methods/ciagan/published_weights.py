"""Reads the published weight file of CIAGAN's generator, ``modelG.pth``: a plain state dict (docs/ciagan.md)."""

from pathlib import Path

from masquerade.methods.ciagan.settings import CiaganSettings
from masquerade.methods.ciagan.training import generator
from masquerade.networks.ciagan import CiaganGenerator
from masquerade.training import weight_files

LEVELS = 5
"""Halvings of the published network of 128 pixels. That of 64 pixels lacks the first, number 0."""
PLAIN = {"weight": "weight", "bias": "bias"}
SPECTRAL = {
    "weight_orig": "parametrizations.weight.original",
    "weight_u": "parametrizations.weight.0._u",
    "weight_v": "parametrizations.weight.0._v",
    "bias": "bias",
}
"""Names of a convolution with spectral norm, by the older interface of PyTorch -> by the newer one."""


def network(params: CiaganSettings, path: Path) -> CiaganGenerator:
    """The generator of a file with the published layout and the sizes of ``params``, frozen.

    Raises CheckpointError naming tensors that are missing, left over, of another shape, or with NaN or infinity.
    """
    given = weight_files.tensors(weight_files.read(path), path)
    return weight_files.load(generator(params), weight_files.renamed(given, names(params), path), path)


def names(params: CiaganSettings) -> dict[str, str]:
    """Published name -> our name of each tensor of a generator with the sizes of ``params``."""
    first, convolutions, plain = LEVELS - len(params.down), {"embed.0": "merge.0"}, {"embed.1": "merge.1"}
    residual = {"conv_r1": "first", "conv_r2": "second", "conv_l": "beside"}
    for level in range(len(params.down)):
        theirs, back = first + level, LEVELS - 1 - level
        convolutions |= {f"conv{theirs}.{a}": f"down.{level}.{b}" for a, b in residual.items()}
        convolutions |= {f"deconv{back}.{a}": f"up.{level}.{b}" for a, b in residual.items()}
        plain |= {f"deconv{back}.norm_r{number}": f"up.{level}.norm{number}" for number in (1, 2)}
        plain |= {f"in{theirs}_e": f"down_norms.{level}", f"in{back}_d": f"up_norms.{level}"}
    plain |= {f"encode_one_hot.{2 * layer}": f"label.{2 * layer}" for layer in range(len(params.identity))}
    for at in (0, 3, 6):  # convolution, LeakyReLU, norm
        convolutions[f"encode_noise.{at}"], plain[f"encode_noise.{at + 2}"] = f"spread.{at}", f"spread.{at + 2}"
    for block in range(params.blocks):
        convolutions |= {f"res{block + 1}.conv{n}": f"middle.{block}.layers.{at}" for n, at in ((1, 0), (2, 3))}
        plain |= {f"res{block + 1}.in{n}": f"middle.{block}.layers.{at}" for n, at in ((1, 1), (2, 4))}
    plain["conv_end.0"] = "end"
    found = {f"{a}.conv2d.{x}": f"{b}.{y}" for a, b in convolutions.items() for x, y in SPECTRAL.items()}
    return found | {f"{a}.{x}": f"{b}.{y}" for a, b in plain.items() for x, y in PLAIN.items()}
