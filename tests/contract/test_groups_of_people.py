"""Who learns from whom: every training that exists reads images of its own group of people, and of nobody else."""

import pytest

from masquerade.core import discovery, people

BACKBONES = discovery.list_names("backbones")
METHODS = [name for name in discovery.list_names("methods") if discovery.load("methods", name).capabilities.trains]
SHOWING = [name for name in discovery.list_names("methods") if discovery.load("methods", name).capabilities.gallery]


def learned_from(archive, names):
    """The groups and splits of the faces, without the validation split, whose faces are samples and measure quality."""
    rows = archive.index[archive.index["id"].isin(names) & (archive.index["split"] != "validation")]
    return set(rows["group"].where(rows["split"] == "train", rows["split"]))


@pytest.mark.parametrize("name", BACKBONES)
def test_training_of_a_backbone_reads_the_people_of_its_group_alone(workshop, name):
    read = workshop.read_by(workshop.backbone(name))
    assert learned_from(workshop.archive, read) == {discovery.load("backbones", name).people}


@pytest.mark.parametrize("name", METHODS)
def test_training_of_a_method_reads_the_people_of_its_group_alone(workshop, name):
    read = workshop.read_by(workshop.resources(name).checkpoint)
    assert learned_from(workshop.archive, read) <= {"methods"}  # lreorg reads no image: it learns from drawn faces


@pytest.mark.parametrize("name", SHOWING)
def test_a_gallery_shows_the_people_of_the_methods_alone(workshop, name):
    method, probes = workshop.method(name, observe=False), workshop.archive.load("test")
    with workshop.noted_reading() as read:
        method.anonymize(probes, seed=0)
    assert learned_from(workshop.archive, read) == {"methods"}


def test_a_backbone_learns_from_the_people_of_the_judges_if_it_only_judges():
    judging = {need for name in discovery.list_names("judges") for need in discovery.load("judges", name).needs}
    used = {need for room in ("methods", "backbones") for name in discovery.list_names(room)
            for need in discovery.load(room, name).needs}  # fmt: skip
    assert not judging & used
    for name in BACKBONES:
        assert discovery.load("backbones", name).people == ("judges" if name in judging else "backbones"), name


def test_groups_of_an_archive_share_no_person(workshop):
    rows = workshop.archive.index
    parts = rows["group"].where(rows["split"] == "train", rows["split"])
    assert set(parts) == {*people.GROUPS, "validation", "test"}
    assert parts.groupby(rows["identity"]).nunique().max() == 1
