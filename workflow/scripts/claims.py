"""Write the page of claims: what the papers assert, and which of it holds at this scale."""

from masquerade import papers, steps
from masquerade.papers import claims, claims_page, verdicts

given = steps.arguments(__doc__, files=("declared",), lists=("metrics",), words=("skipped",))


def work(_) -> None:
    declared = claims.of_papers(claims.load(given.declared), given.params["papers"])
    cells = steps.read_numbers(given.metrics)
    context = papers.context(given.params)
    found = verdicts.judge(declared, cells, papers.skipped(given.skipped), context)
    writers = (claims_page.table, claims_page.markdown, claims_page.longtable)
    for path, write in zip(given.outputs, writers, strict=True):
        steps.write_text(path, write(found, context))


if __name__ == "__main__":
    steps.main("page of claims", given, work)
