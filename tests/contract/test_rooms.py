"""The contract of every discovered module of every room."""

import ast
import re
import sys

import pytest

from masquerade.core import discovery
from masquerade.core.settings import Settings, SmallScale, read_descriptions
from masquerade.params import overlays
from masquerade.params.blocks import PARAMS
from masquerade.params.model import build_model
from masquerade.params.parameters import Parameters

UNPRINTED = (
    "published",
    "correction_steps",
    "samples_every",
    "ema",
    "cooldown",
    "kernel_rate",
    "edges",
    "quality_samples",
    "most_pictures",
    "optimization",
    "identity_steps",
    "references",
)
"""Knobs that may have a default: no paper has them, or at 0 they are off, as in most papers."""
ROOMS = ("faces", "judges", "metrics", "methods", "backbones", "attackers")
MODULES = [(room, name) for room in ROOMS for name in discovery.list_names(room) if name != discovery.IMPORTED]


@pytest.fixture(scope="module")
def papers(root):
    """params.yaml without the overlay of a scale."""
    return Parameters(build_model()(**overlays.read_yaml(root / PARAMS)))


def blocks(cls):
    """The parameter types of a class, with those that they are made of."""
    pending, types = [cls.Params, *([cls.Variant] if hasattr(cls, "Variant") else [])], []
    while pending:
        block = pending.pop()
        types.append(block)
        for field in block.model_fields.values():
            items = [field.annotation, *getattr(field.annotation, "__args__", ())]
            pending += [item for item in items if isinstance(item, type) and issubclass(item, Settings)]
    return types


@pytest.mark.parametrize(("room", "name"), MODULES)
def test_module_defines_its_class(room, name):
    cls = discovery.load(room, name)
    assert cls.title


@pytest.mark.parametrize("room", ROOMS)
def test_no_class_is_left_out_because_it_states_no_name(room):
    """Of a file that holds a family of classes, one without a ``name`` would never be found."""
    classes = {discovery.load(room, name) for name in discovery.list_names(room)}
    for module in {sys.modules[cls.__module__] for cls in classes}:
        concrete = {
            item
            for item in vars(module).values()
            if isinstance(item, type) and item.__module__ == module.__name__ and hasattr(item, "title")
            if issubclass(item, sys.modules[f"masquerade.{room}"].BASE)
        }
        assert concrete <= classes, module.__name__


@pytest.mark.parametrize(("room", "name"), MODULES)
def test_class_names_its_source(room, name):
    cls = discovery.load(room, name)
    assert cls.__doc__, "a docstring is missing"
    text = " ".join([cls.__doc__, getattr(cls, "paper", ""), getattr(cls, "source", "")])
    drawn_or_ours = room == "faces" or getattr(getattr(cls, "capabilities", None), "control", False)
    assert drawn_or_ours or re.search(r"\b(19|20)\d\d\b|dlib|backbones/|trained here", text), text


@pytest.mark.parametrize(("room", "name"), MODULES)
def test_every_knob_is_closed_described_and_has_no_default_if_a_paper_may_print_it(room, name):
    for block in blocks(discovery.load(room, name)):
        assert block.model_config["extra"] == "forbid"
        texts = read_descriptions(block)
        for knob, field in block.model_fields.items():
            absent = not field.is_required() and field.default is None  # an optional block that a scale may add
            small = issubclass(block, SmallScale) or isinstance(field.default, SmallScale)
            shown = field.is_required() or absent or small or knob in UNPRINTED or knob.startswith("floor_")
            assert shown, f"{knob} has a default that params.yaml would not show"
            assert texts.get(knob), f"{knob} has no description"


@pytest.mark.parametrize(("room", "name"), MODULES)
def test_module_is_in_the_parameters_of_the_papers(room, name, papers):
    assert name in getattr(papers, "datasets" if room == "faces" else room)


@pytest.mark.parametrize(("room", "name"), [item for item in MODULES if item[0] == "methods"])
def test_capabilities_match_the_defined_functions(room, name):
    cls = discovery.load(room, name)
    able = cls.capabilities
    assert ("train" in vars(cls)) == able.trains
    assert _defines(cls, "recover") == able.invertible
    assert _defines(cls, "save") == _defines(cls, "recover_saved") == able.saves
    assert _defines(cls, "recover_onto") == able.pastes
    assert able.invertible or not able.pastes


def _defines(cls, name) -> bool:
    return name in vars(cls)


def test_no_module_prints_or_hides_errors(root):
    """A handler of errors that is only ``pass`` needs a comment with the reason; ruff does not check this."""
    for path in sorted((root / "src").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ExceptHandler) and all(isinstance(item, ast.Pass) for item in node.body):
                line = text.splitlines()[node.body[0].lineno - 1]
                assert "#" in line, f"{path}:{node.lineno} swallows an error without saying why"
