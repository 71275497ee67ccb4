"""A chain as a picture: raw data at the left, the number at the right. The same chain gives the same bytes.

An arrow is left out if a longer path leads to the same box (the transitive reduction of the graph).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from statistics import fmean
from typing import TYPE_CHECKING

from masquerade.core import canvas
from masquerade.lineage.address import ResolvedAddress
from masquerade.lineage.chain import Link
from masquerade.lineage.history import LineageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".png")
WIDE, HIGH, GAP_X, GAP_Y, HEAD = 2.05, 0.62, 0.75, 0.2, 0.5
"""Width and height of a box, the gaps between boxes, and the height of the title, in inches."""
LETTERS = ((8.0, "bold", "DejaVu Sans"), (6.5, "normal", "DejaVu Sans"), (5.5, "normal", "DejaVu Sans Mono"))
"""Size, weight and font of the three lines of a box."""
Node = int | tuple[int, int, int]
"""A box, or the gap for an arrow (from, to, column)."""
SWEEPS = 8
"""How many times the order of the boxes is improved, from right to left and from left to right."""
RAW, NETWORK, TRAINED, FACES, MEASURED, JUDGED = "#e3f1ea", "#e4edf7", "#d0e1f3", "#fbe7dc", "#f6ebf3", "#fdf3d9"
FILLS = {
    "faces": RAW, "file": "#efefef", "files": "#efefef", "backbone": NETWORK, "fakes": NETWORK, "invert": NETWORK,
    "method": TRAINED, "ablation": TRAINED, "pseudo_labels": TRAINED, "anonymize": FACES,
    "anonymize_neural": FACES, "anonymize_train": FACES,
    "recover": FACES, "measure": MEASURED, "measure_source": MEASURED, "measure_target": MEASURED,
    "measure_attempts": MEASURED, "attributes": MEASURED, "features": MEASURED, "key_attacks": MEASURED,
    "metrics": JUDGED,
}  # fmt: skip
PLAIN, CELL, UNKNOWN = "#ffffff", "#222222", "#b00020"


@dataclass(frozen=True)
class Layout:
    """The places of the boxes, in inches from the upper left corner, and the path of every arrow."""

    corners: Mapping[Node, tuple[float, float]]
    """Number of a link -> the upper left corner of its box."""
    paths: Sequence[Sequence[tuple[float, float]]]
    """Of each arrow: the points at the left of the boxes and gaps that it passes."""
    wide: float
    high: float


def draw(address: ResolvedAddress, links: Sequence[Link], output: Path) -> None:
    """Write the picture of a chain in the format of the suffix. Raises LineageError if it is not one of FORMATS."""
    if output.suffix not in FORMATS:
        raise LineageError(f"{output} has the wrong suffix. Use {' or '.join(FORMATS)} for the picture of a chain.")
    import matplotlib.pyplot as plt

    layout = _layout(links, len(address.cells))
    with canvas.style():
        drawing = plt.figure(figsize=(layout.wide, layout.high))
        ax = drawing.add_axes((0, 0, 1, 1))
        ax.set(xlim=(0, layout.wide), ylim=(layout.high, 0))
        ax.axis("off")
        ax.text(GAP_X / 2, HEAD / 2, address.address, size=11, weight="bold", va="center", color=canvas.INK)
        for path in layout.paths:
            _arrow(ax, path)
        for link in links:
            edge = UNKNOWN if link.raw.startswith("of unknown") else canvas.FAINT
            _box(ax, layout.corners[link.number], FILLS.get(link.name, PLAIN), edge, canvas.INK, _words(link))
        _cells(ax, address, layout.corners[links[0].number])
        canvas.save(drawing, [output], dpi=150)


def _layout(links: Sequence[Link], cells: int) -> Layout:
    """Place each box as far right as its consumers allow, in an order with few crossings of arrows.

    The order is by barycentres (Sugiyama et al. 1981). An arrow over several columns gets a gap of its own between the
    boxes of each column that it crosses.
    """
    column, arrows = _columns(links)
    layers: list[list[Node]] = [[n for n in column if column[n] == at] for at in range(max(column.values()) + 1)]
    needs: dict[Node, list[Node]] = defaultdict(list)
    users: dict[Node, list[Node]] = defaultdict(list)
    paths: list[list[Node]] = []
    for need, user in arrows:
        gaps = [(need, user, at) for at in range(column[need] + 1, column[user])]
        for gap in gaps:
            layers[gap[2]].append(gap)
        paths.append([need, *gaps, user])
        for before, after in pairwise(paths[-1]):
            needs[after].append(before)
            users[before].append(after)
    middle = _sweep(layers, needs, users)
    tallest = max(max(map(_height, layer)) / 2 + middle[layer[-1]] for layer in layers if layer)
    high = HEAD + 2 * max(tallest, cells * (HIGH + GAP_Y) / 2) + GAP_Y
    corners: dict[Node, tuple[float, float]] = {
        node: (GAP_X / 2 + at * (WIDE + GAP_X), HEAD + (high - HEAD) / 2 + middle[node] - _height(node) / 2)
        for at, layer in enumerate(layers)
        for node in layer
    }
    wide = GAP_X + (len(layers) + bool(cells)) * (WIDE + GAP_X) - GAP_X
    return Layout(corners, [[_port(node, corners[node]) for node in path] for path in paths], wide, high)


def _columns(links: Sequence[Link]) -> tuple[dict[int, int], list[tuple[int, int]]]:
    """(link number -> column, the arrows (from, to) without those that a longer path implies)."""
    import networkx

    graph = networkx.DiGraph([(need, link.number) for link in links for need in link.made_from])
    graph.add_nodes_from(link.number for link in links)
    arrows = sorted(networkx.transitive_reduction(graph).edges)
    column: dict[int, int] = {}
    for link in reversed(links):  # the sources of a link have greater numbers
        column[link.number] = max((column[need] + 1 for need, user in arrows if user == link.number), default=0)
    for link in links:  # move each box right, next to its first consumer
        column[link.number] = min((column[user] - 1 for need, user in arrows if need == link.number),
                                  default=column[link.number])  # fmt: skip
    return column, arrows


def _sweep(
    layers: Sequence[list[Node]], needs: Mapping[Node, list[Node]], users: Mapping[Node, list[Node]]
) -> dict[Node, float]:
    """Order every layer by the mean height of its neighbours. Returns the height of the middle of each node."""
    middle: dict[Node, float] = {}
    for layer in layers:
        middle |= _stacked(layer)
    for sweep in range(2 * SWEEPS):
        near = needs if sweep % 2 else users
        for layer in layers if sweep % 2 else reversed(layers):
            layer.sort(key=lambda node: fmean(middle[other] for other in near[node]) if near[node] else middle[node])
            middle |= _stacked(layer)
    return middle


def _stacked(layer: Sequence[Node]) -> dict[Node, float]:
    total, below, middle = sum(_height(node) + GAP_Y for node in layer), 0.0, {}
    for node in layer:
        middle[node] = below + (_height(node) + GAP_Y) / 2 - total / 2
        below += _height(node) + GAP_Y
    return middle


def _height(node: Node) -> float:
    return HIGH if isinstance(node, int) else 0.0


def _port(node: Node, corner: tuple[float, float]) -> tuple[float, float]:
    """The point at the left of a node where an arrow ends. The next arrow starts WIDE further right."""
    return corner[0], corner[1] + _height(node) / 2


def _cells(ax: "Axes", address: ResolvedAddress, table: tuple[float, float]) -> None:
    """Draw the numbers of the address at the right of the table that holds them."""
    x, y = table
    for place, cell in enumerate(address.cells):
        top = y + (place - (len(address.cells) - 1) / 2) * (HIGH + GAP_Y)
        _arrow(ax, [(x, y + HIGH / 2), (x + WIDE + GAP_X, top + HIGH / 2)])
        value = f"{float(cell.value):.6g}" if _number(cell.value) else cell.value or "no number"
        row, *more = cell.title.split(" · ")  # the title of a claim has one part
        words = (value, " · ".join(more) or row, row if more else "")
        _box(ax, (x + WIDE + GAP_X, top), CELL, CELL, "white", words)


def _box(ax: "Axes", corner: tuple[float, float], fill: str, edge: str, ink: str, words: tuple[str, str, str]) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = corner
    shape = "round,pad=0,rounding_size=0.06"
    ax.add_patch(FancyBboxPatch(corner, WIDE, HIGH, boxstyle=shape, fc=fill, ec=edge, lw=0.8, zorder=2))
    for at, text, (size, weight, family) in zip((0.15, 0.34, 0.5), words, LETTERS, strict=True):
        most = int((WIDE - 0.16) * 72 / (0.605 * size))  # the width of a letter is about 0.6 of its size
        line = text if len(text) <= most else f"{text[: most - 1]}\u2026"
        ax.text(x + 0.08, y + at, line, size=size, weight=weight, family=family, color=ink, va="center", zorder=3)


def _arrow(ax: "Axes", ports: Sequence[tuple[float, float]]) -> None:
    """Draw an arrow from the right of the first box to the left of the last one. It is level in the gaps between."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    points, codes = [(ports[0][0] + WIDE, ports[0][1])], [Curve.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(ports):
        middle = (x0 + WIDE + x1) / 2
        points += [(x0 + WIDE, y0), (middle, y0), (middle, y1), (x1, y1)]
        codes += [Curve.LINETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4]
    style = "-|>,head_length=3,head_width=1.6"
    path = Curve(points, codes)
    ax.add_patch(FancyArrowPatch(path=path, arrowstyle=style, color="#9a9a9a", lw=0.7, shrinkB=0, zorder=1))


def _words(link: Link) -> tuple[str, str, str]:
    """The three lines of a box: rule, subject, and hash of the first file."""
    path, digest = next(iter(link.files.items()))
    if link.job is None:
        return link.name, path, digest
    parts = PurePosixPath(path).with_suffix("").parts  # data/<scale>/<kind>/...
    return link.name, "/".join(parts[3:] or parts[-1:]), digest.replace(":", " ")


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
