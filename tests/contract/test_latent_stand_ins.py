"""At a scale where another method runs in the place of a published one, no title stands for the published one."""

from pathlib import Path

import pytest

from masquerade.papers import cautions, reference
from masquerade.papers.declarations import Table
from masquerade.papers.figure_declarations import Grid, Tradeoff
from masquerade.params import loading
from masquerade.pipeline import method_files

ROOT = Path(__file__).parents[2]
PHOTO = loading.load(ROOT, "photo").latent_stand_ins
FILES = sorted((ROOT / reference.FOLDER).glob("*/*.yaml"))


def titles(item: reference.Reference) -> list[tuple[str, str]]:
    """(method, title) of everything that an item shows of a method, but for plain controls."""
    if isinstance(item, Table | Grid | Tradeoff):
        return [(entry.method, entry.title) for entry in reference.method_entries(item)]
    return [(item.method, panel.title) for panel in item.panels] + [(item.method, item.caption)]


def test_at_photo_two_methods_are_stand_ins_and_at_mini_none():
    assert set(PHOTO) == {"identitydp", "cao21"}
    assert loading.load(ROOT, "mini").latent_stand_ins == {}
    assert loading.load(ROOT, "paper").latent_stand_ins == {}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_title_of_a_stand_in_is_marked_and_the_note_says_what_runs(path):
    plain, marked = reference.load(path), reference.load(path, PHOTO)
    for (method, before), (_, after) in zip(titles(plain), titles(marked), strict=True):
        assert (cautions.STAND_IN in after) == (method in PHOTO)
        assert after.startswith(before)
    for method in {method for method, _ in titles(plain)} & set(PHOTO):
        assert PHOTO[method] in marked.note
    assert marked.note.endswith(plain.note)


@pytest.mark.parametrize("method", sorted(PHOTO))
def test_whoever_anonymizes_is_told_that_a_stand_in_runs(method):
    sentence = method_files.describe_scale(loading.load(ROOT, "photo"), method)
    assert f"It is a latent stand-in and not the published method: {PHOTO[method]}." in sentence
    assert "stand-in" not in method_files.describe_scale(loading.load(ROOT, "mini"), method)


@pytest.mark.parametrize("scale", ["mini", "photo", "paper"])
def test_no_method_that_draws_with_a_frozen_generator_is_forgotten(scale):
    parameters = loading.load(ROOT, scale)
    latent = {name for name, block in parameters.methods.items() if getattr(block.params, "is_latent", False)}
    assert set(parameters.latent_stand_ins) == latent
