"""Tables of the command line keep what they print whole, and take no text from outside for markup."""

import ast
from pathlib import Path

import pytest
import typer
import yaml
from rich.table import Table
from rich.text import Text

import command_line
from masquerade.cli import common, main, outcome

CLI = Path(common.__file__).parent
LONG = "/lab/" + "a long name/" * 20 + "[bold]photographs[/bold] and [/x]"


@pytest.fixture(autouse=True)
def log(monkeypatch):
    """Output goes into a log of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def test_a_table_in_a_log_keeps_paths_and_commands_whole(capsys):
    table = Table("what", "what to do", title=Text(f"in {LONG}"))
    common.add_row(table, f"without {LONG}", f"`masquerade doctor --root '{LONG}'`", style="red")
    common.print_table(table)
    printed = capsys.readouterr().out
    for text in (f"in {LONG}", f"without {LONG}", f"`masquerade doctor --root '{LONG}'`"):
        assert text in printed


def test_matrix_prints_words_in_brackets_of_a_path_as_they_are(tmp_path, capsys):
    """They were markup of Rich: `[bold]` was left out, and `[/x]` ended in a MarkupError."""
    root = command_line.repository(tmp_path)
    tree = command_line.tree()
    tree["datasets"]["folder"] = command_line.FOLDER | {"path": LONG}
    tree["matrix"]["evaluate"] = {"folder": ["original/control"]}
    (root / "params.yaml").write_text(yaml.safe_dump(tree))
    with pytest.raises(SystemExit, match="0"):
        main.main(["matrix", "--root", str(root)])
    assert LONG in capsys.readouterr().out


def test_the_summary_of_a_run_keeps_reasons_and_paths_whole(tmp_path, capsys):
    rows = [
        {"file": "a.png", "output": "a.png", "status": "ok", "reason": ""},
        {"file": "b", "output": "", "status": "refused", "reason": f"no {LONG}"},
    ]
    with pytest.raises(typer.Exit):
        outcome.summarize(rows, Path(LONG), f"a method at {LONG}", {}, "anonymized")
    printed = capsys.readouterr()
    assert f"a method at {LONG}" in printed.out
    assert f"anonymized, in {LONG}" in printed.out
    assert f"refused: no {LONG}" in printed.out
    assert f"see {LONG}/report.csv." in printed.err


def test_every_table_of_the_command_line_is_printed_by_one_function():
    """A row that Rich itself adds takes its texts for markup, and a table that Rich itself prints is cut in a log."""
    for path in CLI.glob("*.py"):
        if path.name == "common.py":
            continue
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        attributes = [call.func for call in calls if isinstance(call.func, ast.Attribute)]
        adding = [ast.unparse(each) for each in attributes if each.attr == "add_row"]
        assert set(adding) <= {"common.add_row"}, path.name
        printed = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "print"]
        assert not [call for call in printed if ast.unparse(call.args[0]) in ("table", "output")], path.name
