"""Chains, broken links and differences in words, for a terminal."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.text import Text

from masquerade.lineage.address import Asked, Cell
from masquerade.lineage.chain import Link
from masquerade.lineage.difference import Difference, told
from masquerade.lineage.history import Job
from masquerade.lineage.verify import Verdict

CROPPED = 240
"""Letters of a job's parameters that are shown, where not all of them are asked for."""


def chain(asked: Asked, scale: str, links: list[Link], runs: Mapping[str, str], full: bool) -> Iterator[Text]:
    """The cell, every link with its facts, and the environments that they share."""
    yield Text(f"{asked.address}, scale {scale}", style="bold")
    for cell in asked.cells:
        yield Text(f"  {_said(cell)}")
    yield Text(f"  {len(links)} links; each stands above what it was made from\n", style="dim")
    for link in links:
        yield from _link(link, runs, full)
    for environment in _environments(links):
        packages = environment["packages"]
        known = ", ".join(f"{name} {packages[name]}" for name in ("torch", "numpy") if name in packages)
        yield Text(
            f"environment {environment['sha256']}: Python {environment['python']}, {len(packages)} packages ({known})"
        )


def _said(cell: Cell) -> str:
    facts = cell.facts
    if cell.item == "claims":
        return f"{cell.title} {facts['source']}. Here: {cell.value}{', ' if facts['reason'] else ''}{facts['reason']}"
    by = f"{facts['metric']}{'.' + facts['part'] if 'part' in facts else ''}"
    by += f" by {facts['judge']}" if "judge" in facts else ""
    printed = f"printed {facts['printed']}, " if "printed" in facts else ""
    if not cell.value:
        return f"{cell.title}: no number: {facts.get('reason', 'it was not measured')} ({printed}{by})"
    return f"{cell.title}: {float(cell.value):.6g} ({printed}{by}, over {facts['over']} of {facts['of']})"


def _link(link: Link, runs: Mapping[str, str], full: bool) -> Iterator[Text]:
    about = ", ".join(f"{word} {value}" for word, value in link.job.words.items()) if link.job else ""
    head = Text.assemble((f"{link.number:>3}  ", "dim"), (link.name, "bold cyan"), f"  {about}" if about else "")
    if link.made_from:
        head.append(f"  <- {', '.join(map(str, link.made_from))}", style="dim")
    if link.raw:
        unknown = link.raw.startswith("of unknown")
        head.append(f"  raw data: {link.raw}" if not unknown else f"  {link.raw}", style="red" if unknown else "green")
    yield head
    width = max(map(len, link.files))
    for path, found in link.files.items():
        yield Text.assemble(f"     {path:<{width}}  ", (found or "no hash recorded", "" if found else "red"))
    if link.job:
        yield Text(f"     {_circumstances(link.job, runs)}", style="dim")
        if link.job.params:
            said = ", ".join(f"{key}: {_value(value)}" for key, value in link.job.params.items())
            yield Text(
                f"     {said if full or len(said) <= CROPPED else said[:CROPPED] + ' ... (--full)'}", style="dim"
            )
    yield Text()


def _circumstances(job: Job, runs: Mapping[str, str]) -> str:
    told = job.told
    if not told:
        return f"code {job.code_sha256[:12]}, circumstances not recorded"
    run = told["run"]
    shown = f"MLflow run {runs[run]}" if run in runs else f"run {run} (not in this MLflow store)"
    return (
        f"code {job.code_sha256[:12]}, commit {told['commit'][:12]}{'+' * told['commit'].endswith('+')}, environment "
        f"{told['environment']['sha256'][:12]}, {shown}\n     {told['started']}, {told['seconds']:g} s, "
        f"{machine(told['machine'])}"
    )


def machine(found: Mapping[str, Any]) -> str:
    """The kind of a machine in words."""
    gpu = f", GPU {found['gpu']}" if found["gpu"] else ", no GPU used"
    kernels = f", {found['kernels']}" if found["kernels"] else ""
    return f"{found['system']}, {found['processor']}{kernels}, {found['cores']} cores{gpu}"


def difference(found: Difference) -> Iterator[Text]:
    """The values then and now, and every cause, raw data first."""
    yield Text(f"{found.address}: {found.old} -> {found.new}", style="bold")
    for title, old, new in found.values:
        yield Text(f"  {title}: {_number(old)} -> {_number(new)}{'' if old != new else ' (the same)'}")
    if not found.causes:
        same = "its file has the same bytes" if found.same_bytes else "only what else stands in the file changed"
        yield Text(f"  nothing behind it changed; {same}", style="green")
    for kind, what, stages in told(found.causes):
        more = f" and {len(stages) - 2} more" if len(stages) > 3 else ""
        where = ", ".join(stages[: 2 if more else 3])
        yield Text.assemble(f"  {kind:<12}", (what, "bold"), (f"  in {where}{more}", "dim"))


def verdict(found: Verdict, every: bool) -> Iterator[Text]:
    """The first broken link, or every one, with what to do and what rests on it."""
    for note in found.notes:
        yield Text(note, style="yellow")
    checked = f"{found.jobs} jobs, {found.files} files"
    if not found.breaks:
        yield Text(f"Every link holds: {checked}.", style="green")
        return
    for number, broken in enumerate(found.breaks if every else found.breaks[:1]):
        yield Text.assemble(
            ("First broken link: " if not number else "Broken link: ", "bold red"), (broken.path, "bold")
        )
        yield Text(f"  {broken.what}")
        yield Text(f"  To do: {broken.todo}")
        if broken.rests:
            tables = sum("/tables/" in path for path in broken.rests)
            yield Text(f"  {len(broken.rests)} files rest on it, {tables} of them of tables")
    hidden = 0 if every else len(found.breaks) - 1
    more = f" {hidden} more broken {'link' if hidden == 1 else 'links'}: --all." if hidden else ""
    yield Text(f"{checked} checked.{more}", style="dim")


def _number(text: str) -> str:
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text or "no number"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _environments(links: Iterable[Link]) -> list[Mapping[str, Any]]:
    told = [link.job.told["environment"] for link in links if link.job and link.job.told]
    return list({found["sha256"]: found for found in told}.values())
