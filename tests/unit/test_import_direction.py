"""The rooms of the library: the direction of imports, their content, and how their classes are found.

pyproject.toml has the order of the rooms.
"""

import ast
import sys
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import masquerade
from masquerade.core import discovery
from masquerade.core.errors import ProtocolError

PACKAGE = Path(masquerade.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))
BY_NAME = {
    "__init__.py",  # what `import masquerade` offers, at its first use
    "core/discovery.py",  # methods, attackers, backbones, judges, metrics and datasets
    "pipeline/exchange.py",  # the function of a person that `masquerade score --call` names
}
"""Modules that may import a module by a computed name."""


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def rooms(root: Path) -> set[str]:
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    return set(layers)


def test_every_module_is_in_one_of_the_fifteen_rooms(root):
    assert len(rooms(root)) == 15
    assert {path.parent.name for path in PACKAGE.glob("*/*.py")} == rooms(root)
    assert [path.name for path in PACKAGE.glob("*.py")] == ["__init__.py"]


def test_the_import_contract_has_no_exceptions(root):
    table = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]
    options = {key for contract in table["contracts"] for key in contract}
    assert options <= {
        "name", "type", "containers", "exhaustive", "layers", "ancestors", "source_modules", "forbidden_modules",
    }  # fmt: skip


def test_modules_have_no_circular_imports():
    """Checks single modules, with imports for type checkers; import-linter checks only sibling packages."""
    graph = grimp.build_graph("masquerade", "drawnpeople", cache_dir=None)
    sorter = TopologicalSorter({module: graph.find_modules_directly_imported_by(module) for module in graph.modules})
    sorter.prepare()  # raises CycleError, which names the circle


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0] if path.is_relative_to(PACKAGE) else path.parent.name


def imported(path: Path) -> set[str]:
    """The full names of what a file imports from the library."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {f"{n.module}.{alias.name}" for n in nodes if isinstance(n, ast.ImportFrom) for alias in n.names}
    return {name for name in names if name.startswith("masquerade.")}


def test_names_with_an_underscore_are_imported_in_their_own_room_alone(root):
    """import-linter cannot state this: its wildcards stand for whole names of modules."""
    files = [*MODULES, *(root / "workflow").rglob("*.py")]
    foreign = [(file.name, name) for file in files for name in imported(file)
               if "._" in name and name.split(".")[1] != room(file)]  # fmt: skip
    assert foreign == []


def imports_by_name(path: Path) -> bool:
    names = {"import_module", "__import__", "spec_from_file_location", "exec_module"}
    return any(
        (isinstance(node, ast.Name) and node.id in names)
        or (isinstance(node, ast.Attribute) and node.attr in names)
        or (isinstance(node, ast.ImportFrom) and names & {alias.name for alias in node.names})
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


def test_only_discovery_imports_by_name():
    assert {named(path) for path in MODULES if imports_by_name(path)} == BY_NAME


def test_every_folder_has_a_docstring_about_its_content():
    folders = [path for path in MODULES if path.name == "__init__.py"]
    assert [named(path) for path in folders if not ast.get_docstring(ast.parse(path.read_text()))] == []


def count_lines(path: Path) -> int:
    """The lines of a module that are not docstrings: these may be as long as what they specify."""
    text = path.read_text(encoding="utf-8")
    statements = [node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Expr)]
    docstrings = [node for node in statements if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return len(text.splitlines()) - sum(node.end_lineno - node.lineno + 1 for node in docstrings)


def test_every_module_can_be_read_in_a_sitting():
    lines = {named(path): count_lines(path) for path in MODULES}
    assert {name: count for name, count in lines.items() if count > 400} == {}


METRIC = """
from masquerade.metrics import Metric

class {name}(Metric):
    {stated}
    def compute(self, evidence):
        return {{}}
"""


@pytest.fixture
def add_file(tmp_path, monkeypatch):
    """Adds a file to a room in which nothing else is."""

    def add(room, name, text):
        package = __import__(f"masquerade.{room}", fromlist=["BASE"])
        (tmp_path / room).mkdir(exist_ok=True)
        (tmp_path / room / f"{name}.py").write_text(text)
        discovery._files_by_name.cache_clear()
        monkeypatch.setattr(discovery, "PACKAGE", tmp_path)
        monkeypatch.setattr(package, "__path__", [str(tmp_path / room)])
        monkeypatch.delitem(sys.modules, f"masquerade.{room}.{name}", raising=False)

    yield add
    discovery.load.cache_clear()


def test_a_metric_is_added_by_one_file_and_a_family_of_metrics_too(add_file):
    add_file("metrics", "mine", METRIC.format(name="Mine", stated=""))
    family = METRIC.format(name="Near", stated='name = "near"') + METRIC.format(name="Far", stated='name = "far"')
    add_file("metrics", "family", family)
    assert discovery.list_names("metrics") == ["far", "mine", "near"]
    for name in discovery.list_names("metrics"):
        metric = discovery.load("metrics", name)
        assert (metric.__name__, discovery.find_name(metric)) == (name.capitalize(), name)


def test_two_classes_of_one_name_are_refused(add_file):
    add_file("metrics", "one", METRIC.format(name="One", stated='name = "near"'))
    add_file("metrics", "two", METRIC.format(name="Two", stated='name = "near"'))
    with pytest.raises(ProtocolError, match="both define 'near'"):
        discovery.list_names("metrics")


@pytest.mark.parametrize(("text", "error"), [
    ("x = 1\n", "methods/mine.py must define exactly one subclass of Method .* defines 0"),
    ("from masquerade.methods import Method\nclass Mine(Method):\n    pass\n",
     "Mine in methods/mine.py does not define: anonymize"),
])  # fmt: skip
def test_a_file_without_its_class_and_a_class_without_its_functions_are_refused(add_file, text, error):
    add_file("methods", "mine", text)
    with pytest.raises(ProtocolError, match=error):
        discovery.load("methods", "mine")


def test_error_for_an_unknown_name_gives_the_nearest():
    with pytest.raises(ProtocolError, match="Did you mean 'identitydp'"):
        discovery.load("methods", "identitydpp")
