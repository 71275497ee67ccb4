"""The results of an external program in the tables: export the faces, import its pictures, build, push."""

import json

import numpy as np
import pytest
from PIL import Image

from masquerade.pipeline.imported import pictures

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
SOURCE = "Hukkelås et al. 2019, program 1.0"
TITLE = "DeepPrivacy, official program"


def test_imported_pictures_fill_the_rows_of_their_method_and_are_shared_by_dvc(built, tmp_path):
    faces, theirs = tmp_path / "faces", tmp_path / "theirs"
    built.run("masquerade", "export-faces", str(faces), "--dataset", "synthetic_hq")
    theirs.mkdir()
    given = sorted(faces.iterdir())
    for path in given[1:]:  # the program detected no face in the first
        Image.fromarray(255 - np.asarray(Image.open(path))).save(theirs / path.name)
    command = (
        "masquerade",
        "import-method",
        str(theirs),
        "--name",
        "deepprivacy_official",
        "--title",
        TITLE,
        "--dataset",
        "synthetic_hq",
    )
    assert f"- {given[0].stem}: no picture" in built.run(*command, "--source", SOURCE, fails=True)
    built.run(*command, "--source", SOURCE, "--partial")
    expected = {f"{step}-synthetic_hq-deepprivacy_official-default-0" for step in ("imported", "measure", "evaluate")}
    out_of_date = built.out_of_date()
    assert {
        job for job in out_of_date if job.split("-")[0] not in {"table", "grid", "claims_table", "scores", "report"}
    } == expected
    assert "table-falco-table1" in out_of_date
    other_tables = {"table-lreorg-table6", "table-cao21-table4", "table-ifadit-recovery"}  # other methods, recoveries
    assert not other_tables & out_of_date

    built.edit_params(lambda tree: tree.update(papers=["falco"]))  # fewer tables to build
    assert "jobs recorded" in built.snakemake("all")
    stored = built.path / "imported/tiny/synthetic_hq/deepprivacy_official/default.zip"
    place = "synthetic_hq/deepprivacy_official/default/0.json"
    cell = json.loads((built.path / "results/tiny/metrics" / place).read_text())
    assert cell["statement"]["imported"] == f"sha256:{pictures.sha256(stored)}"
    assert (cell["statement"]["faces"], cell["statement"]["refused"]) == (len(given), 1)
    table = (built.path / "results/tiny/tables/falco/table1.md").read_text()
    assert "deepprivacy is not built yet" not in table
    assert f"imported = sha256:{pictures.sha256(stored)}, program = {SOURCE}" in table
    row = next(line for line in table.splitlines() if line.startswith(f"| {TITLE}"))
    assert row.count(f"({len(given) - 1}/{len(given)})") >= 4  # over the faces that were not refused

    built.commit("imported")
    built.run("dvc", "remote", "add", "--default", "lab", str(tmp_path / "remote"))
    built.commit("remote")
    built.run("dvc", "push")
    clone = built.clone(tmp_path / "clone")
    assert "Nothing to be done" in clone.snakemake("all")
    assert "up to date" in clone.run("dvc", "status")

    whole = stored.read_bytes()
    stored.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    output = built.snakemake("all", fails=True)
    assert "params.yaml names" in output
    assert "`dvc pull`" in output
