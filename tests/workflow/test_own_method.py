"""A method of one file reaches a row of a table in the five steps of CONTRIBUTING.md."""

import re

import pytest

pytestmark = [pytest.mark.workflow, pytest.mark.slow]


def steps(page: str) -> list[list[str]]:
    """The texts in backquotes of each step."""
    listed = page.split("## Add a method")[1].split("\n## ")[0]
    return [re.findall(r"`([^`]+)`", step) for step in re.split(r"^\d\. ", listed, flags=re.MULTILINE)[1:]]


def test_the_example_is_a_method_of_forty_lines(root):
    assert len((root / "examples/own_method.py").read_text().splitlines()) <= 40


def test_a_method_of_one_file_reaches_a_row_of_a_table_in_the_five_steps_of_the_page(built):
    copy, template, contract, row, build = steps((built.path / "CONTRIBUTING.md").read_text())
    built.run(*copy[0].split())
    printed = built.run(*template[0].split())
    block = re.sub(r"kept:.*", "kept: 6", printed[printed.index("  mine:") :])
    built.edit("params.yaml", "\nmethods:\n", f"\nmethods:\n{block}")
    built.edit("scales/tiny.yaml", '"*/control", "gaussian', '"mine/*", "*/control", "gaussian')
    built.run(*contract[0].split())
    built.edit(row[0], "\nrows:\n", f"\nrows:\n  {row[1]}\n")
    table = build[0].split()[-1].replace("mini", "tiny")
    assert built.out_of_date() >= {
        f"{step}-synthetic_hq-mine-default-0" for step in ("anonymize", "measure", "evaluate")
    }
    built.snakemake(table)
    measured = next(line for line in (built.path / table).read_text().splitlines() if line.startswith("| Mine"))
    assert len(re.findall(r"\d\.\d", measured)) >= 8, "of each column that the judges of this scale measure"
