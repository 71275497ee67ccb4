"""A batch that is stopped leaves no original, no image without its row, and goes on where it was."""

import errno
import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from command_line import anonymize_from_seed as anonymize
from command_line import folder_with_portrait, make_original_keyed, portrait, report, repository, written
from masquerade.cli import common
from masquerade.pipeline import anonymization, release
from masquerade.pipeline.photographs import batches
from masquerade.pipeline.photographs.earlier_runs import CONTENTS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Three photographs."""
    folder = folder_with_portrait(tmp_path, "0.jpg")
    for number in (1, 2):
        portrait().rotate(number).save(folder / f"{number}.jpg", quality=95)
    return folder


def named(output: Path) -> set[str]:
    """The images that the report names, and itself."""
    rows = report(output).values()
    return {"report.csv"} | {row[column] for row in rows for column in ("output", "photograph") if row.get(column)}


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def contents(output: Path) -> dict[str, bytes]:
    return {name: (output / name).read_bytes() for name in written(output) if name != "report.csv"}


pytestmark = pytest.mark.usefixtures("signals_are_received")


@pytest.mark.parametrize("name", common.SIGNALS)
def test_every_signal_to_end_is_an_orderly_end(name):
    number = getattr(signal, name)
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as ended, common.end_orderly():
        os.kill(os.getpid(), number)
        time.sleep(5)
    assert ended.value.code == 128 + number
    assert signal.getsignal(number) == before


def test_a_hangup_that_nohup_ignores_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with common.end_orderly():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_signal_leaves_no_original_and_no_picture_without_its_row(root, pictures, tmp_path):
    for more in range(3, 40):
        os.link(pictures / "0.jpg", pictures / f"{more}.jpg")
    scratch, output = tmp_path / "scratch", tmp_path / "out"
    scratch.mkdir()
    program = [sys.executable, "-c", "from masquerade.cli.main import main; main()"]
    options = ("--method", "gaussian_noise", "--input", pictures, "--output", output, "--root", root)
    process = subprocess.Popen(
        [*program, "anonymize", *map(str, options)], env=os.environ | {"TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    while not list(output.glob("*.png")):
        assert process.poll() is None
        time.sleep(0.05)
    assert files_in(scratch) == [], "no file holds an original, not even while it works"
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
    assert files_in(scratch) == []
    assert written(output) == named(output)
    assert len(named(output)) < 40


def stop_after(monkeypatch, parts: int) -> None:
    """Let the method fail after so many parts (of 1, 2, 4 ... files)."""
    work, left = anonymization.anonymize, iter([True] * parts)

    def failing(*given, **options):
        if not next(left, False):
            raise OSError("the network drive has gone")
        work(*given, **options)

    monkeypatch.setattr(anonymization, "anonymize", failing)


def test_a_stopped_batch_goes_on_and_keeps_what_is_complete(root, pictures, tmp_path, monkeypatch):
    output = tmp_path / "out"
    with monkeypatch.context() as stopped:
        stop_after(stopped, 1)
        assert anonymize(root, pictures, output, "--photographs") == 1
    before, (row,) = contents(output), report(output).values()
    assert len(before) == 2
    assert anonymize(root, pictures, output, "--photographs", "--continue") == 0
    assert before.items() <= contents(output).items()
    assert report(output)["0.jpg"] == row
    assert len(report(output)) == 3
    assert written(output) == named(output)
    everything = contents(output)
    assert anonymize(root, pictures, output, "--photographs", "--continue") == 0
    assert contents(output) == everything, "nothing was left to do"


def photograph_again(pictures: Path, name: str) -> None:
    """Another photograph gets the name."""
    portrait().rotate(5).save(pictures / name, quality=95)


def test_another_photograph_that_has_the_name_of_one_that_is_done_is_anonymized(root, pictures, tmp_path, caplog):
    assert anonymize(root, pictures, tmp_path / "out") == 0
    before = contents(tmp_path / "out")
    photograph_again(pictures, "1.jpg")
    assert anonymize(root, pictures, tmp_path / "out", "--continue") == 0
    assert anonymize(root, pictures, tmp_path / "new") == 0
    after = contents(tmp_path / "out")
    assert after == contents(tmp_path / "new")
    assert {name[:1] for name in after if after[name] != before[name]} == {"1"}
    assert report(tmp_path / "out") == report(tmp_path / "new")
    assert "such as 1.jpg. They are anonymized anew." in caplog.text


def test_a_photograph_that_was_exchanged_while_it_was_read_is_anonymized(root, pictures, tmp_path, monkeypatch):
    from masquerade.faces.photographs import decoding

    read = decoding.read

    def exchange_then_return(path: Path, *given):
        pixels = read(path, *given)
        if path.name == "1.jpg":
            photograph_again(pictures, "1.jpg")
        return pixels

    with monkeypatch.context() as exchange:
        exchange.setattr(decoding, "read", exchange_then_return)
        assert anonymize(root, pictures, tmp_path / "out") == 0
    before = contents(tmp_path / "out")
    assert anonymize(root, pictures, tmp_path / "out", "--continue") == 0
    assert {name[:1] for name, content in contents(tmp_path / "out").items() if content != before[name]} == {"1"}


def test_the_rows_that_an_interrupted_overwrite_left_are_of_no_photograph(root, pictures, tmp_path, monkeypatch):
    assert anonymize(root, pictures, tmp_path / "out", "--variant", "weak") == 1
    photograph_again(pictures, "1.jpg")
    with monkeypatch.context() as stopped:
        stop_after(stopped, 0)
        assert anonymize(root, pictures, tmp_path / "out", "--variant", "weak", "--overwrite") == 1
    assert anonymize(root, pictures, tmp_path / "out", "--variant", "weak", "--continue") == 1
    assert anonymize(root, pictures, tmp_path / "new", "--variant", "weak") == 1
    assert report(tmp_path / "out") == report(tmp_path / "new")


def test_a_batch_that_does_not_know_its_photographs_does_not_go_on(root, pictures, tmp_path, capsys):
    """An older version wrote no hashes."""
    assert anonymize(root, pictures, tmp_path / "out") == 0
    shutil.rmtree(tmp_path / "out" / batches.DOT_FOLDER)
    before = contents(tmp_path / "out")
    assert anonymize(root, pictures, tmp_path / "out", "--continue") == 1
    assert "does not tell which photographs are done" in capsys.readouterr().err
    assert contents(tmp_path / "out") == before


def test_no_file_of_a_batch_has_a_hash_that_can_be_looked_up_and_its_report_has_none(root, pictures, tmp_path):
    shutil.copy(pictures / "1.jpg", pictures / "same.jpg")
    assert anonymize(root, pictures, tmp_path / "out") == 0
    content = (pictures / "1.jpg").read_bytes()
    everything = b"".join(path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file())
    for name in ("md5", "sha1", "sha256"):
        assert hashlib.new(name, content).hexdigest().encode() not in everything
    hashes = [line.split(",")[-1] for line in (tmp_path / "out" / CONTENTS).read_text().splitlines()]
    assert len(set(hashes)) == 5, "equal photographs have different hashes; the first line has none"
    assert not any(value.strip('"') in (tmp_path / "out" / "report.csv").read_text() for value in hashes)


def test_a_photograph_whose_picture_is_missing_is_made_again(root, pictures, tmp_path):
    output = tmp_path / "out"
    assert anonymize(root, pictures, output) == 0
    before = report(output)
    (output / before["1.jpg"]["output"]).unlink()
    assert anonymize(root, pictures, output, "--continue", "--photographs") == 0
    assert all(row["photograph"] for row in report(output).values()), "an option that asks for more completes them all"
    (output / before["2.jpg"]["output"]).write_bytes(b"")
    assert anonymize(root, pictures, output, "--continue", "--photographs") == 0
    assert written(output) == named(output)


def test_pictures_whose_rows_are_not_kept_are_removed_and_no_others(root, pictures, tmp_path, monkeypatch):
    output = tmp_path / "out"
    assert anonymize(root, pictures, output) == 0
    row = report(output)["1.jpg"]
    text = (output / "report.csv").read_text()
    (output / "report.csv").write_text(text.replace(row["output"], "../photographs/1.jpg"))
    (output / row["output"]).unlink()
    stop_after(monkeypatch, 0)
    assert anonymize(root, pictures, output, "--photographs", "--continue") == 1
    assert written(output) == {"report.csv"}, "whole photographs were missing of each"
    assert (pictures / "1.jpg").is_file()


def test_a_method_that_sees_all_faces_together_cannot_go_on(root, pictures, tmp_path, monkeypatch, capsys):
    from masquerade.methods.gaussian_noise import GaussianNoise

    assert anonymize(root, pictures, tmp_path / "out") == 0
    before = contents(tmp_path / "out")
    monkeypatch.setattr(GaussianNoise, "observes", True)
    assert anonymize(root, pictures, tmp_path / "out", "--continue") == 1
    assert "must see all faces together" in capsys.readouterr().err
    assert contents(tmp_path / "out") == before


def test_a_face_that_was_recognized_is_not_tried_until_it_passes(root, pictures, tmp_path):
    assert anonymize(root, pictures, tmp_path / "out", "--variant", "weak") == 1
    before = (tmp_path / "out" / "report.csv").read_bytes()
    assert anonymize(root, pictures, tmp_path / "out", "--variant", "weak", "--continue") == 1
    assert (tmp_path / "out" / "report.csv").read_bytes() == before


def test_a_batch_does_not_go_on_with_another_variant_or_key(root, pictures, tmp_path, monkeypatch, capsys):
    assert anonymize(root, pictures, tmp_path / "noise") == 0
    assert anonymize(root, pictures, tmp_path / "noise", "--variant", "weak", "--continue") == 1
    assert "is of 'gaussian_noise/strong mini -', and this is 'gaussian_noise/weak" in capsys.readouterr().err
    make_original_keyed(monkeypatch)
    for name in ("mine", "yours"):
        (tmp_path / name).write_text(f"the secret is {name}")
    mine, yours = (("--key-file", tmp_path / name) for name in ("mine", "yours"))
    assert anonymize(root, pictures, tmp_path / "keyed", *mine, method="original") == 0
    before = contents(tmp_path / "keyed")
    assert anonymize(root, pictures, tmp_path / "keyed", *yours, "--continue", method="original") == 1
    assert "is of another key" in capsys.readouterr().err
    assert anonymize(root, pictures, tmp_path / "keyed", *mine, "--continue", method="original") == 0
    assert contents(tmp_path / "keyed") == before


def test_a_batch_goes_on_only_in_its_own_folder(root, pictures, tmp_path, capsys):
    output = tmp_path / "out"
    output.mkdir()
    (output / "mine.txt").write_text("keep me")
    assert anonymize(root, pictures, output, "--continue") == 1
    assert "holds no report.csv to continue" in capsys.readouterr().err
    assert anonymize(root, pictures, output, "--continue", "--overwrite") == 1
    assert "Leave one out" in capsys.readouterr().err
    assert anonymize(root, pictures, tmp_path / "new", "--continue") == 0, "a script need not know if it was stopped"


def full(*given, **options) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_of_the_results_is_named(root, pictures, tmp_path, monkeypatch, capsys):
    output = tmp_path / "out"
    write, left = release.write_face, iter([True, True])
    monkeypatch.setattr(release, "write_face", lambda *given: write(*given) if next(left, False) else full())
    assert anonymize(root, pictures, output) == 1
    assert f"The disk of {output} is full." in capsys.readouterr().err
    assert written(output) == named(output)
    assert len(named(output)) == 2, "the second part has one image, which is taken back"


def test_a_full_disk_of_the_report_is_named(root, pictures, tmp_path, monkeypatch, capsys):
    output = tmp_path / "out"
    monkeypatch.setattr(batches.Report, "add", full)
    assert anonymize(root, pictures, output) == 1
    assert f"The disk of {output} is full." in capsys.readouterr().err
    assert written(output) == set()


def test_a_process_that_was_killed_leaves_no_picture_without_its_row_and_the_next_one_goes_on(
    root, pictures, tmp_path, monkeypatch
):
    """Killed between the rows and the images: the images are in a hidden folder."""
    output = tmp_path / "out"
    with monkeypatch.context() as killed:
        killed.setattr(batches, "move_to_place", lambda *given: sys.exit(9))
        killed.setattr(batches.shutil, "rmtree", lambda *given, **options: None)
        assert anonymize(root, pictures, output) == 9
    assert {Path(name).parts[0] for name in written(output)} == {"report.csv", batches.UNFINISHED}
    assert anonymize(root, pictures, output, "--continue") == 0
    assert written(output) == named(output)
    assert len(named(output)) == 4
