"""Writes the tables of results in docs/ and README.md from a build, and the pictures beside them.

`python benchmarks/results_page.py` after `make reproduce`. A table follows the line `<!-- results: NAME -->` and ends
at an empty line; the prose around it is written by hand. `<!-- results: NAME at SCALE -->` is of another scale, and
stays as it is without a build of that scale.
"""

import argparse
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

ROOT = Path(__file__).parents[1]
PAGES = ("docs/results.md", "docs/identitydp.md", "docs/attackers.md", "docs/notes/attackers.md", "README.md")
PICTURES = {
    "figure7.jpg": "identitydp/figure7",
    "falco.jpg": "falco/figure3 at photo",
    "falco_mini.jpg": "falco/figure3",
    "ifadit.jpg": "ifadit/figure3 at photo",
    "lreorg.jpg": "lreorg/figure9 at photo",
    "attackers_evening.jpg": "attackers/tradeoff at evening",
}
"""Name in docs/ -> paper and figure, and the scale if it is another one than that of the build."""
WIDEST, LARGEST = 1500, 199_000
"""Largest width of a picture in pixels, and size in bytes."""
DATASET = "synthetic_hq"
DIGITS = {"psnr": 1, "frechet_distance": 0}
"""Decimals of a metric; 2 of any other."""
NONE = "–"

SCALES = ("mini", "evening")
"""The scales of the table of claims and pairs."""
CLAIMS = r"^\| `\w+` +\| +(\d+) \| +(\d+) \| +(\d+) \| +(\d+) \|$"
"""A paper's line on the page of claims."""
PAIRS = (
    r"Of (\d+) pairs of rows that the paper orders, (\d+) have the same order here, (\d+) the opposite one, and (\d+)"
)
"""The sentence under a table."""
STANDING = (
    "claims",
    "hold",
    "do not hold",
    "cannot be told",
    "pairs of rows",
    "as in the paper",
    "opposite",
    "undecided",
)

Columns = dict[str, tuple[str, ...]]
"""Heading -> the values that stand in the column, as `cell` reads them."""
CONTROLS = {
    "*control: original*": "original/control",
    "*control: another person*": "random_identity/control",
    "*control: blackout*": "blackout/control",
}
INVERTED = {"*control: inverted*": "inverted/control"}
OBFUSCATIONS = {
    "Pixelization(16×16)": "pixelation/block_16",
    "Blur(19×19)": "gaussian_blur/size_19",
    "k-same (k = 5)": "k_same/k_5",
    "**IdentityDP (ε = 6)**": "identitydp/eps_6",
}
SWEEP = ("0.57", "6", "100", "200", "400", "800")
RECOGNISERS = ("recogniser_a", "recogniser_b")
KEYED = {
    "**Cao et al., d = 9**": "cao21/d_9",
    "**iFADIT**": "ifadit/full",
    "FIT": "fit/default",
    "RiDDLE": "riddle/default",
}
METHODS = {
    **OBFUSCATIONS,
    "**FALCO (m = 0)**": "falco/m_0",
    "**FALCO (m = 0.9)**": "falco/m_0_9",
    "**Cao et al., d = 9**": "cao21/d_9",
    "**iFADIT**": "ifadit/full",
    "**LReOrg**": "lreorg/default",
    "FIT": "fit/default",
    "RiDDLE": "riddle/default",
    "DeepPrivacy": "deepprivacy/default",
    "DeepPrivacy2": "deepprivacy2/default",
    "CIAGAN": "ciagan/default",
    "LDFA": "ldfa/default",
    "DartBlur": "dartblur/default",
    "AnonymousNet": "anonymousnet/default",
    "Fawkes (evasion)": "fawkes/default",
    "CLIP2Protect (evasion)": "clip2protect/default",
}
ATTACKED = {
    "Blur(19×19)": "gaussian_blur/size_19",
    "Pixelization(16×16)": "pixelation/block_16",
    "k-same (k = 5)": "k_same/k_5",
    "**IdentityDP (ε = 6)**": "identitydp/eps_6",
    "**FALCO (m = 0)**": "falco/m_0",
    "**Cao et al., d = 9**": "cao21/d_9",
    "**iFADIT**": "ifadit/full",
    "**LReOrg**": "lreorg/default",
    "FIT": "fit/default",
    "RiDDLE": "riddle/default",
    "DeepPrivacy": "deepprivacy/default",
    "DeepPrivacy2": "deepprivacy2/default",
    "CIAGAN": "ciagan/default",
    "AnonymousNet": "anonymousnet/default",
    "LDFA": "ldfa/default",
    "DartBlur": "dartblur/default",
    "Fawkes": "fawkes/default",
    "CLIP2Protect": "clip2protect/default",
}
LREORG = {
    "**hides identity, keeps the rest**": "lreorg/default",
    "hides age alone": "lreorg/age",
    "hides gender alone": "lreorg/gender",
    **INVERTED,
}


def rates(keyword: str) -> str:
    return f"attribute_preservation_rate/attribute_classifier.{keyword}.balanced"


def attacked(attack: str) -> tuple[str, str]:
    return f"key_attack_rate/{attack}", f"key_attack_rate/{attack}.another"


def cosine(attempt: str) -> tuple[str]:
    return (f"{attempt}:identity_similarity/recogniser_a",)


def ranks(*attackers: str) -> tuple[str, ...]:
    return tuple(f"attack_rank1_rate/{attacker}" for attacker in attackers)


INFORMED: Columns = {
    "**worst**": ranks("worst"),
    "naive": ranks("naive"),
    "adapted": ranks("adapted"),
    "restoring": ranks("restoring"),
    "parrot (links)": ranks("parrot"),
    "landmark error, %": ("twin_landmark_error/",),
}
HELD_OUT: Columns = {
    "naive": ("attack_held_out_rate/naive",),
    "adapted": ("attack_held_out_rate/adapted",),
    "restoring": ("attack_held_out_rate/restoring",),
    "insider": ("attack_held_out_rate/insider",),
    "parrot (links)": ("attack_held_out_rate/parrot",),
    "shuffled names": ("attack_held_out_rate/shuffled",),
}
POISONED: Columns = {
    "baseline": ("poisoning_protection_rate/identity",),
    "`recogniser_a`": ("poisoning_protection_rate/recogniser_a",),
    "adaptive": ("poisoning_protection_rate/adaptive",),
}
DISTANCE: Columns = {"identity distance, `recogniser_a`": ("identity_distance/recogniser_a",)}
PSNR: Columns = {"PSNR": ("psnr/",)}
HOG: Columns = {"faces found, HOG": ("detection_rate/dlib_face",)}
TABLES: dict[str, tuple[str, dict[str, str], Columns]] = {
    "readme": (
        "method, at mini scale, seed 0",
        OBFUSCATIONS | {name: CONTROLS[name] for name in list(CONTROLS)[:2]},
        DISTANCE | {"protected, `recogniser_a`": ("protection_success_rate_at_far/recogniser_a",)} | PSNR | HOG,
    ),
    "sweep": (
        "variant",
        {f"ε = {epsilon}": f"identitydp/eps_{epsilon.replace('.', '_')}" for epsilon in SWEEP},
        {f"PSR, `{judge}`": (f"protection_success_rate_at_far/{judge}",) for judge in RECOGNISERS}
        | {"PSR, dlib": ("protection_success_rate_at_far/dlib_face",)}
        | DISTANCE
        | PSNR
        | HOG,
    ),
    "methods": (
        "method",
        METHODS | INVERTED | CONTROLS,
        {
            "PSR, `recogniser_a`": ("protection_success_rate_at_far/recogniser_a",),
            "attributes kept, balanced": ("attribute_preservation_rate/attribute_classifier.balanced",),
            "FD": ("frechet_distance/mobilenet_v2",),
        },
    ),
    "recovery": (
        "method",
        KEYED,
        {
            "anonymized": ("identity_similarity/recogniser_a",),
            "right key, from the picture": cosine("recovered"),
            "right key, from what can be saved": cosine("saved"),
            "wrong keys": cosine("wrong"),
            "named by any of 60 keys / control": attacked("any_guess"),
        },
    ),
    "attackers": ("method", ATTACKED | CONTROLS, INFORMED),
    "held_out": ("method", ATTACKED | CONTROLS, HELD_OUT),
    "poisoned": (
        "method",
        {"Fawkes": "fawkes/default", "CLIP2Protect": "clip2protect/default", "*control: original*": "original/control"},
        POISONED,
    ),
    "lreorg": (
        "",
        LREORG,
        {
            "PSR, `recogniser_a`": ("protection_success_rate_at_far/recogniser_a",),
            **{keyword: (rates(keyword),) for keyword in ("gender", "age")},
        },
    ),
}
"""Name -> (heading of the first column, rows: label -> method/variant, columns)."""


def cell(results: Path, name: str, path: str) -> str:
    """The text of one value. ``path``: [attempt:]metric/part[/key_spread]."""
    attempt, _, rest = path.rpartition(":")
    first, *others = rest.split("/")
    tree = json.loads((results / "metrics" / DATASET / name / "0.json").read_text())
    value: Any = tree["attempts"].get(attempt, {}) if attempt else tree["metrics"]
    for key in (first, *others):
        value = value.get(key) if isinstance(value, dict) else None
    digits = DIGITS.get(first, 2)
    if not isinstance(value, dict):
        return NONE if value is None else number(value, digits)
    if value.get("value") is None:
        return NONE
    text = number(value["value"], digits)
    return (
        text
        if value.get("low") is None
        else f"{text} [{number(value['low'], digits)}, {number(value['high'], digits)}]"
    )


def number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if not float(text) else text.replace("-", "−")


def table(results: Path, heading: str, rows: dict[str, str], columns: Columns) -> list[str]:
    """The lines of a table. A row without any value, of a method to which this was not done, is left out."""
    lines = [f"| {heading} | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    for label, name in rows.items():
        texts = []
        for paths in columns.values():
            found = [text for text in (cell(results, name, path) for path in paths) if text != NONE]
            texts.append(" / ".join(found) or NONE)
        if set(texts) != {NONE}:
            lines.append(f"| {label} | {' | '.join(texts)} |")
    return lines


def standings(results: Path, printed: str) -> list[str]:
    """How many claims and pairs of rows stand as in the papers, a line a scale; the ``printed`` one without a build."""
    lines = [f"| scale | {' | '.join(STANDING)} |", "|---|" + "---:|" * len(STANDING)]
    before = {line.split("|")[1].strip(): line for line in printed.splitlines() if line.startswith("|")}
    for scale in SCALES:
        folder = results.parent / scale / "tables"
        if (folder / "claims.md").is_file():
            counts = [*totals(CLAIMS, [folder / "claims.md"]), *totals(PAIRS, sorted(folder.glob("*/*.md")))]
            lines.append(f"| `{scale}` | {' | '.join(map(str, counts))} |")
        else:
            lines.append(before[f"`{scale}`"])
    return lines


def totals(pattern: str, pages: Iterable[Path]) -> list[int]:
    """The sum of each number of ``pattern`` over all its matches in some pages. Raises ValueError without a match."""
    found = [match for page in pages for match in re.findall(pattern, page.read_text(), re.MULTILINE)]
    if not found:
        raise ValueError(f"No page of the build has a line like {pattern}. Build all tables, or change the pattern.")
    return [sum(map(int, column)) for column in zip(*found, strict=True)]


def written(page: str, results: Path) -> str:
    """The text of a page with the tables of a build in their places."""

    def replaced(match: re.Match[str]) -> str:
        line, name, scale, printed = match.groups()
        folder = results.parent / scale if scale else results
        if name == "standings":
            lines = standings(results, printed)
        elif scale and not (folder / "metrics").is_dir():
            return match[0]
        else:
            lines = table(folder, *TABLES[name])
        return f"{line}\n" + "\n".join(lines) + "\n"

    return re.sub(r"(<!-- results: (\w+)(?: at (\w+))? -->)\n((?:\|.*\n)+)", replaced, page)


def picture(source: Path, target: Path) -> None:
    """Save a figure as JPEG, as good as WIDEST and LARGEST allow."""
    with Image.open(source) as opened:
        image = Image.new("RGB", opened.size, "white")
        image.paste(opened, mask=opened.getchannel("A") if opened.mode == "RGBA" else None)
    image.thumbnail((WIDEST, WIDEST), Image.Resampling.LANCZOS)
    for quality in range(92, 50, -2):
        image.save(target, quality=quality, optimize=True)
        if target.stat().st_size <= LARGEST:
            return


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "results/mini")
    given = parser.parse_args(arguments)
    for name in PAGES:
        page = ROOT / name
        page.write_text(written(page.read_text(encoding="utf-8"), given.results), encoding="utf-8")
    for target, source in PICTURES.items():
        name, _, scale = source.partition(" at ")
        folder = given.results.parent / scale if scale else given.results
        if not scale or (folder / "figures" / f"{name}.png").is_file():
            picture(folder / "figures" / f"{name}.png", ROOT / "docs" / target)


if __name__ == "__main__":
    main()
