"""The documentation is complete and correct: index, links, paths, names, rules and equations."""

import pydoc
import re
from pathlib import Path

import pytest

from masquerade.core import discovery
from masquerade.params import loading

ROOT = Path(__file__).parents[2]
MANUAL = sorted((ROOT / "docs").glob("*.md"))
"""The pages of the site."""
BESIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "reference/README.md", "weights/README.md",
          "weights/photo/README.md")  # fmt: skip
PAGES = [ROOT / name for name in BESIDE] + MANUAL
FIVE_PAPERS = ("identitydp", "falco", "cao21", "ifadit", "lreorg")
DEVIATIONS = "| Place in the paper | The paper says | We do | Why | Can it be switched |"
"""The head of the table of what differs from a paper."""
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


def index_entries(section: str = "") -> list[tuple[str, str]]:
    """Title and page of each entry of the index, or of one of its sections."""
    index = text(ROOT / "docs/README.md")
    part = index.partition(f"\n## {section}\n")[2].partition("\n## ")[0] if section else index
    return re.findall(r"^- \[([^\]]+)\]\((\S+\.md)\): \S", part, flags=re.MULTILINE)


def test_every_page_is_in_the_index_once_with_a_title_and_a_sentence():
    titles, pages = zip(*index_entries(), strict=True)
    manual = [page.name for page in MANUAL if page.name != "README.md"]
    assert sorted(page for page in pages if not page.startswith("../")) == manual
    assert len(set(titles)) == len(titles)
    assert [title for title in titles if ".md" in title] == []


def test_the_manual_has_no_page_that_the_site_leaves_out():
    assert sorted((ROOT / "docs").rglob("*.md")) == MANUAL


@pytest.mark.parametrize("page", [ROOT / "README.md", *MANUAL], ids=named)
def test_lines_are_short(page):
    lines = [line for line in text(page).splitlines() if not line.startswith("|")]  # a row of a table cannot be broken
    assert [line for line in lines if len(line) > 120] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_placeholder_waits_for_its_number(page):
    """While a build runs, @@ stands in a page for a number that is to come."""
    assert not [line for line in text(page).splitlines() if "@@" in line]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_row_of_a_table_is_below_its_head(page):
    assert re.findall(r"\n\n(\|.*)\n(?!\|[-:| ]+\|\n)", prose(page)) == []


def test_the_key_of_every_method_is_on_a_page_of_the_methods():
    pages = [text(ROOT / "docs" / page) for _, page in index_entries("Methods")]
    code = " ".join(part for page in pages for part in re.findall(r"```.*?```|`[^`\n]+`", page, flags=re.DOTALL))
    assert [name for name in discovery.list_programs() if not re.search(rf"\b{name}\b", code)] == []


@pytest.mark.parametrize("paper", FIVE_PAPERS)
def test_the_page_of_a_paper_says_what_was_measured_its_limits_its_deviations_and_where_its_equations_are(paper):
    parts = re.split(r"^## (.+)\n", text(ROOT / f"docs/{paper}.md"), flags=re.MULTILINE)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    order = ("Measured", "Limits", "Deviations from the paper", "Equations")
    assert tuple(heading for heading in sections if heading in order) == order
    assert re.search(r"^<!-- results: \w+ -->\n\|", sections["Measured"], flags=re.MULTILINE)
    assert f"\n{DEVIATIONS}\n" in sections["Deviations from the paper"]
    assert equation_rows(sections["Equations"])


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


def test_the_configuration_reference_lists_every_parameter(root):
    listed, heading = set(), ""
    for line in text(root / "docs/configuration.md").splitlines():
        heading = f"{title[1]}." if (title := re.match(r"#+ `([\w.]+)`$", line)) else heading * (line[:3] != "## ")
        listed |= {heading + name for name in re.findall(r"^\| `([\w.]+)` \|", line)}
    for scale in loading.list_scales(root):
        leaves = loading.list_leaves(loading.load(root, scale).tree)
        keys = [re.sub(r"\.variants\.\w+", ".variants.NAME", key) for key, value in leaves if value != {}]
        assert [key for key in keys if not any(f"{key}.".startswith(f"{name}.") for name in listed)] == []


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


def sections_of_equations(page: Path) -> list[str]:
    """The text below each heading ``Equations`` of a page, up to the next heading."""
    return re.findall(r"^#+ Equations\n(.*?)(?=^#|\Z)", prose(page), flags=re.MULTILINE | re.DOTALL)


def equation_rows(section: str) -> list[list[str]]:
    """The cells of each row of the tables of a section whose last cell names a file."""
    rows = [row.split("|") for row in re.findall(r"^\|(.+)\|$", section, flags=re.MULTILINE)]
    return [cells for cells in rows if re.search(r"`[\w/]+\.py`", cells[-1])]


@pytest.mark.parametrize("page", [page for page in MANUAL if sections_of_equations(page)], ids=named)
def test_equations_are_in_the_files_that_the_page_names(page):
    wrong = []
    for *cells, last in [row for section in sections_of_equations(page) for row in equation_rows(section)]:
        files = [ROOT / "src/masquerade" / path for path in re.findall(r"`([\w/]+\.py)`", last)]
        wrong += [str(file) for file in files if not file.is_file()]
        row = " ".join(cells)
        cited = (
            numbers(row) if "of the paper" not in row else set()
        )  # of a paper whose equation the code names otherwise
        present = {number for file in files if file.is_file() for number in numbers(text(file))}
        if not cited <= present:
            wrong.append(f"{row.strip()}: {sorted(cited - present)}")
    assert not wrong


def test_every_file_that_implements_an_equation_is_on_a_page():
    listed = "".join(section for page in MANUAL for section in sections_of_equations(page))
    files = [file for folder in ("methods", "networks") for file in (ROOT / "src/masquerade" / folder).rglob("*.py")]
    citing = [file for file in files if numbers(text(file)) and file.name != "__init__.py"]
    missing = [str(file.relative_to(ROOT / "src/masquerade")) for file in citing]
    assert [file for file in missing if f"`{file}`" not in listed] == []
