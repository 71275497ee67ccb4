"""The folders of a batch: one run at a time writes into one, and names of any form are those of their photographs."""

import errno
import os
import signal
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest
from filelock import FileLock, SoftFileLock

import masquerade
from command_line import (
    anonymize_from_seed as anonymize,
)
from command_line import (
    folder_with_portrait,
    make_original_keyed,
    portrait,
    recover,
    report,
    repository,
    written,
)
from masquerade.pipeline.photographs import batches

COMPOSED, DECOMPOSED = (unicodedata.normalize(form, "Zo\u00eb.jpg") for form in ("NFC", "NFD"))
BUSY = "Another run writes into"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return folder_with_portrait(tmp_path, "one.jpg")


@pytest.fixture
def key(tmp_path, monkeypatch) -> tuple[str, Path]:
    make_original_keyed(monkeypatch)
    (tmp_path / "key").write_text("correct horse battery")
    return "--key-file", tmp_path / "key"


class TestTwoRuns:
    @pytest.mark.parametrize("more", [(), ("--overwrite",), ("--continue",)])
    def test_a_second_run_into_one_folder_is_refused_by_name_and_the_first_is_whole(
        self, root, pictures, tmp_path, capsys, more
    ):
        other, output, ended = tmp_path / "other", tmp_path / "out", []
        other.mkdir()
        portrait().rotate(3).save(other / "two.jpg")

        def progress(text: str) -> None:
            ended.append(anonymize(root, other, output, *more))

        masquerade.load("gaussian_noise", seed=1, root=root).anonymize_folder(
            pictures, output, options=masquerade.FolderOptions(progress=progress)
        )
        assert set(ended) == {1}
        assert f"{BUSY} {output} now." in capsys.readouterr().err.replace("\n", " ")
        assert list(report(output)) == ["one.jpg"]
        assert len(written(output)) == 2
        assert anonymize(root, other, output, "--continue") == 0, "the first run has ended"
        assert sorted(report(output)) == ["one.jpg", "two.jpg"]

    def test_a_recovery_is_refused_too(self, root, pictures, tmp_path, key, capsys):
        assert anonymize(root, pictures, tmp_path / "hidden", *key, method="original") == 0
        with batches.lock_folder(tmp_path / "back"):
            assert recover(root, tmp_path / "hidden", tmp_path / "back", *key, "--overwrite") == 1
        assert BUSY in capsys.readouterr().err
        assert recover(root, tmp_path / "hidden", tmp_path / "back", *key) == 0

    def test_a_run_that_ended_meanwhile_is_not_overwritten(self, root, pictures, tmp_path, monkeypatch):
        """The folder was empty when the second run began, and its results lie there when it has the lock."""
        noise, output = (
            masquerade.load("gaussian_noise", seed=1, root=root),
            tmp_path / "out",
        )
        steps = masquerade.Anonymizer._anonymizing

        def late(*given):
            monkeypatch.undo()
            assert anonymize(root, pictures, output) == 0
            return steps(*given)

        monkeypatch.setattr(masquerade.Anonymizer, "_anonymizing", late)
        with pytest.raises(masquerade.MasqueradeError, match="is not empty"):
            noise.anonymize_folder(pictures, output)

    def test_the_lock_of_a_killed_process_does_not_stay(self, root, pictures, tmp_path):
        code = (
            "import os, signal, sys; from pathlib import Path; from masquerade.pipeline.photographs import batches\n"
            "with batches.lock_folder(Path(sys.argv[1])): os.kill(os.getpid(), signal.SIGKILL)"
        )
        ended = subprocess.run([sys.executable, "-c", code, tmp_path / "out"], check=False)
        assert ended.returncode == -signal.SIGKILL
        assert (tmp_path / "out" / batches.LOCK).exists()
        assert anonymize(root, pictures, tmp_path / "out") == 0

    def test_where_only_a_file_can_be_the_lock_a_refusal_says_how_to_end_it(self, tmp_path, monkeypatch):
        monkeypatch.setattr(batches, "FileLock", SoftFileLock)
        second = batches.lock_folder(tmp_path)
        with batches.lock_folder(tmp_path), pytest.raises(masquerade.MasqueradeError, match=r"delete .*lock\."), second:
            pass
        assert not (tmp_path / batches.LOCK).exists()

    def test_a_file_system_that_cannot_lock_is_named_before_the_work(self, tmp_path, monkeypatch):
        def unable(self, *given, **options):
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

        monkeypatch.setattr(FileLock, "acquire", unable)
        refused = pytest.raises(masquerade.MasqueradeError, match=r"cannot lock a file \(No locks available\)")
        with refused, batches.lock_folder(tmp_path):
            pass

    def test_a_folder_with_hidden_files_alone_is_empty(self, root, pictures, tmp_path):
        """Those of a run that was killed before its first row, of a file server, or of a desktop."""
        (tmp_path / "out" / batches.UNFINISHED).mkdir(parents=True)
        (tmp_path / "out" / ".DS_Store").touch()
        assert anonymize(root, pictures, tmp_path / "out", "--continue") == 0


class TestNames:
    def test_a_name_that_macos_decomposed_is_the_same_photograph(self, root, tmp_path, key):
        pictures, output = folder_with_portrait(tmp_path, COMPOSED), tmp_path / "out"
        assert anonymize(root, pictures, output, *key, method="original") == 0
        before = (report(output), {name: (output / name).read_bytes() for name in written(output)})
        (pictures / COMPOSED).rename(pictures / DECOMPOSED)
        assert anonymize(root, pictures, output, *key, "--continue", method="original") == 0
        assert (report(output), {name: (output / name).read_bytes() for name in written(output)}) == before
        assert list(before[0]) == [COMPOSED]
        assert recover(root, output, tmp_path / "back", *key, "--originals", pictures) == 0
        assert [row["psnr"] for row in report(tmp_path / "back").values()] == ["inf"]

    def test_where_both_forms_are_in_one_folder_they_are_two_photographs(self, root, tmp_path):
        pictures = folder_with_portrait(tmp_path, COMPOSED)
        portrait().rotate(3).save(pictures / DECOMPOSED, quality=95)
        assert anonymize(root, pictures, tmp_path / "out") == 0
        assert sorted(report(tmp_path / "out")) == sorted([COMPOSED, DECOMPOSED])
        assert len(written(tmp_path / "out")) == 3

    def test_a_person_of_a_folder_has_one_name(self, tmp_path):
        from command_line import FOLDER
        from masquerade.faces.folder import Folder

        for folder in (COMPOSED, DECOMPOSED):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / f"{len(folder)}.txt").write_text("no image")
        dataset = Folder(Folder.Params(**{**FOLDER, "path": str(tmp_path), "identity": "from_folder"}))
        assert {record.row["identity"] for record in dataset.records(64, 0, workers=1)} == {COMPOSED}

    @pytest.mark.parametrize("name", ["=1;=2.jpg", "@SUM(A1).jpg", "'=quoted.jpg", "\tx.jpg"])
    def test_no_name_is_a_formula_in_a_spreadsheet_and_each_is_read_back(self, root, tmp_path, name):
        pictures, output = folder_with_portrait(tmp_path, name), tmp_path / "out"
        assert anonymize(root, pictures, output) == 0
        first = (output / "report.csv").read_text().splitlines()[1]
        assert first.startswith(f'"\'{name}",')
        before = {name: (output / name).read_bytes() for name in written(output)}
        assert anonymize(root, pictures, output, "--continue") == 0
        assert {name: (output / name).read_bytes() for name in written(output)} == before

    def test_a_folder_whose_name_is_no_text_gets_the_results(self, root, tmp_path):
        pictures, output = tmp_path / os.fsdecode(b"photo\xff"), tmp_path / os.fsdecode(b"out\xff")
        pictures.mkdir()
        portrait().save(pictures / os.fsdecode(b"one\xfe.jpg"), quality=95)
        portrait().rotate(3).save(pictures / os.fsdecode(b"one\xfd.jpg"), quality=95)
        program = [sys.executable, "-c", "from masquerade.cli.main import main; main()"]
        options = ["--method", "gaussian_noise", "--seed", "1", "--input", pictures, "--output", output, "--root", root]
        ended = subprocess.run(
            [*program, "anonymize", *options, "--photographs"], capture_output=True, check=False,
            env=os.environ | {"PYTHONIOENCODING": "ascii:strict"},
        )  # fmt: skip
        assert (ended.returncode, b"Traceback" in ended.stderr) == (0, False)
        assert len(written(output)) == 5
        assert b"out" in ended.stdout

    def test_a_tilde_is_the_home_folder_in_python(self, root, pictures, tmp_path, monkeypatch, key):
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.chdir(root)
        original = masquerade.load("original", root="~/repository")
        original.anonymize_folder("~/photographs", "~/out", key="correct horse battery")
        original.recover_folder(
            "~/out",
            "~/back",
            key="correct horse battery",
            options=masquerade.RecoveryOptions(originals="~/photographs"),
        )
        original.anonymize("~/photographs/one.jpg", key="correct horse battery").save("~/face.png")
        original.recover("~/face.png", key="correct horse battery", salt=None)
        assert (tmp_path / "face.png").is_file()
        assert len(written(tmp_path / "back")) == 2
        assert not list(root.glob("~*"))

    def test_a_file_whose_name_begins_with_a_tilde_is_itself(self, root, tmp_path, monkeypatch):
        folder_with_portrait(tmp_path, "~draft.jpg")
        monkeypatch.chdir(tmp_path / "photographs")
        assert masquerade.load("gaussian_noise", seed=1, root=root).anonymize("~draft.jpg").distance > 0.65
