"""The page of claims as Markdown, CSV and LaTeX: which hold at this scale, and by what margin."""

from collections.abc import Sequence
from typing import Any

from masquerade.core import discovery, files
from masquerade.papers import cautions, documents, layout
from masquerade.papers.claims import Claim
from masquerade.papers.context import Context
from masquerade.papers.declarations import Measure
from masquerade.papers.verdicts import FAILS, HOLDS, UNDECIDED, Margin, Side, Verdict, count_tests

SUMMARY = ["Paper", "Claims", "Repeat another", "Hold here", "Do not hold", "Inconclusive"]
HEAD = ["Claim", "Here", "Margin", "Compared", "Measure", "In the paper"]
MEASURES = ["Metric", "Unit", "Evaluator in the paper", "Here", "±", "Protocol"]


def markdown(verdicts: Sequence[Verdict], context: Context) -> str:
    """Markdown: how many claims of each paper hold, one row for each claim, and what was measured."""
    papers = list(dict.fromkeys(verdict.claim.paper for verdict in verdicts))
    sections = []
    for paper in papers:
        of_paper = [verdict for verdict in verdicts if verdict.claim.paper == paper]
        sections += [
            _heading(paper, context),
            documents.markdown_grid(HEAD, [_row(verdict, context) for verdict in of_paper], left=len(HEAD)),
        ]
    parts = [
        "# Claims",
        "\n".join(f"> {line}" for line in _preamble(verdicts, context)),
        documents.markdown_grid(
            SUMMARY, [*(_count(paper, verdicts) for paper in papers), _count("", verdicts)], left=1
        ),
        *sections,
        "## What was measured",
        documents.markdown_grid(MEASURES, _measures(verdicts, context), left=len(MEASURES)),
        "## Notes",
        "\n".join(f"- {note}" for note in _notes(verdicts, context)),
    ]
    return "\n\n".join(parts) + "\n"


def longtable(verdicts: Sequence[Verdict], context: Context) -> str:
    """LaTeX for the packages longtable and booktabs: claims, verdicts and margins. The CSV has the numbers."""
    rows = []
    for verdict in verdicts:
        claim = verdict.claim
        paper = cautions.mark_title(claim.paper, claim.paper, context.latent_stand_ins)
        rows.append([paper, claim.says, _word(verdict), _margin(verdict), claim.source])
    columns = r"lp{0.34\linewidth}p{0.18\linewidth}lp{0.14\linewidth}"
    grid = documents.latex_grid(["Paper", "Claim", "Here", "Margin", "In the paper"], rows, columns, longtable=True)
    sentences = [*_preamble(verdicts, context), *_notes(verdicts, context)]
    return grid + "".join(documents.escape(line) + "\\par\n" for line in sentences)


def table(verdicts: Sequence[Verdict], context: Context) -> str:
    """CSV: one record for each comparison and seed, numbers at full precision, an empty field for no number."""
    records = [
        _record(verdict, seed, pair, context)
        for verdict in verdicts
        for pair in verdict.claim.pairs
        for seed in verdict.seeds
    ]
    return files.format_csv(list(records[0]) if records else ["paper", "name"], records)


def _record(verdict: Verdict, seed: int, pair: tuple[int, int], context: Context) -> dict[str, Any]:
    claim, margin = verdict.claim, verdict.margin
    low, high = (margin and margin.interval) or (None, None)
    compared = next((each for each in verdict.margins if each.pair == pair), None)
    compared_low, compared_high = (compared and compared.interval) or (None, None)
    sides: dict[str, Any] = {}
    for name, place in zip(("greater", "than"), pair, strict=True):
        side = verdict.sides[place]
        cell, measure, value = side.compared, claim.measure_of(side.compared), side.by_seed.get(seed, {})
        sides |= {f"{name}_{field}": getattr(cell, field) for field in ("method", "variant", "attempt")}
        sides |= {f"{name}_metric": measure.metric, f"{name}_part": measure.part}
        sides[f"{name}_judge"] = context.judge(measure.judge)
        sides |= {f"{name}_{field}": value.get(field) for field in ("value", "low", "high", "spread", "over", "of")}
    greater, than = sides["greater_value"], sides["than_value"]
    return {
        "paper": claim.paper,
        "name": claim.name,
        "says": claim.says,
        "source": claim.source,
        "dataset": verdict.dataset,
        "verdict": verdict.word,
        "repeats": name_claim(verdict.repeats) if verdict.repeats else "",
        "margin": margin.value if margin else None,
        "low": low,
        "high": high,
        "compared": compared.value if compared else None,
        "compared_low": compared_low,
        "compared_high": compared_high,
        "seed": seed,
        **sides,
        "difference": None if greater is None or than is None else greater - than,
        "reason": verdict.reason,
    }


def _preamble(verdicts: Sequence[Verdict], context: Context) -> list[str]:
    datasets = dict.fromkeys(verdict.claim.dataset for verdict in verdicts)
    resampled = "people and seeds" if len(context.seeds) > 1 else "people"
    return [
        f"Scale `{context.scale}`. {context.caution}".rstrip(),
        *layout.dataset_sentences(datasets, context),
        "This page checks what the papers assert on the numbers measured here. The margin is the smallest difference "
        "between the numbers that should be greater and those that should be smaller; for a sweep it is the mean fall "
        "of the numbers per step (their least-squares slope), and the smallest step stands beside it. If a claim says "
        "that numbers are alike, a tolerance is added, which the note of the claim states. [low, high] is the 95 % "
        f"interval of the margin over {resampled}. A claim **holds** if the intervals of all its differences lie above "
        "0, and does not hold if one of them, corrected for their number (Holm), lies below 0. A sweep holds if the "
        "interval of its slope lies above 0, and does not hold if that of the slope or of a step, so corrected, lies "
        "below 0. Otherwise, or if a number is missing, a claim is inconclusive. If several numbers are compared, bold "
        "marks the two with the smallest difference.",
        "A claim that compares the same numbers as an earlier one at this scale repeats it, and counts once. "
        f"{describe_chance(verdicts)}",
    ]


def describe_chance(verdicts: Sequence[Verdict]) -> str:
    """How many verdicts chance alone would give, as a sentence."""
    tests = count_tests(verdicts)
    return (
        f"{tests} different comparisons have the numbers that could decide them. A verdict errs in at most about "
        "2.5 % of the cases: if the true margin of each comparison were 0, chance alone would let at most "
        f"{tests / 40:.1f} of them hold on average, and as many not hold."
    )


def name_claim(claim: Claim) -> str:
    """The name of a claim among those of all papers."""
    return f"{claim.paper}: {claim.name}"


def _heading(paper: str, context: Context) -> str:
    is_method = paper in discovery.list_names("methods")
    return f"## {cautions.mark_title(paper, paper, context.latent_stand_ins)}" + (
        f"\n\n*{discovery.load('methods', paper).paper}*" if is_method else ""
    )


def _count(paper: str, verdicts: Sequence[Verdict]) -> list[str]:
    of_paper = [verdict for verdict in verdicts if paper in ("", verdict.claim.paper)]
    words = [verdict.word for verdict in of_paper if not verdict.repeats]
    return [
        f"`{paper}`" if paper else "all",
        str(len(of_paper)),
        str(len(of_paper) - len(words)),
        *(str(words.count(word)) for word in (HOLDS, FAILS, UNDECIDED)),
    ]


def _row(verdict: Verdict, context: Context) -> list[str]:
    return [
        verdict.claim.says,
        _word(verdict),
        _margin(verdict),
        _describe_comparison(verdict, context),
        f"{_measures_of(verdict.claim, context)} on `{verdict.dataset}`",
        verdict.claim.source,
    ]


def _word(verdict: Verdict) -> str:
    repeated = f" (repeats `{name_claim(verdict.repeats)}`)" if verdict.repeats else ""
    return f"**{verdict.word}**{repeated}" + (f": {verdict.reason}" if verdict.reason else "")


def _margin(verdict: Verdict) -> str:
    """The margin with its interval; for a sweep also the smallest step."""
    if not verdict.claim.descending:
        return _describe_margin(verdict.smallest)
    return f"{_describe_margin(verdict.trend)} per step; smallest step {_describe_margin(verdict.smallest)}"


def _describe_margin(margin: Margin | None) -> str:
    if margin is None:
        return layout.NONE
    ends = f" [{', '.join(map(_number, margin.interval))}]" if margin.interval else ""
    return _number(margin.value) + ends


def _describe_comparison(verdict: Verdict, context: Context) -> str:
    """The numbers of both sides, each with its own spread, and with its denominator if the denominators differ."""
    claim = verdict.claim
    closest = verdict.smallest.pair if verdict.smallest and len(claim.pairs) > 1 else ()
    texts = [_side(verdict, side, place in closest, context) for place, side in enumerate(verdict.sides)]
    first = len(claim.greater)
    if claim.descending:
        text = " > ".join(texts)
    elif claim.paired:
        text = "; ".join(f"{one} > {other}" for one, other in zip(texts[:first], texts[first:], strict=True))
    else:
        text = f"{_each(texts[:first])} > {_each(texts[first:])}"
    return text + (f"; over {_of(*verdict.over)}" if verdict.over else "")


def _each(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"each of ({', '.join(texts)})"


def _side(verdict: Verdict, side: Side, closest: bool, context: Context) -> str:
    cell, measured = side.compared, side.measured
    parts = [cautions.mark_title(f"`{cell.method}/{cell.variant}`", cell.method, context.latent_stand_ins)]
    parts += [f"*{cell.attempt}*"] if cell.attempt else []
    parts += [f"({_short(verdict.claim, cell.measure)})"] if cell.measure else []
    if measured.value is None:
        return " ".join([*parts, layout.NONE])
    spread = f" ± {_number(measured.own_spread)}" if measured.own_spread is not None else ""
    over = "" if verdict.over else f" (over {_of(measured.over // measured.seeds, measured.of // measured.seeds)})"
    number = f"**{_number(measured.value)}**" if closest else _number(measured.value)
    return " ".join([*parts, f"{number}{spread}{over}"])


def _short(claim: Claim, measure: Measure) -> str:
    """What distinguishes a measure from the others of its claim: its part, its judge, or its metric."""
    others = _distinct(claim)
    if len({(other.metric, other.judge) for other in others}) == 1:
        return measure.part or measure.metric
    if len({other.metric for other in others}) == 1 and measure.judge:
        return measure.judge.name
    return f"{measure.metric}.{measure.part}".rstrip(".")


def _of(over: int, of: int) -> str:
    return f"{over}" if over == of else f"{over} of {of}"


def _number(value: float) -> str:
    return f"{value + 0.0:.4g}"


def _distinct(claim: Claim) -> list[Measure]:
    return list(dict.fromkeys(claim.measure_of(side) for side in claim.sides))


def _measures_of(claim: Claim, context: Context) -> str:
    """The metrics of a claim with their parts and judges, each metric and judge once."""
    parts: dict[tuple[str, str], list[str]] = {}
    for measure in _distinct(claim):
        parts.setdefault((measure.metric, context.judge(measure.judge)), []).append(measure.part)
    return ", ".join(
        f"`{metric}`" + (f" ({', '.join(names)})" if any(names) else "") + (f" by `{judge}`" if judge else "")
        for (metric, judge), names in parts.items()
    )


def _unit(measure: Measure) -> str:
    exists = measure.metric in discovery.list_names("metrics")
    return discovery.load("metrics", measure.metric).unit if exists else layout.NONE


def _measures(verdicts: Sequence[Verdict], context: Context) -> list[list[str]]:
    """One row for each measure: the judge in the paper, the judge here, what the spread is of, and the protocol."""
    rows: dict[Measure, list[Side]] = {}
    for verdict in verdicts:
        for side in verdict.sides:
            rows.setdefault(verdict.claim.measure_of(side.compared), []).append(side)
    body = []
    for measure, sides in rows.items():
        spreads = dict.fromkeys(side.measured.own_spread_of for side in sides if side.measured.own_spread_of)
        protocols = list(dict.fromkeys(side.measured.note for side in sides if side.measured.note))
        body.append([
            f"`{'.'.join(filter(None, [measure.metric, measure.part]))}`",
            _unit(measure),
            measure.judge.name if measure.judge else layout.SAME,
            f"`{context.judge(measure.judge)}`" if measure.judge else layout.SAME,
            ", ".join(spreads) or layout.NONE,
            protocols[0] if len(protocols) == 1 else "differs: see the metrics" if protocols else layout.NONE,
        ])  # fmt: skip
    return body


def _notes(verdicts: Sequence[Verdict], context: Context) -> list[str]:
    notes = [f"{verdict.claim.says.rstrip('.')}: {verdict.claim.note}." for verdict in verdicts if verdict.claim.note]
    compared = [side.compared.method for verdict in verdicts for side in verdict.sides]
    notes += cautions.explain_evasion((method, method) for method in compared)
    notes += filter(None, [cautions.explain_stand_ins(((name, name) for name in compared), context.latent_stand_ins)])
    uses = {
        (context.judge(measure.judge), side.compared.method, side.compared.method)
        for verdict in verdicts
        for side in verdict.sides
        if (measure := verdict.claim.measure_of(side.compared)).judge
    }
    several = len(context.seeds) > 1
    seeds = f"{'Seeds' if several else 'Seed'} {', '.join(map(str, context.seeds))}" + (
        ": values are means over the seeds." if several else "."
    )
    spread = "± is the standard deviation that a metric's own protocol reports, over what the table above says."
    trained = cautions.describe_judges(uses, "page", context.stand_ins.datasets.values())
    return [*notes, spread, trained, f"{seeds} Code: commit {context.commit}."]
