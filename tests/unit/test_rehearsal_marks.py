"""Rehearsals: their files are marked, only rehearsals read them, and no table reads their numbers."""

import json
import runpy
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from masquerade.core import face_tables, files, rehearsal
from masquerade.core.errors import RehearsalError
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.papers.context import Context
from masquerade.params.slices import Slice
from masquerade.pipeline import measuring
from masquerade.pipeline import program as steps
from masquerade.training import checkpoints

ROOT = Path(__file__).parents[2]
CELL = {"dataset": "synthetic_hq", "method": "original", "variant": "control", "seed": 0}
NUMBERS = {"cell": CELL, "statement": {"faces": 1, "refused": 0}, "metrics": {"psnr": {}}}
ABOUT = {
    "scale": "mini",
    "seeds": [0],
    "stand_ins": {"datasets": {}, "judges": {}},
    "latent_stand_ins": {},
    "caution": "",
    "papers": [],
}


@pytest.fixture(autouse=True)
def outside_rehearsal(monkeypatch):
    monkeypatch.setenv(rehearsal.VARIABLE, "")


@pytest.fixture
def rehearsing(monkeypatch):
    monkeypatch.setenv(rehearsal.VARIABLE, "1")


def checkpoint(folder: Path) -> Path:
    checkpoints.save_checkpoint(folder / "network.safetensors", {"network": torch.nn.Linear(1, 1)}, {"width": 1})
    return folder / "network.safetensors"


def archive(folder: Path) -> Path:
    with ArchiveWriter(folder / "faces.zip", {"size": 8}) as out:
        out.add(np.zeros((8, 8, 3), np.uint8), {"id": "a", "identity": "p", "split": "test"})
    return folder / "faces.zip"


def measured(folder: Path) -> Path:
    measuring.measure(archive(folder), folder / "measured.parquet", {})
    return folder / "measured.parquet"


def taken_apart(folder: Path) -> Path:
    class Method:
        def features(self, faces):
            return {"codes": np.zeros((len(faces), 2), np.float32)}

    measuring.write_features(FaceArchive(archive(folder)), folder / "features.parquet", Method(), "test", 4, {})
    return folder / "features.parquet"


def attacked(folder: Path) -> Path:
    files.write_json(folder / "attacks.json", {"cell": CELL, "attacks": {}})
    return folder / "attacks.json"


KINDS = {
    "checkpoint": (checkpoint, checkpoints.load_checkpoint),
    "archive": (archive, FaceArchive),
    "measurements": (measured, face_tables.read),
    "features": (taken_apart, face_tables.read_features),
    "attacks": (attacked, files.read_json),
}


@pytest.mark.parametrize("kind", KINDS)
def test_only_rehearsals_read_files_of_rehearsals(kind, rehearsing, monkeypatch, tmp_path):
    write, read = KINDS[kind]
    path = write(tmp_path)
    read(path)
    monkeypatch.setenv(rehearsal.VARIABLE, "")
    with pytest.raises(RehearsalError, match=f"{path.name} was made by a rehearsal"):
        read(path)


@pytest.mark.parametrize("kind", KINDS)
def test_result_has_no_mark_and_is_always_readable(kind, monkeypatch, tmp_path):
    write, read = KINDS[kind]
    path = write(tmp_path)
    assert b'"rehearsal"' not in path.read_bytes()
    read(path)
    monkeypatch.setenv(rehearsal.VARIABLE, "1")
    read(path)


def test_only_the_parameters_of_a_job_make_it_a_rehearsal(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "argv", ["job", "--params", '{"seed": 1, "rehearsal": true}', "--outputs", "x"])
    assert steps.parse_arguments("").params.values == {"seed": 1}
    assert rehearsal.is_rehearsing()
    monkeypatch.setattr(sys, "argv", ["job", "--params", '{"seed": 1}', "--outputs", "x"])
    steps.parse_arguments("")
    assert not rehearsal.is_rehearsing()  # the environment of an earlier job has no effect


def test_a_rehearsal_has_no_tables(rehearsing):
    with pytest.raises(RehearsalError, match="no tables, figures, claims or report"):
        Context.of(Slice(ABOUT))


PROGRAMS = {
    "scores": ("--metrics",),
    "table": ("--skipped", "[]", "--imported", "{}", "--declared", "reference/falco/table1.yaml", "--metrics"),
    "leaderboard": (
        *("--skipped", "[]", "--imported", "{}", "--benchmarks", "{seed}.tsv"),
        *("--declared", "reference/attackers/leaderboard.yaml", "--metrics"),
    ),
    "score": (
        *("--variant", "theirs", "--private", "", "--leaderboard", "reference/claims.yaml", "--faces", "none.zip"),
        *("--derived", "none.zip", "--source", "none.parquet", "--measured", "none.parquet", "--metrics"),
    ),
    "curves": ("--skipped", "[]", "--imported", "{}", "--declared", "reference/identitydp/figure4.yaml", "--metrics"),
    "claims": ("--skipped", "[]", "--declared", "reference/claims.yaml", "--metrics"),
    "report": (
        *("--skipped", "[]", "--skipped_claims", "[]", "--imported", "{}", "--needs", "[]", "--private", ""),
        *("--declared", "reference/claims.yaml", "--claims", "reference/claims.yaml"),
        "--metrics",
    ),
    "backbones_table": ("--qualities",),
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_marked_file_among_results_is_refused_by_every_program_that_reads_numbers(program, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "reference", tmp_path / "reference")
    cell = Path("results/mini/metrics/synthetic_hq/original/control/0.json")
    (tmp_path / cell).parent.mkdir(parents=True)
    (tmp_path / cell).write_text(json.dumps({**NUMBERS, "rehearsal": True}))
    monkeypatch.chdir(tmp_path)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(variable, "1")  # a program sets them
    words = ["--params", json.dumps(ABOUT), "--outputs", "results/mini/out", *PROGRAMS[program], str(cell)]
    monkeypatch.setattr(sys, "argv", [program, *words])
    with pytest.raises(SystemExit, match=f"{cell} holds numbers of a rehearsal"):
        runpy.run_path(str(ROOT / f"workflow/scripts/{program}.py"), run_name="__main__")
    assert not Path("results/mini/out").exists()


def test_every_program_that_reads_numbers_checks_the_mark():
    for path in (ROOT / "workflow/scripts").glob("*.py"):
        text = path.read_text()
        assert ("read_numbers" in text) == (path.stem in PROGRAMS), path.name
        assert "json.loads(path" not in text, path.name
