"""A chain as a picture: raw data at the left, the number at the right. The same chain gives the same bytes.

An arrow is left out if a longer path leads to the same box (the transitive reduction of the graph).
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
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
"""The box of a link (its number), the box of a cell (0, -1, ...), or the gap for an arrow (from, to, column)."""
Point = tuple[float, float]
SWEEPS = 8
"""How many times the order of the boxes is improved, from right to left and from left to right."""
RAW, NETWORK, TRAINED, FACES, MEASURED, JUDGED = "#e3f1ea", "#e4edf7", "#d0e1f3", "#fbe7dc", "#f6ebf3", "#fdf3d9"
FILLS = {
    "faces": RAW, "file": "#efefef", "files": "#efefef", "backbone": NETWORK, "fakes": NETWORK, "invert": NETWORK,
    "method": TRAINED, "ablation": TRAINED, "pseudo_labels": TRAINED, "anonymize": FACES,
    "anonymize_neural": FACES, "anonymize_train": FACES,
    "recover": FACES, "measure": MEASURED, "measure_source": MEASURED, "measure_target": MEASURED,
    "measure_recoveries": MEASURED, "attributes": MEASURED, "features": MEASURED, "key_attacks": MEASURED,
    "metrics": JUDGED,
}  # fmt: skip
PLAIN, CELL, UNKNOWN = "#ffffff", "#222222", "#b00020"


def draw(address: ResolvedAddress, links: Sequence[Link], output: Path) -> None:
    """Write the picture of a chain in the format of the suffix. Raises LineageError if it is not one of FORMATS."""
    if output.suffix not in FORMATS:
        raise LineageError(f"{output} has the wrong suffix. Use {' or '.join(FORMATS)} for the picture of a chain.")
    import matplotlib.pyplot as plt

    ports, paths = _layout(links, len(address.cells))
    right, below = (max(place) for place in zip(*ports.values(), strict=True))
    wide, high = right + WIDE + GAP_X, 2 * below + HIGH + GAP_Y + HEAD
    with canvas.style():
        drawing = plt.figure(figsize=(wide, high))
        ax = drawing.add_axes((0, 0, 1, 1))
        ax.set(xlim=(-GAP_X / 2, wide - GAP_X / 2), ylim=((high - HEAD) / 2, -(high + HEAD) / 2))
        ax.axis("off")
        ax.text(0, -high / 2, address.address, size=11, weight="bold", va="center", color=canvas.INK)
        for path in paths:
            _arrow(ax, [ports[node] for node in path])
        for link in links:
            edge = UNKNOWN if link.raw.startswith("of unknown") else canvas.FAINT
            _box(ax, ports[link.number], FILLS.get(link.name, PLAIN), edge, canvas.INK, _words(link))
        for place, cell in enumerate(address.cells):
            row, *more = cell.title.split(" · ")  # the title of a claim has one part
            words = (_shown(cell.value), " · ".join(more) or row, row if more else "")
            _box(ax, ports[-place], CELL, CELL, "white", words)
        canvas.save(drawing, [output], dpi=150)


def _layout(links: Sequence[Link], cells: int) -> tuple[Mapping[Node, Point], Sequence[Sequence[Node]]]:
    """The point at the left of every node, where arrows end, in inches, and the nodes on the way of every arrow.

    Each box stands as far right as its consumers allow, in an order with few crossings of arrows: the order is by
    barycenters (Sugiyama et al. 1981). An arrow over several columns gets a gap of its own between the boxes of each
    column that it crosses.
    """
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from(link.number for link in links)
    graph.add_edges_from((need, link.number) for link in links for need in link.made_from)
    graph.add_edges_from((links[0].number, -place) for place in range(cells))
    graph = networkx.transitive_reduction(graph)
    columns = [*networkx.topological_generations(graph.reverse())][::-1]
    layers: list[list[Node]] = [sorted(column, reverse=True) for column in columns]
    at = {node: place for place, layer in enumerate(layers) for node in layer}
    paths = []
    for need, user in sorted(graph.edges):
        gaps = [(need, user, place) for place in range(at[need] + 1, at[user])]
        for gap in gaps:
            layers[gap[2]].append(gap)
        paths.append([need, *gaps, user])
    graph.clear_edges()
    for path in paths:
        networkx.add_path(graph, path)
    middle = _swept(layers, graph.pred, graph.succ)
    return {node: (place * (WIDE + GAP_X), middle[node]) for place, layer in enumerate(layers) for node in layer}, paths


def _swept(
    layers: Sequence[list[Node]], needs: Mapping[Node, Mapping], users: Mapping[Node, Mapping]
) -> dict[Node, float]:
    """Order every layer by the mean height of its neighbors. Returns the height of the middle of each node."""
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
    """The height of the middle of each node of a layer. The middle of the layer is 0."""
    ends = [0.0, *accumulate(GAP_Y + HIGH * isinstance(node, int) for node in layer)]
    return {node: round(fmean(both) - ends[-1] / 2, 6) for node, both in zip(layer, pairwise(ends), strict=True)}


def _shown(value: str) -> str:
    """The value of a cell as its box shows it."""
    try:
        return f"{float(value):.6g}"
    except ValueError:
        return value or "no number"


def _box(ax: "Axes", port: Point, fill: str, edge: str, ink: str, words: tuple[str, str, str]) -> None:
    from matplotlib.patches import FancyBboxPatch

    x, y = port[0], port[1] - HIGH / 2
    shape = "round,pad=0,rounding_size=0.06"
    ax.add_patch(FancyBboxPatch((x, y), WIDE, HIGH, boxstyle=shape, fc=fill, ec=edge, lw=0.8, zorder=2))
    for at, text, (size, weight, family) in zip((0.15, 0.34, 0.5), words, LETTERS, strict=True):
        most = int((WIDE - 0.16) * 72 / (0.605 * size))  # the width of a letter is about 0.6 of its size
        line = text if len(text) <= most else f"{text[: most - 1]}\u2026"
        ax.text(x + 0.08, y + at, line, size=size, weight=weight, family=family, color=ink, va="center", zorder=3)


def _arrow(ax: "Axes", ports: Sequence[Point]) -> None:
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
