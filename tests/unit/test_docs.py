"""The documentation is complete and correct: index, links, paths, names, rules and equations."""

import pydoc
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "reference/README.md")])
PAGES += sorted((ROOT / "docs").rglob("*.md"))
MANUAL = sorted((ROOT / "docs").glob("*.md"))
"""The pages of the site. The notes for maintainers are not among them."""
EXAMPLE = "src/masquerade/methods/mine.py"
"""The file of the method that CONTRIBUTING.md adds as an example."""
PLACEHOLDER = re.compile(r"[<>{}*…]")


def text(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text(page), flags=re.MULTILINE | re.DOTALL)


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def numbers(source: str) -> set[str]:
    """The equation numbers that a text cites after ``Eq.``: ``Eq. 5-8`` cites four."""
    cited: set[str] = set()
    for group in re.findall(r"\bEqs?\.\s*((?:\d+(?:\.\d+)?(?:\s*(?:[-–,]|and|or|to)\s*)?)+)", source):
        for first, last in re.findall(r"(\d+(?:\.\d+)?)(?:\s*[-–]\s*(\d+))?", group):
            cited |= {str(number) for number in range(int(first), int(last) + 1)} if last else {first}
    return cited


def test_the_number_to_expect_is_that_of_the_table_in_readme():
    page = text(ROOT / "README.md")
    said = re.search(r"identity distance of \*\*([\d.]+)\*\* .* interval from ([\d.]+) to ([\d.]+\d)", page)
    row = re.search(r"^\| \*\*IdentityDP \(ε = 6\)\*\* \| ([\d.]+) \[([\d.]+), ([\d.]+)\]", page, re.MULTILINE)
    assert said
    assert row
    assert said.groups() == row.groups()


def test_every_page_is_in_the_index_with_one_line():
    entries = re.findall(r"^- \[(\S+\.md)\]\((\S+\.md)\): \S", text(ROOT / "docs/README.md"), flags=re.MULTILINE)
    pages = sorted(page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md")
    assert sorted(target for _, target in entries) == pages
    assert all(label == target for label, target in entries)


@pytest.mark.parametrize("page", [ROOT / "README.md", *MANUAL], ids=named)
def test_lines_are_short(page):
    lines = [line for line in text(page).splitlines() if not line.startswith("|")]  # a row of a table cannot be broken
    assert [line for line in lines if len(line) > 120] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_row_of_a_table_is_below_its_head(page):
    assert re.findall(r"\n\n(\|.*)\n(?!\|[-:| ]+\|\n)", prose(page)) == []


def test_a_page_of_a_method_says_how_to_run_it_what_was_measured_what_departs_and_where_equations_are():
    index = text(ROOT / "docs/README.md").partition("\n## Methods\n")[2].partition("\n## ")[0]
    pages = set(re.findall(r"\]\((\S+\.md)\)", index)) - {"inpainting.md", "obfuscations.md"}
    order = re.compile(
        r"# .*?\n```bash\n.*?\n## Measured\n(?:(?!\n## ).)*\n<!-- results: \w+ -->\n.*?\n## Departures\n.*"
        r"\n\[Equations\]\(equations\.md#",
        re.DOTALL,
    )
    assert {page for page in pages if not order.match(text(ROOT / "docs" / page))} == set()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_and_headings(page):
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert not broken


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_paths_exist(page):
    paths = re.findall(r"(?<![\w./-])src/masquerade/[\w./-]*[\w/]", text(page))
    spans = [span for span in re.findall(r"`([^`\n]+)`", prose(page)) if " " not in span]
    folders = ("tests/", "workflow/", "benchmarks/", "scales/", "reference/", "profiles/", "slurm/", "src/masquerade/")
    paths += [span for span in spans if span.startswith(folders)]
    missing = {path for path in paths if not PLACEHOLDER.search(path) and not (ROOT / path).exists()}
    assert missing - {EXAMPLE} == set()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_names_of_the_library_exist(page):
    names = set(re.findall(r"(?<![\w./])masquerade(?:\.[A-Za-z_]\w*)+", text(page)))
    assert {name for name in names if pydoc.locate(name) is None} == set()


def test_pages_that_other_files_name_exist():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "src").rglob("*.yaml"), *(ROOT / "scales").glob("*.yaml")]
    files += [ROOT / "params.yaml", ROOT / "slurm/config.yaml", ROOT / "CITATION.cff"]
    named_pages = {page for file in files for page in re.findall(r"\bdocs/\w+\.md", text(file))}
    assert {page for page in named_pages if not (ROOT / page).is_file()} == set()


def rules() -> dict[str, tuple[str, str]]:
    """Rule -> its file and its script. A rule made by ``use rule`` has the script of the rule that it uses."""
    files: dict[str, tuple[str, str]] = {}
    for file in sorted((ROOT / "workflow/rules").glob("*.smk")):
        for block in re.split(r"^(?=rule |use rule )", text(file), flags=re.MULTILINE)[1:]:
            used, name = re.match(r"(?:use rule (\w+) as |rule )(\w+)", block).groups()
            script = re.search(r'(?:submission\.run_(?:here|launched)\(\s*|program=)"(\w+)"', block)
            path = f"workflow/scripts/{script[1]}.py" if script else files[used][1]
            files[name] = (str(file.relative_to(ROOT)), path)
    return files


def test_architecture_lists_every_rule_with_its_file_and_script():
    row = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \| `(\S+\.smk)` \| `(\S+\.py)` \|", flags=re.MULTILINE)
    rows = row.findall(text(ROOT / "docs/architecture.md"))
    assert {name: (file, script) for names, file, script in rows for name in re.findall(r"\w+", names)} == rules()


def test_equations_are_in_the_files_that_the_page_names():
    wrong = []
    for row in re.findall(r"^\|(.+)\|$", text(ROOT / "docs/equations.md"), flags=re.MULTILINE):
        cells = row.split("|")
        files = [ROOT / "src/masquerade" / path for path in re.findall(r"`([\w/]+\.py)`", cells[-1])]
        wrong += [str(file) for file in files if not file.is_file()]
        cited = numbers(cells[0]) if "of the paper" not in cells[0] else set()
        present = {number for file in files if file.is_file() for number in numbers(text(file))}
        if files and not cited <= present:
            wrong.append(f"{cells[0].strip()}: {sorted(cited - present)}")
    assert not wrong


def test_every_file_that_implements_an_equation_is_on_the_page():
    page = text(ROOT / "docs/equations.md")
    files = [file for room in ("methods", "networks") for file in (ROOT / "src/masquerade" / room).rglob("*.py")]
    citing = [file for file in files if numbers(text(file)) and file.name != "__init__.py"]
    assert [str(file) for file in citing if str(file.relative_to(ROOT / "src/masquerade")) not in page] == []
