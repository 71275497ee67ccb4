"""Chains, broken links and differences as lines of text for a terminal."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.text import Text

from masquerade.lineage.address import AddressedCell, ResolvedAddress
from masquerade.lineage.chain import Link
from masquerade.lineage.difference import Difference
from masquerade.lineage.history import Job
from masquerade.lineage.verify import Verdict

LONGEST_PARAMETERS = 240
"""How many characters of a job's parameters are shown without ``--full``."""


def describe_chain(
    address: ResolvedAddress, scale: str, links: list[Link], runs: Mapping[str, str], full: bool
) -> Iterator[Text]:
    """The cells, every link with its facts, and the environments that the links share."""
    yield Text(f"{address.address}, scale {scale}", style="bold")
    for cell in address.cells:
        yield Text(f"  {_describe_cell(cell)}")
    yield Text(f"  {len(links)} links; each link stands before the links that it was made from\n", style="dim")
    for link in links:
        yield from _describe_link(link, runs, full)
    for environment in _list_environments(links):
        packages = environment["packages"]
        versions = ", ".join(f"{name} {packages[name]}" for name in ("torch", "numpy") if name in packages)
        summary = f"Python {environment['python']}, {len(packages)} packages ({versions})"
        yield Text(f"environment {environment['sha256']}: {summary}")


def _describe_cell(cell: AddressedCell) -> str:
    facts = cell.facts
    if cell.item == "claims":
        return f"{cell.title} {facts['source']}. Here: {cell.value}{', ' if facts['reason'] else ''}{facts['reason']}"
    metric = f"{facts['metric']}{'.' + facts['part'] if 'part' in facts else ''}"
    metric += f" by {facts['judge']}" if "judge" in facts else ""
    printed = f"printed {facts['printed']}, " if "printed" in facts else ""
    if not cell.value:
        return f"{cell.title}: no number: {facts.get('reason', 'it was not measured')} ({printed}{metric})"
    return f"{cell.title}: {float(cell.value):.6g} ({printed}{metric}, over {facts['over']} of {facts['of']})"


def _describe_link(link: Link, runs: Mapping[str, str], full: bool) -> Iterator[Text]:
    subject = ", ".join(f"{word} {value}" for word, value in link.job.words.items()) if link.job else ""
    head = Text.assemble((f"{link.number:>3}  ", "dim"), (link.name, "bold cyan"), f"  {subject}" if subject else "")
    if link.made_from:
        head.append(f"  <- {', '.join(map(str, link.made_from))}", style="dim")
    if link.raw:
        unknown = link.raw.startswith("of unknown")
        head.append(f"  raw data: {link.raw}" if not unknown else f"  {link.raw}", style="red" if unknown else "green")
    yield head
    width = max(map(len, link.files))
    for path, digest in link.files.items():
        yield Text.assemble(f"     {path:<{width}}  ", (digest or "no hash recorded", "" if digest else "red"))
    if link.job:
        yield Text(f"     {_describe_circumstances(link.job, runs)}", style="dim")
        if link.job.params:
            line = ", ".join(f"{key}: {_format_value(value)}" for key, value in link.job.params.items())
            if not full and len(line) > LONGEST_PARAMETERS:
                line = f"{line[:LONGEST_PARAMETERS]} ... (--full)"
            yield Text(f"     {line}", style="dim")
    yield Text()


def _describe_circumstances(job: Job, runs: Mapping[str, str]) -> str:
    circumstances = job.circumstances
    if not circumstances:
        return f"code {job.code_sha256[:12]}, circumstances not recorded"
    commit, run = circumstances["commit"], circumstances["run"]
    mlflow_run = f"MLflow run {runs[run]}" if run in runs else f"run {run} (not in this MLflow store)"
    return (
        f"code {job.code_sha256[:12]}, commit {commit[:12]}{'+' * commit.endswith('+')}, environment "
        f"{circumstances['environment']['sha256'][:12]}, {mlflow_run}\n     {circumstances['started']}, "
        f"{circumstances['seconds']:g} s, {describe_machine(circumstances['machine'])}"
    )


def describe_machine(facts: Mapping[str, Any]) -> str:
    """The kind of a machine in words."""
    gpu = f", GPU {facts['gpu']}" if facts["gpu"] else ", no GPU used"
    kernels = f", {facts['kernels']}" if facts["kernels"] else ""
    return f"{facts['system']}, {facts['processor']}{kernels}, {facts['cores']} cores{gpu}"


def describe_difference(result: Difference) -> Iterator[Text]:
    """The old and new values, and every cause with its jobs. Causes nearest to raw data come first."""
    yield Text(f"{result.address}: {result.old} -> {result.new}", style="bold")
    for title, old, new in result.values:
        yield Text(f"  {title}: {_format_number(old)} -> {_format_number(new)}{'' if old != new else ' (the same)'}")
    if not result.causes:
        yield Text("  nothing behind it changed", style="green")
    jobs: dict[tuple[str, str], list[str]] = {}
    for cause in result.causes:
        what = cause.what if cause.effect else f"{cause.what} (without effect)"
        jobs.setdefault((cause.kind, what), []).append(cause.job)
    for (kind, what), names in jobs.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield Text.assemble(f"  {kind:<12}", (what, "bold"), (f"  in {', '.join(names[:3])}{more}", "dim"))


def describe_verdict(result: Verdict, every: bool) -> Iterator[Text]:
    """The first broken link, or all if ``every``, each with a remedy and the number of files that depend on it."""
    for note in result.notes:
        yield Text(note, style="yellow")
    checked = f"{result.jobs} jobs, {result.files} files"
    if not result.breaks:
        yield Text(f"Every link holds: {checked}.", style="green")
        return
    for number, broken in enumerate(result.breaks if every else result.breaks[:1]):
        yield Text.assemble(
            ("First broken link: " if not number else "Broken link: ", "bold red"), (broken.path, "bold")
        )
        yield Text(f"  {broken.what}")
        yield Text(f"  To do: {broken.todo}")
        if broken.rests:
            tables = sum("/tables/" in path for path in broken.rests)
            yield Text(f"  {len(broken.rests)} files depend on it; {tables} of them belong to tables")
    hidden = 0 if every else len(result.breaks) - 1
    more = f" {hidden} more broken {'link' if hidden == 1 else 'links'}: list them with --all." if hidden else ""
    yield Text(f"{checked} checked.{more}", style="dim")


def _format_number(text: str) -> str:
    try:
        return f"{float(text):.6g}"
    except ValueError:
        return text or "no number"


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _list_environments(links: Iterable[Link]) -> list[Mapping[str, Any]]:
    """The environments of all jobs, each once."""
    jobs = [link.job for link in links if link.job and link.job.circumstances]
    environments = [job.circumstances["environment"] for job in jobs]
    return list({environment["sha256"]: environment for environment in environments}.values())
