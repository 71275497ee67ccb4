"""Write the page of claims: what the papers claim, and which of it holds at this scale."""

from masquerade.pipeline import program

arguments = program.parse_arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped",))


def work(_) -> None:
    from masquerade.core import files
    from masquerade.papers import claims, claims_page, verdicts
    from masquerade.papers.context import Context, skip_reasons
    from masquerade.papers.measured import Results

    declared = claims.of_papers(claims.load(arguments.declared), arguments.params["papers"])
    context = Context.of(arguments.params)
    judged = verdicts.judge(
        declared, Results(files.read_numbers(arguments.metrics), skip_reasons(arguments.skipped), context)
    )
    writers = (claims_page.table, claims_page.markdown, claims_page.longtable)
    for path, write in zip(arguments.outputs, writers, strict=True):
        files.write_text(path, write(judged, context))


if __name__ == "__main__":
    program.main("page of claims", arguments, work)
