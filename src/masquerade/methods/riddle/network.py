"""The latent encryptor of RiDDLE (Li et al. 2023, arXiv:2303.05171): a transformer between codes of W+ and a password.

There is one decoder layer for each group of style layers. The codes of the group are its queries, and the password is
its memory. The same network encrypts and decrypts.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import torch
from torch import Tensor, nn

from masquerade.methods.riddle.visible import VisibleCodes

CORRECTION_RATE, CORRECTION_FALL = 0.05, 0.9
"""Rate of the first step of a correction, in deviations of faces, and the share by which it falls until the last."""

CORRECTABLE = 0.35
"""An answer of the network is corrected if what it is encrypted to has at most this mean squared distance from what was
read, over coordinates in deviations of faces. For 12 validation people of ``photo`` the distance was at most 0.19 under
the right password, and at least 0.63 under a wrong one."""


def divide_layers(groups: Sequence[int], layers: int) -> list[int]:
    """Groups of style layers for a generator with ``layers`` of them, in the proportion of ``groups``.

    The ends of the groups are round(end * layers / sum(groups)): (4, 4, 6) becomes 3, 3, 4 for 10 layers. Raises
    ValueError if a group would be empty.
    """
    ends = [round(end * layers / sum(groups)) for end in accumulate(groups, initial=0)]
    sizes = [end - start for start, end in pairwise(ends)]
    if min(sizes) < 1:
        raise ValueError(f"{layers} style layers cannot be divided as {tuple(groups)}")
    return sizes


class GroupEncryptor(nn.Module):
    """One group: codes (N, layers, style) and the password of each layer, same shape -> codes, same shape.

    A transformer decoder layer (Vaswani et al. 2017) of ``width`` numbers, with normalization before each part, between
    two linear layers. Each style layer has a learned position.
    """

    def __init__(self, layers: int, style: int, width: int, heads: int, hidden: int):
        super().__init__()
        self.enter, self.password, self.leave = (
            nn.Linear(style, width),
            nn.Linear(style, width),
            nn.Linear(width, style),
        )
        self.position = nn.Parameter(torch.zeros(layers, width))
        self.layer = nn.TransformerDecoderLayer(
            width, heads, hidden, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )

    def forward(self, codes: Tensor, password: Tensor) -> Tensor:
        return self.leave(self.layer(self.enter(codes) + self.position, self.password(password)))


class LatentEncryptor(nn.Module):
    """W+ (N, layers, style) and passwords in W (N, style) -> W+ (N, layers, style): encrypts, and decrypts.

    ``groups``: numbers of style layers, which `divide_layers` adapts to ``layers``. Codes and passwords are
    standardized by ``mean`` (style,) and ``deviation`` () of W before the transformer, and the result the reverse. With
    ``visible`` directions (ours; 0: none), codes are reduced to these before and after it. Raises ValueError if a group
    would be empty or ``heads`` does not divide ``width``.
    """

    mean: Tensor
    deviation: Tensor
    visible: VisibleCodes | None

    def __init__(
        self,
        layers: int,
        style: int = 512,
        groups: Sequence[int] = (4, 4, 6),
        width: int = 512,
        heads: int = 4,
        hidden: int = 1024,
        visible: int = 0,
    ):
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads do not divide {width} numbers equally")
        self.sizes = divide_layers(groups, layers)
        self.groups = nn.ModuleList(GroupEncryptor(size, style, width, heads, hidden) for size in self.sizes)
        self.register_buffer("mean", torch.zeros(style))
        self.register_buffer("deviation", torch.ones(()))
        self.visible = VisibleCodes(layers, style, visible) if visible else None

    def forward(self, codes: Tensor, password: Tensor) -> Tensor:
        codes = self._reduce(codes)
        key = self.standardize(password)[:, None].expand_as(codes)  # the same for every layer
        parts = zip(self.groups, self.standardize(codes).split(self.sizes, 1), key.split(self.sizes, 1), strict=True)
        return self._reduce(self.mean + self.deviation * torch.cat([group(*part) for group, *part in parts], dim=1))

    def correct(self, decrypted: Tensor, encrypted: Tensor, password: Tensor, steps: int) -> Tensor:
        """Codes near ``decrypted`` that this network encrypts to nearly ``encrypted``, all (N, layers, style) (ours).

        The network decrypts only nearly what it encrypted. ``steps`` steps of Adam on the visible coordinates, from its
        answer on, lower the squared distance between what they are encrypted to and what was read. Each face has steps
        of its own, so that it does not depend on the others. An answer that is not encrypted to nearly what was read
        (`CORRECTABLE`), as under a wrong password, is returned as it is.
        """
        visible, layers = self.visible, decrypted.shape[1]
        assert visible is not None
        target = visible.find_coordinates(encrypted)

        def measure(coordinates: Tensor) -> Tensor:
            again = self(visible.build_codes(coordinates, layers), password)
            return (visible.find_coordinates(again) - target).square().mean(dim=1)

        start = visible.find_coordinates(decrypted).detach()
        with torch.no_grad():
            correctable = measure(start) <= CORRECTABLE
        coordinates = start.clone().requires_grad_(True)
        optimizer = torch.optim.Adam([coordinates], lr=CORRECTION_RATE)
        with torch.enable_grad():
            for step in range(steps):
                optimizer.param_groups[0]["lr"] = CORRECTION_RATE * (1 - CORRECTION_FALL * step / steps)
                optimizer.zero_grad()
                measure(coordinates).sum().backward()
                optimizer.step()
        corrected = visible.build_codes(coordinates.detach(), layers)
        return torch.where(correctable[:, None, None], corrected, decrypted)

    def _reduce(self, codes: Tensor) -> Tensor:
        return codes if self.visible is None else self.visible(codes)

    def standardize(self, codes: Tensor) -> Tensor:
        """Codes of W or W+ (..., style), standardized by mean and deviation of W."""
        return (codes - self.mean) / self.deviation
