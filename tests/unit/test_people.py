"""The groups of people: disjoint at every scale, and between datasets of one source."""

from itertools import combinations

import numpy as np
import pytest
from pydantic import ValidationError

import published
from masquerade import faces
from masquerade.backbones.recognition.training import select_identities
from masquerade.core import discovery, people
from masquerade.core.errors import ArchiveError
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.faces import Dataset, Record
from masquerade.faces.photographs.published_dataset import PublishedDataset
from masquerade.faces.rendered import SERIES, RenderedDataset
from masquerade.params import loading
from masquerade.params.blocks import PeopleSettings

SCALES = ("tiny", "mini", "evening", "paper", "paper_1024")
SHARES = {"backbones": 0.4, "judges": 0.3, "methods": 0.2, "attackers": 0.1}
PICTURES = 400  # of CelebA-HQ in the tests; CelebA has twice as many


@pytest.fixture(scope="module", params=SCALES)
def parameters(request, root):
    return loading.load(root, request.param)


@pytest.fixture(scope="module")
def celeba(tmp_path_factory):
    """CelebA and CelebA-HQ without real images: three of each person, a tenth validation and a tenth test."""
    folder, blank = tmp_path_factory.mktemp("celeba"), np.zeros((8, 8, 3), np.uint8)
    who = [number // 3 for number in range(2 * PICTURES)]
    parts = [{8: 1, 9: 2}.get(person % 10, 0) for person in who]
    published.celeba_hq(folder / "hq", folder / "celeba", [blank] * PICTURES, who[:PICTURES], parts[:PICTURES])
    published.celeba(folder / "celeba", [blank] * (2 * PICTURES), who, parts)
    return folder


def rows_of(dataset, seed):
    """(identity, split) of each face of a dataset, without an image."""
    if isinstance(dataset, RenderedDataset):
        return [(f"{job[0]}-{job[1]}-{job[2]:04d}", job[1]) for job in dataset._jobs(64, seed)]
    assert isinstance(dataset, PublishedDataset)
    return [(listed.row["identity"], listed.row["split"]) for listed in dataset.list_pictures(dataset.tree(), seed)]


def datasets_of(parameters, celeba):
    """The drawn datasets of a scale, or CelebA and CelebA-HQ as the scale divides them, in small."""
    if parameters.matrix.train_on != "celeba_hq":
        return [discovery.load("faces", name)(parameters.datasets[name]) for name in ("synthetic_hq", "synthetic_wild")]
    own, made = {"celeba": str(celeba / "celeba"), "path": str(celeba / "hq"), "pictures": PICTURES, "masks": False}, []
    own |= {"validation_pictures": 50, "test_pictures": 60}
    for name, small in (("celeba_hq", own), ("celeba", {"path": str(celeba / "celeba"), "pictures": 2 * PICTURES})):
        cls = discovery.load("faces", name)
        made.append(cls(cls.Params(**parameters.datasets[name].model_dump() | small)))
    return made


def test_nobody_is_in_two_groups_or_splits_of_any_dataset_of_a_scale(parameters, celeba):
    shares, places = parameters.people.model_dump(), {}
    for dataset in datasets_of(parameters, celeba):
        for person, split in rows_of(dataset, parameters.data_seed):
            part = people.assign_group(person, shares) if split == "train" else split
            places.setdefault(part, set()).add(person)
    assert set(places) == {*people.GROUPS, "validation", "test"}
    for first, second in combinations(places, 2):
        assert not places[first] & places[second], (first, second)


def test_recognizers_that_judge_have_people_of_their_own(parameters):
    parts = {
        name: block.recognition.identities
        for name, block in parameters.backbones.items()
        if hasattr(block, "recognition") and discovery.load("backbones", name).people == "judges"
    }
    names = [f"p{number}" for number in range(50)]
    for first, second in combinations(parts.values(), 2):
        assert not set(select_identities(names, first)) & set(select_identities(names, second))


def test_people_of_the_test_split_are_drawn_from_a_series_that_nothing_was_tuned_on():
    # until the split was made anew, constants were tuned on people of the series `test`
    assert SERIES["validation"] == "test"
    assert SERIES["test"] not in ("train", "validation", "test")
    assert len(set(SERIES.values())) == len(SERIES)


def test_the_group_of_a_person_depends_on_the_name_alone():
    names = [f"celeba-{number}" for number in range(4000)]
    groups = [people.assign_group(name, SHARES) for name in names]
    assert [people.assign_group(name, SHARES) for name in names[::-1]] == groups[::-1]
    for group, share in SHARES.items():
        assert groups.count(group) / len(names) == pytest.approx(share, abs=0.03)


def test_people_whom_the_shares_leave_out_are_in_no_group():
    half = {group: share / 2 for group, share in SHARES.items()}
    left = sum(not people.assign_group(f"p{number}", half) for number in range(2000))
    assert left / 2000 == pytest.approx(0.5, abs=0.05)


def test_shares_that_would_overlap_are_refused():
    assert PeopleSettings(**SHARES).judges == 0.3
    with pytest.raises(ValidationError, match=r"add up to 1\.1 .*lower one of them"):
        PeopleSettings(**SHARES | {"attackers": 0.2})


class Strangers(Dataset):
    """Forty train images of unknown people, and one test image."""

    def records(self, size, seed, workers):
        for number in range(41):
            row = {"id": f"s{number}", "identity": "", "split": "train" if number < 40 else "test"}
            yield Record(np.zeros((size, size, 3), np.uint8), row)


def test_a_picture_of_an_unknown_person_counts_as_its_own_person(tmp_path, monkeypatch):
    monkeypatch.setattr(discovery, "find_name", lambda cls: "strangers")
    faces.build(Strangers(Strangers.Params()), tmp_path / "faces.zip", 8, 0, SHARES)
    archive = FaceArchive(tmp_path / "faces.zip")
    parts = [set(archive.select(group)["id"]) for group in people.GROUPS]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 40
    assert all(parts)
    assert archive.select("test")["group"].tolist() == [""]
    assert len({archive.digest(group) for group in people.GROUPS}) == 4


def test_an_archive_without_groups_trains_nothing(tmp_path):
    with ArchiveWriter(tmp_path / "old.zip") as out:
        out.add(np.zeros((4, 4, 3), np.uint8), {"id": "a", "identity": "p", "split": "train"})
    with pytest.raises(ArchiveError, match="does not say which people are in the group 'methods'"):
        FaceArchive(tmp_path / "old.zip").select("methods")
