"""Lineage on invented records: addresses, the ends of chains, and breaks."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masquerade.core.errors import MasqueradeError
from masquerade.lineage import address, chain, provenance, records, verify
from masquerade.lineage.history import LineageError, read_working_copy
from masquerade.lineage.snakemake_internals import record_path
from toy_lineage import CHECKPOINT, FACES, METRICS, PRINTED, TABLE, Toy


def resolved(toy: Toy, name: str) -> address.ResolvedAddress:
    return address.resolve(name, read_working_copy(toy.root))


class TestAddress:
    @pytest.mark.parametrize(
        "name",
        ["re_identification_rate", "casia", "CASIA(%)", "re_id_casia", "re_identification_rate.recognizer_a"],
    )
    def test_column_has_several_names(self, toy, name):
        (cell,) = resolved(toy, f"toy/table1:fit:{name}").cells
        assert (cell.value, cell.matrix_cells) == ("0.25", (("folder", "fit", "default"),))

    def test_row_and_file_and_dataset(self, toy):
        assert [cell.value for cell in resolved(toy, "toy/table1:fit/default").cells] == ["0.25", "31.5"]
        assert resolved(toy, "toy/table1:fit:psnr:folder").cells[0].value == "31.5"
        assert resolved(toy, "toy/table1") == address.ResolvedAddress("toy/table1", TABLE)
        assert resolved(toy, CHECKPOINT).file == CHECKPOINT

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("toy/tabel1", "Did you mean 'toy/table1'?"),
            ("toy/table1:fitt:psnr", "Did you mean 'fit/default'?"),
            ("toy/table1:fit:psnrr", "Did you mean 'psnr'?"),
            ("toy/table1:fit:psnr:lfw", "Known: folder"),
            ("toy/table1:fit:psnr:folder:more", "too many parts"),
            ("checkpoints/tiny/methods/fit/1.safetensors", "There is no table, figure or file"),
        ],
    )
    def test_error_for_a_wrong_address_names_what_is_allowed(self, toy, name, message):
        with pytest.raises(LineageError) as error:
            resolved(toy, name)
        assert message in str(error.value)


class TestChain:
    def test_chain_ends_at_photographs_and_at_printed_values(self, toy):
        links = chain.follow(read_working_copy(toy.root), resolved(toy, "toy/table1:fit:psnr"))
        assert [link.name for link in links] == ["table", "metrics", "method", "faces", "files", "file"]
        photographs, printed = links[4], links[5]
        assert photographs.raw == "files from outside"
        assert list(photographs.files) == ["photographs/ (6 files)"]
        assert printed.files == {PRINTED: f"sha256:{toy.hash(PRINTED, 'sha256')}"}
        assert [link.made_from for link in links] == [(2, 6), (3, 4), (4,), (5,), (), ()]
        assert links[2].job.words == {"method": "fit", "seed": "0"}

    def test_cell_that_was_not_run_has_no_metrics_in_its_chain(self, toy):
        links = chain.follow(read_working_copy(toy.root), resolved(toy, "toy/table1:gaussian_noise:psnr"))
        assert [link.name for link in links] == ["table", "file"]

    def test_file_without_a_record_is_of_unknown_origin(self, toy):
        (toy.root / record_path(FACES)).unlink()
        text = toy.root / records.text_path("tiny")
        text.write_text("".join(line for line in text.open() if f'{{"outputs": {{"{FACES}"' not in line))
        links = chain.follow(read_working_copy(toy.root), resolved(toy, "toy/table1"))
        assert [link.raw.split(":")[0] for link in links if FACES in link.files] == ["of unknown origin"]

    def test_chain_of_a_clone_without_any_file_of_the_build_is_whole(self, toy, tmp_path):
        toy.git("clone", "--quiet", str(toy.root), str(tmp_path / "clone"))
        clone = Toy.__new__(Toy)
        clone.root = tmp_path / "clone"
        names = ("toy/table1:fit:psnr", "toy/table1:gaussian_noise:psnr", CHECKPOINT)
        for name in names:
            whole = chain.follow(read_working_copy(toy.root), resolved(toy, name))
            assert chain.follow(read_working_copy(clone.root), resolved(clone, name)) == whole
        (cell,) = resolved(clone, names[0]).cells
        assert "dvc pull" in cell.facts["reason"]

    def test_job_that_ran_since_the_build_was_recorded_is_in_the_chain(self, toy):
        toy.job("metrics", "metrics", [METRICS], [FACES, CHECKPOINT], ("scale",), '{"psnr": 30}')
        assert read_working_copy(toy.root).find_job(METRICS).params == {"scale": "tiny"}

    def test_json_of_a_chain_holds_runs_files_parameters_and_packages(self, toy):
        name = resolved(toy, "toy/table1:fit:psnr")
        links = chain.follow(read_working_copy(toy.root), name)
        plain = json.loads(json.dumps(chain.chain_to_json(name, "tiny", links, {"run of method": "1a2b"})))
        method = plain["links"][2]
        assert method["mlflow_run"] == "1a2b"
        assert plain["links"][0]["mlflow_run"] == ""
        assert method["files"] == {CHECKPOINT: f"md5:{toy.hash(CHECKPOINT)}"}
        assert method["job"]["inputs"] == {FACES: toy.hash(FACES, "sha256")}
        assert method["job"]["params"]["methods.fit.params"] == toy.parameters.tree["methods"]["fit"]["params"]
        assert plain["environments"]["e" * 64]["packages"] == {"torch": "2.13.0"}


FILES = [FACES, CHECKPOINT, METRICS, TABLE, TABLE.replace(".csv", ".md"), PRINTED, "photographs/3.png"]


def write_twice(toy):
    toy.write(TABLE, "edited")
    toy.write(CHECKPOINT, "other weights")


def edit_params(toy):
    toy.edit("params.yaml", lambda tree: tree["methods"]["fit"]["params"].update(learning_rate=0.5))


def edit_record(toy):
    path = toy.root / record_path(CHECKPOINT)
    path.write_text(path.read_text().replace('"rule": "method"', '"rule": "Method"'))


def forge_bytes_and_record(toy):
    toy.write(TABLE, "forged")
    path = toy.root / provenance.circumstances_path(TABLE)
    circumstances = json.loads(path.read_text())
    circumstances["outputs"][TABLE] = toy.hash(TABLE)
    path.write_text(json.dumps(circumstances))


def delete_records(toy):
    (toy.root / provenance.circumstances_path(CHECKPOINT)).unlink()
    (toy.root / record_path(FACES)).unlink()


class TestVerify:
    def test_unchanged_build_has_no_breaks(self, toy):
        verification = verify.verify(toy.root)
        assert (verification.breaks, verification.jobs, verification.notes) == ((), 4, ())

    @settings(max_examples=40, deadline=None)
    @given(name=st.sampled_from(FILES), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
    def test_any_flipped_bit_of_any_file_is_named(self, built_toy, tmp_path_factory, name, place, bit):
        toy = built_toy.copy(tmp_path_factory.mktemp("flipped") / "repository")
        path = toy.root / name
        content = bytearray(path.read_bytes())
        content[int(place * len(content))] ^= 1 << bit
        path.write_bytes(bytes(content))
        (broken,) = verify.verify(toy.root).breaks
        assert broken.path == name

    def test_consequences_of_a_break_are_counted_and_not_listed(self, toy):
        toy.write(FACES, "other faces")
        (broken,) = verify.verify(toy.root).breaks
        assert broken.path == FACES
        assert set(broken.rests) == {CHECKPOINT, METRICS, TABLE, TABLE.replace(".csv", ".md")}

    @pytest.mark.parametrize(
        ("change", "broken", "words"),
        [
            (write_twice, [CHECKPOINT, TABLE], "not the bytes"),  # the one nearest to raw data comes first
            (edit_params, [CHECKPOINT], "methods.fit.params.learning_rate: "),  # although all hashes agree
            (lambda toy: toy.write("src/train.py", "STEP = 'taught'\n"), [CHECKPOINT], "src/train.py"),
            (lambda toy: toy.write("src/train.py", "# a remark\nSTEP = 'train'\n"), [], ""),
            (edit_record, [record_path(CHECKPOINT)], CHECKPOINT),
            (forge_bytes_and_record, [TABLE], "records/tiny.jsonl"),
            (delete_records, [], ""),  # because the text has them
        ],
        ids=["bytes", "params", "code", "comment", "record", "forged", "no records"],
    )
    def test_broken_links_are_found_with_their_reason(self, toy, change, broken, words):
        change(toy)
        breaks = verify.verify(toy.root).breaks
        assert [each.path for each in breaks] == broken
        assert not breaks or words in breaks[0].what

    def test_build_that_was_not_recorded_is_checked_and_noted(self, toy):
        (toy.root / records.text_path("tiny")).unlink()
        verification = verify.verify(toy.root)
        assert verification.breaks == ()
        assert "records/tiny.jsonl is missing" in verification.notes[0]
        toy.write(TABLE, "edited")
        assert [broken.path for broken in verify.verify(toy.root).breaks] == [TABLE]

    def test_error_for_a_damaged_text_is_readable(self, toy):
        toy.write(records.text_path("tiny").as_posix(), "<<<<<<< HEAD\n")
        with pytest.raises(MasqueradeError, match="masquerade records merge"):
            verify.verify(toy.root)


class TestProvenance:
    def test_circumstances_are_written_beside_the_first_output(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        provenance.write_circumstances({"data/a.zip": "1a", "data/a.parquet": "2b"}, 100.0, "r1", 2)
        (path,) = (tmp_path / provenance.FOLDER).rglob("*.json")
        assert path == tmp_path / provenance.circumstances_path("data/a.zip")
        circumstances = json.loads(path.read_text())
        assert circumstances["outputs"] == {"data/a.zip": "1a", "data/a.parquet": "2b"}
        assert circumstances["started"] == "1970-01-01T00:01:40+00:00"
        assert circumstances["machine"] == provenance.describe_machine()

    def test_environment_lists_installed_packages_and_its_hash_changes_with_them(self, tmp_path, monkeypatch):
        from importlib.metadata import version

        environment = provenance.describe_environment()
        assert environment["packages"]["numpy"] == version("numpy")
        assert environment["packages"]["facenet-pytorch"]
        (tmp_path / "another_package-1.0.dist-info").mkdir()
        monkeypatch.syspath_prepend(str(tmp_path))
        other = provenance.describe_environment()
        assert other["packages"]["another-package"] == "1.0"
        assert other["sha256"] != environment["sha256"]

    def test_machine_record_holds_the_hardware_and_no_host_name(self):
        import socket

        machine = provenance.describe_machine()
        assert machine["cores"] > 0
        assert machine["processor"]
        assert socket.gethostname() not in json.dumps(machine).split()

    def test_only_the_first_process_of_a_step_writes_the_circumstances(self, tmp_path, monkeypatch):
        from argparse import Namespace

        from masquerade.core import process
        from masquerade.params.slices import Slice
        from masquerade.pipeline import program

        monkeypatch.chdir(tmp_path)
        for name, rank in (("first", 0), ("second", 1)):
            given = Namespace(params=Slice({}), outputs=[Path(name)], inputs=[], code=None, threads=3)
            monkeypatch.setattr(process, "find_current", lambda rank=rank: process.ALONE._replace(rank=rank, count=2))
            program.main(name, given, lambda run, name=name: Path(name).write_text(run.id))
        circumstances = json.loads(provenance.circumstances_path("first").read_text())
        run_hash = hashlib.md5(circumstances["run"].encode(), usedforsecurity=False).hexdigest()
        assert circumstances["outputs"] == {"first": run_hash}
        assert circumstances["machine"] == provenance.describe_machine()
        assert circumstances["threads"] == 3
        assert not provenance.circumstances_path("second").exists()
