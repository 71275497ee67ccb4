"""Invented cells, and a table of a paper, for tests of tables and figures."""

from pathlib import Path

from masquerade.papers.context import Context
from masquerade.papers.measured import Results
from masquerade.params.blocks import StandIns

CONTEXT = Context(
    scale="tiny",
    seeds=(0, 1, 2),
    stand_ins=StandIns(datasets={"celeba_hq": "synthetic_hq"}, judges={"azure": "dlib_face", "inception": "mobilenet"}),
    commit="abc1234",
    caution="Numbers mean nothing.",
)
TABLE = """
kind: table
title: Table I
caption: A caption with 100 % & more
source: Table I, section V
dataset: {name: CelebA-HQ, role: celeba_hq}
columns:
  - {title: PSR, metric: psr, judge: {name: Azure Face, role: azure}, direction: higher, digits: 2}
  - {title: FID, substitute: FD, metric: fd, judge: {name: InceptionV3, role: inception}, direction: lower, digits: 1}
  - {title: TAR, metric: tar, judge: {name: dlib, role: dlib_face}, direction: lower, digits: 3, spread: metric,
     printed: false}
rows:
  - {title: Noise(σ=9), method: noise, variant: sigma_9, printed: [0.020, 7.10]}
  - {title: Blur_1, method: blur, variant: size_7, printed: [0.5, null], note: the paper gives no FID}
  - {title: Ours(ε=6), method: ours, variant: eps_6, printed: [0.908 ± 0.010, 2.0]}
  - {title: Other, method: other, variant: default, printed: [0.1, 9]}
  - {title: Original, method: original, variant: control, control: true, note: "control: the picture itself"}
"""


def number(value, over=10, of=10, **more):
    return {"value": value, "over": over, "of": of, "spread": None, "spread_of": "", "note": "", **more}


def cell(method, variant, psr, fd, tar, seed=0, **statement):
    metrics = {"psr": {"dlib_face": psr}, "fd": {"mobilenet": fd}, "tar": {"dlib_face": tar}}
    key = {"dataset": "synthetic_hq", "method": method, "variant": variant, "seed": seed}
    return {"cell": key, "statement": {"faces": 10, "refused": 0, **statement}, "metrics": metrics}


def tar(value, spread=0.1):
    return number(value, spread=spread, spread_of="10 folds")


CELLS = [
    cell("noise", "sigma_9", number(0.25), number(3.0), tar(0.9)),
    cell("blur", "size_7", number(0.5, over=7), number(None, over=0, note="fewer than 2 images"), tar(0.5)),
    *(
        cell("ours", "eps_6", number(value), number(4.0), tar(0.2, spread), seed, epsilon=6.0, sensitivity=27.5 + seed)
        for seed, value, spread in [(0, 0.8, 0.03), (1, 0.9, 0.04), (2, 0.7, 0.05)]
    ),
    cell("original", "control", number(1.0), number(0.0), tar(0.0)),
]
SKIPPED = {("synthetic_hq", "other", "default"): "other is not built yet"}


def results(cells=CELLS, skipped=SKIPPED, context=CONTEXT) -> Results:
    return Results(cells, skipped, context)


def written(folder: Path, text: str, name: str = "table1") -> Path:
    path = folder / "paper" / f"{name}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def rows_of(markdown: str) -> dict[str, list[str]]:
    lines = [line for line in markdown.split("## What")[0].splitlines() if line.startswith("|")]
    return {cells[0]: cells[1:] for cells in ([part.strip() for part in line.strip("|").split("|")] for line in lines)}


CURVES = """
kind: curves
title: Figure 4
caption: Curves
source: Figure 4, section V
dataset: {name: CelebA-HQ, role: celeba_hq}
method: ours
variant: eps_*
fact: epsilon
axis: Privacy budget
states: [sensitivity]
controls:
  - {title: original, method: original, variant: control}
panels:
  - title: (a) PSR
    percent: true
    curves:
      - title: Azure
        metric: psr
        judge: {name: Azure Face, role: azure}
        markers: [{at: 0.01, printed: 97.367%, source: section V}, {at: 800, printed: 1.125%, source: section V}]
      - {title: absent, metric: none, printed: false}
"""
