"""Draws the graph of the rules at scale `mini` into docs/rule_graph.svg: ``python benchmarks/rule_graph.py``.

An arrow leads from a rule to one that reads its files. Arrows that follow from others are left out.
"""

import subprocess
from pathlib import Path

import matplotlib as mpl
import networkx as nx
import pydot
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs/rule_graph.svg"
HALF = 0.4
"""Half the width of a rule, in columns."""
FILES = {
    "data": "#4c956c", "backbones": "#d68c45", "latents": "#d68c45", "train": "#d68c45",
    "anonymize": "#2c6e9b", "recover": "#2c6e9b", "features": "#2c6e9b", "attackers": "#a23e48",
    "measure": "#6d597a", "attributes": "#6d597a", "metrics": "#6d597a", "tables": "#5c677d", "report": "#5c677d",
}  # fmt: skip
"""File of workflow/rules/ -> the color of its rules."""


def read_rules() -> dict[str, str]:
    """Rule -> the file of workflow/rules/ that declares it."""
    rules = {}
    for file in FILES:
        for line in (ROOT / f"workflow/rules/{file}.smk").read_text(encoding="utf-8").splitlines():
            if line.startswith(("rule ", "use rule ")):
                rules[line.rstrip(":").removesuffix(" with").split()[-1]] = file
    return rules


def read_graph() -> nx.DiGraph:
    """The rules that `snakemake all` runs at scale `mini`, with an arrow to each rule that reads their files."""
    command = ["snakemake", "--rulegraph", "dot", "--config", "scale=mini"]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    (declared,) = pydot.graph_from_dot_data(text[text.index("digraph") :]) or ()
    names = {node.get_name(): node.get_label().strip('"') for node in declared.get_nodes() if node.get_label()}
    graph = nx.DiGraph((names[edge.get_source()], names[edge.get_destination()]) for edge in declared.get_edges())
    graph.remove_node("all")
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))  # backbones and methods read others of their kind
    graph = nx.contracted_nodes(graph, "anonymize", "anonymize_neural", self_loops=False)  # one rule for two machines
    return nx.transitive_reduction(graph)


def place_rules(graph: nx.DiGraph) -> dict[str, tuple[float, float]]:
    """Rule -> its place: columns from left to right in the order of work, and beside what it reads."""
    places: dict[str, tuple[float, float]] = {}
    for column, rules in enumerate(nx.topological_generations(graph)):

        def height(rule: str) -> float:
            above = [places[other][1] for other in graph.predecessors(rule)]
            return sum(above) / len(above) if above else 0.0

        ordered = sorted(sorted(rules), key=height, reverse=True)
        for row, rule in enumerate(ordered):
            places[rule] = column, (len(ordered) - 1) / 2 - row
    return places


def main() -> None:
    graph, rules = read_graph(), read_rules()
    places = place_rules(graph)
    mpl.rcParams.update({"svg.hashsalt": "rules", "svg.fonttype": "none", "font.family": "sans-serif"})
    figure, axes = plt.subplots(figsize=(16, 6), layout="constrained")
    for rule, (x, y) in places.items():
        axes.add_patch(plt.Rectangle((x - HALF, y - 0.22), 2 * HALF, 0.44, color=FILES[rules[rule]], zorder=2))
        axes.text(x, y, rule, ha="center", va="center", fontsize=9, color="white", zorder=3)
        for after in graph.successors(rule):
            start, end = (x + HALF, y), (places[after][0] - HALF, places[after][1])
            axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": "#9aa0a6"}, zorder=1)
    xs, ys = zip(*places.values(), strict=True)
    axes.set(xlim=(min(xs) - 0.6, max(xs) + 0.6), ylim=(min(ys) - 0.6, max(ys) + 0.6))
    axes.axis("off")
    figure.savefig(PICTURE, metadata={"Date": None})


if __name__ == "__main__":
    main()
