"""The table of backbones: the quality of each frozen network beside the floor that it must reach."""

from collections.abc import Iterable, Mapping
from typing import Any

from masquerade import assets
from masquerade.core import weight_names
from masquerade.papers import documents, layout
from masquerade.params.slices import Slice

HEAD = ["Backbone", "Network", "Weights", "Figure", "Value", "Floor"]


def markdown(qualities: Iterable[Mapping[str, Any]], params: Slice, commit: str) -> str:
    """One line for each figure. Details of a figure (``zero_shot.Male``) stay in the JSON beside the checkpoint.

    ``params`` has the ``scale``, its ``caution``, and the weights that methods adopt.
    """
    qualities = list(qualities)
    rows = [row for quality in qualities for row in _rows(quality)]
    parts = [
        "# Backbones",
        f"> Scale `{params['scale']}`. {params['caution']}".rstrip(),
        documents.markdown_grid(HEAD, rows, left=4),
        "Measured on the validation split, whose people no network was trained on. Below its floor (params.yaml) a "
        "backbone stops the run. What each figure means, and how each network is trained: docs/backbones.md.",
        *_describe_adopted(qualities, params),
        f"Code: commit {commit}.",
    ]
    return "\n\n".join(parts) + "\n"


def _describe_adopted(qualities: Iterable[Mapping[str, Any]], params: Slice) -> list[str]:
    """The remarks on adopted networks: whose figures these are, which methods adopt, and from what they learned."""
    remarks = []
    if scales := sorted({quality.get("figures_of", "") for quality in qualities} - {""}):
        remarks.append(
            "The figures of pretrained weights (`weights:...`) are those of their model cards: scale "
            f"{', '.join(scales)} measured them on its own people."
        )
    adopted: dict[str, str] = {}
    for name, block in params.get("methods", {}).items():
        ablations = block.get("published_ablations", {})
        adopted |= {name: block["published"]} | {f"{name}/{variant}": ablations[variant] for variant in ablations}
    if listed := [f"`{name}` (`{weights}`)" for name, weights in adopted.items() if weights]:
        remarks.append(
            f"Methods whose pretrained weights were loaded, so that they were not trained here: {', '.join(listed)}."
        )
    roles = filter(None, map(weight_names.parse_asset_role, adopted.values()))
    official = {role: assets.asset(role).title for role in roles}
    if official:
        listed = [f"`{role}` ({title})" for role, title in official.items()]
        remarks.append(
            f"Official files of methods: {', '.join(listed)}. These networks learned from the data of their authors "
            "and not from the people of this scale. They may have seen people who are tested here."
        )
    return remarks


def _rows(quality: Mapping[str, Any]) -> list[list[str]]:
    figures = {name: value for name, value in quality["quality"].items() if "." not in name.replace("_0.", "_0_")}
    floors = quality["floors"]
    weights = f"`{quality['published']}`" if quality["published"] else "trained here"
    network = [f"`{quality['backbone']}`", quality["title"], weights]
    return [
        [*(network if number == 0 else ["", "", ""]), name.replace("_", " "), _number(value), _number(floors.get(name))]
        for number, (name, value) in enumerate(figures.items())
    ]


def _number(value: float | None) -> str:
    if value is None:
        return layout.NONE
    return f"{value:.0f}" if float(value).is_integer() and abs(value) > 1 else f"{value:.4g}"
