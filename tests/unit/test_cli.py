"""The command line: it reports results, refusals and errors, and never outputs keys or originals."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import typer
import yaml
from PIL import Image
from typer.testing import CliRunner

import command_line
from command_line import anonymize_from_seed as anonymize
from command_line import (
    folder_with_portrait,
    make_original_keyed,
    portrait,
    recover,
    report,
    repository,
    run,
    written,
)
from masquerade.cli import doctor, main
from masquerade.cli.outcome import INCOMPLETE
from masquerade.core.errors import ParameterError
from masquerade.params import loading
from masquerade.pipeline.photographs import batches, choosing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A portrait and a letter."""
    folder = folder_with_portrait(tmp_path, "eileen collins.jpg")
    (folder / "letter.jpg").write_text("Dear Sir or Madam,")
    return folder


def test_a_folder_becomes_anonymized_faces_and_a_report(root, pictures, tmp_path, capsys):
    output = tmp_path / "out"
    assert anonymize(root, pictures, output) == INCOMPLETE
    rows = report(output)
    assert rows["letter.jpg"]["status"] == "refused"
    assert rows["letter.jpg"]["reason"].startswith("not an image")
    assert rows["letter.jpg"]["output"] == ""
    done = rows["eileen collins.jpg"]
    assert (done["status"], done["reason"]) == ("ok", "")
    assert written(output) == {done["output"], "report.csv"}
    with Image.open(output / done["output"]) as picture:
        assert picture.size == (64, 64)
        assert not picture.getexif()
    printed = capsys.readouterr()
    assert "1" in printed.out
    assert "not an image" in printed.out


def test_runs_differ_without_a_seed_and_are_equal_with_a_seed(root, pictures, tmp_path):
    def result(name: str, *more: object) -> bytes:
        assert command_line.anonymize(root, pictures, tmp_path / name, *more) == INCOMPLETE
        return (tmp_path / name / report(tmp_path / name)["eileen collins.jpg"]["output"]).read_bytes()

    assert result("a") != result("b")
    assert result("c", "--seed", 3) == result("d", "--seed", 3)


def test_only_results_remain_on_the_disk(root, pictures, tmp_path, monkeypatch):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    anonymize(root, pictures, tmp_path / "out")
    assert list(scratch.iterdir()) == [], "the aligned originals must be deleted"


def crowd(folder: Path, count: int) -> None:
    for number in range(count):
        portrait().save(folder / f"{number}.jpg", quality=95)


def test_a_result_is_written_before_the_next_photographs_are_read(root, pictures, tmp_path, monkeypatch):
    from masquerade.faces import folder

    crowd(pictures, 4)
    output, read = tmp_path / "out", folder._read_records
    results, rows = [], []

    def watched(*given):
        results.append(len(list(output.glob("*.png"))))
        rows.append(len(report(output)) if (output / "report.csv").exists() else 0)
        return read(*given)

    monkeypatch.setattr(folder, "_read_records", watched)
    assert anonymize(root, pictures, output) == INCOMPLETE
    # parts of 1, 2 and 3 files (4 at most)
    assert results == rows == [0, 1, 1, 3, 3, 3]
    assert len(report(output)) == 6


def test_a_result_does_not_depend_on_the_part_of_its_photograph(root, pictures, tmp_path, monkeypatch):
    crowd(pictures, 4)
    assert anonymize(root, pictures, tmp_path / "parts", "--seed", 3) == INCOMPLETE
    monkeypatch.setattr(batches, "_split", lambda records, together: [records])
    assert anonymize(root, pictures, tmp_path / "whole", "--seed", 3) == INCOMPLETE
    names = written(tmp_path / "parts")
    assert names == written(tmp_path / "whole")
    for name in names:
        assert (tmp_path / "parts" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_method_that_observes_the_whole_set_gets_it_whole(root, pictures, tmp_path, monkeypatch):
    from masquerade.methods import gaussian_noise

    sizes = []
    monkeypatch.setattr(
        gaussian_noise.GaussianNoise, "observe", lambda self, batches: sizes.append(sum(map(len, batches)))
    )
    crowd(pictures, 4)
    assert anonymize(root, pictures, tmp_path / "out") == INCOMPLETE
    assert sizes == [5]


def test_measured_sensitivity_needs_the_whole_set_and_the_bound_does_not():
    from masquerade.methods.identitydp import IdentityDP

    for sensitivity, needed in (("measured", True), ("bound", False)):
        method = object.__new__(IdentityDP)
        method.variant = IdentityDP.Variant(epsilon=6.0, sensitivity=sensitivity, sampler="seeded")
        assert method.observes is needed


def test_results_that_were_written_before_an_error_stay_in_the_report(root, pictures, tmp_path, monkeypatch):
    from masquerade.pipeline import anonymization

    crowd(pictures, 2)
    output, work, parts = tmp_path / "out", anonymization.anonymize, iter([True, False])

    def failing(*given, **options):
        if not next(parts):
            raise OSError("no space left on the device")
        work(*given, **options)

    monkeypatch.setattr(anonymization, "anonymize", failing)
    assert anonymize(root, pictures, output) == 1
    (row,) = report(output).values()
    assert written(output) == {row["output"], "report.csv"}


LARGE = "torch pandas pyarrow pydantic yaml cv2 dlib sklearn mlflow"
OPENDP = (
    "from masquerade.methods._privacy import LaplaceMechanism as Laplace\n"
    "Laplace(6.0, 1.0, 'bound', 'opendp').perturb([1.0, 0.0], 0, '')"
)


@pytest.mark.parametrize(("code", "packages"), [("from masquerade.cli import main", LARGE), (OPENDP, "sklearn")])
def test_the_command_line_and_noise_for_photographs_import_no_large_package(code, packages):
    code = f"import sys\n{code}\nprint([name for name in '{packages}'.split() if name in sys.modules])"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"


def test_a_folder_that_is_not_empty_is_not_written_into(root, pictures, tmp_path, capsys):
    output = tmp_path / "out"
    output.mkdir()
    (output / "mine.txt").write_text("keep me")
    assert anonymize(root, pictures, output) == 1
    assert "is not empty" in capsys.readouterr().err
    assert anonymize(root, pictures, output, "--overwrite") == INCOMPLETE
    assert (output / "mine.txt").read_text() == "keep me"


def test_a_result_of_an_earlier_run_is_removed_if_its_face_is_refused(root, pictures, tmp_path):
    output = tmp_path / "out"
    anonymize(root, pictures, output)
    before = output / report(output)["eileen collins.jpg"]["output"]
    assert before.is_file()
    (pictures / "eileen collins.jpg").write_text("no longer an image")
    assert anonymize(root, pictures, output, "--overwrite") == 1
    assert not before.exists()


def test_the_status_says_whether_all_some_or_no_files_have_their_results(root, pictures, tmp_path, capsys):
    (pictures / "letter.jpg").write_bytes(b"")
    assert anonymize(root, pictures, tmp_path / "some") == INCOMPLETE == 3
    (pictures / "letter.jpg").unlink()
    assert anonymize(root, pictures, tmp_path / "all") == 0
    (pictures / "eileen collins.jpg").write_bytes(b"no image")
    assert anonymize(root, pictures, tmp_path / "none") == 1
    assert "No face could be anonymized" in capsys.readouterr().err
    assert report(tmp_path / "none")["eileen collins.jpg"]["status"] == "refused"


def test_one_picture_is_a_folder_of_one(root, pictures, tmp_path):
    assert anonymize(root, pictures / "eileen collins.jpg", tmp_path / "out") == 0
    assert list(report(tmp_path / "out")) == ["eileen collins.jpg"]


def test_the_control_that_returns_the_original_writes_no_picture(root, pictures, tmp_path):
    assert anonymize(root, pictures, tmp_path / "out", method="original") == 1
    assert report(tmp_path / "out")["eileen collins.jpg"]["reason"] == "the method returned the original image"
    assert written(tmp_path / "out") == {"report.csv"}


def test_the_warning_of_the_scale_is_printed(root, pictures, tmp_path, capsys):
    anonymize(root, pictures, tmp_path / "out")
    assert "Scale mini: Networks of a test." in " ".join(capsys.readouterr().err.split())


def test_results_inside_the_photographs_are_refused(root, pictures, capsys):
    assert anonymize(root, pictures, pictures / "out") == 1
    assert "lies in" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "method", "message"),
    [
        ((), "gausian_noise", "Did you mean 'gaussian_noise'?"),
        (("--variant", "faint"), "gaussian_noise", "It has: strong, weak"),
        (("--scale", "huge"), "gaussian_noise", "no scale 'huge'"),
        ((), "k_same", "`make reproduce`"),
    ],
)
def test_an_error_text_is_one_paragraph_and_the_status_is_1(root, pictures, tmp_path, capsys, more, method, message):
    assert anonymize(root, pictures, tmp_path / "out", *more, method=method) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err + printed.out
    assert not (tmp_path / "out").exists()


def test_debug_shows_the_origin_of_an_error(root, pictures, tmp_path):
    from masquerade.core.errors import MasqueradeError

    with pytest.raises(MasqueradeError):
        main.main(["--debug", "recover", "--method", "original", "--input", str(pictures), "--output",
                  str(tmp_path / "out"), "--root", str(root)])  # fmt: skip


def test_recovery_of_a_method_that_is_not_invertible_is_refused(root, pictures, tmp_path, capsys):
    assert recover(root, pictures, tmp_path / "out", method="gaussian_noise") == 1
    assert "has no key" in capsys.readouterr().err


class TestKeys:
    @pytest.fixture(autouse=True)
    def keyed(self, monkeypatch):
        make_original_keyed(monkeypatch)

    def there_and_back(self, root, pictures, tmp_path, key_back, *more) -> int:
        key, back = tmp_path / "key", tmp_path / "key_back"
        key.write_bytes(b"correct horse battery\n")
        back.write_bytes(key_back)
        options = ("--key-file", key, "--seed", 1, *more)
        assert anonymize(root, pictures, tmp_path / "hidden", *options, method="original") == INCOMPLETE
        return recover(root, tmp_path / "hidden", tmp_path / "shown", "--key-file", back)

    def difference(self, root, pictures, tmp_path) -> np.ndarray:
        """Between the recovered face and the original, in gray levels."""
        source = choosing.open_photographs(loading.load(root), pictures, "refuse", "ffhq")
        (original,) = [record.picture for record in source.records(64, 0, 1) if record.picture is not None]
        (row,) = report(tmp_path / "shown").values()
        with Image.open(tmp_path / "shown" / row["output"]) as picture:
            return np.abs(np.asarray(picture).astype(int) - original)

    def test_the_right_key_recovers_the_face(self, root, pictures, tmp_path):
        assert self.there_and_back(root, pictures, tmp_path, b"correct horse battery") == 0
        assert self.difference(root, pictures, tmp_path).max() == 0

    def test_a_wrong_key_is_named_and_writes_no_face(self, root, pictures, tmp_path):
        assert self.there_and_back(root, pictures, tmp_path, b"incorrect horse battery") == 1
        (row,) = report(tmp_path / "shown").values()
        assert (row["status"], row["reason"], row["output"]) == ("refused", "wrong key", "")
        assert written(tmp_path / "shown") == {"report.csv"}

    def test_without_a_check_a_wrong_key_gives_another_face(self, root, pictures, tmp_path):
        wrong = b"incorrect horse battery"
        assert self.there_and_back(root, pictures, tmp_path, wrong, "--no-key-check") == 0
        assert self.difference(root, pictures, tmp_path).mean() > 1

    def test_no_output_holds_a_key(self, root, pictures, tmp_path, capsys):
        self.there_and_back(root, pictures, tmp_path, b"correct horse battery")
        printed = capsys.readouterr()
        assert "correct horse" not in printed.out + printed.err
        for path in filter(Path.is_file, (tmp_path / "hidden").rglob("*")):
            assert b"correct horse" not in path.read_bytes()

    def test_a_key_cannot_be_given_as_an_argument(self, root, pictures, tmp_path):
        assert anonymize(root, pictures, tmp_path / "out", "--key", "correct horse", method="original") == 2

    def test_a_short_key_is_refused(self, root, pictures, tmp_path, capsys):
        (tmp_path / "key").write_bytes(b"1234\n")
        assert anonymize(root, pictures, tmp_path / "out", "--key-file", tmp_path / "key", method="original") == 1
        assert "shorter than 8 bytes" in capsys.readouterr().err


def test_real_photographs_use_opendp_noise_and_the_bound_of_the_sensitivity(root, monkeypatch):
    from typing import Literal

    from masquerade.core import discovery
    from masquerade.core.settings import Settings

    class Knobs(Settings):
        epsilon: float
        sampler: Literal["seeded", "opendp"]
        sensitivity: Literal["measured", "bound"]

    compute, cls = loading.load(root).compute, discovery.load("methods", "original")
    monkeypatch.setattr(cls, "Variant", Knobs)
    knobs = Knobs(epsilon=6.0, sampler="seeded", sensitivity="measured")
    block = SimpleNamespace(params=cls.Params(), variants={"control": knobs}, photographs=True)
    parameters = SimpleNamespace(
        methods={"original": block}, scale="mini", seeds=[0], tree={"methods": {"original": {"params": {}}}},
        compute=compute, matrix=SimpleNamespace(train_on="folder"), ablations=lambda name: {}, needs=lambda name: (),
        trains=lambda name: False, training_params=lambda name, variant="": cls.Params(),
    )  # fmt: skip
    strict, _ = choosing.build_method(root, parameters, "original", None, strict=True)
    as_written, _ = choosing.build_method(root, parameters, "original", None, strict=False)
    assert strict.variant == Knobs(epsilon=6.0, sampler="opendp", sensitivity="bound")
    assert as_written.variant == knobs


@pytest.mark.parametrize("method", ["anonymousnet", "fit"])
@pytest.mark.parametrize("scale", ["mini", "evening", "photo"])
def test_networks_behind_whose_images_people_see_the_person_are_kept_from_photographs(scale, method):
    parameters = loading.load(ROOT, scale)
    with pytest.raises(ParameterError, match=r"people still recognize .*docs/which_method.md"):
        choosing.build_method(ROOT, parameters, method, None, strict=True)


def test_photographs_that_other_processes_read_give_the_same_results(root, pictures, tmp_path, monkeypatch):
    for number in range(2):
        shutil.copy(pictures / "eileen collins.jpg", pictures / f"again {number}.jpg")
    contents = []
    for fewest, output in ((100, tmp_path / "alone"), (2, tmp_path / "beside")):
        monkeypatch.setattr(batches, "WORTHWHILE", fewest)
        assert anonymize(root, pictures, output) == INCOMPLETE
        contents.append({name: (output / name).read_bytes() for name in written(output)})
    assert len(contents[0]) == 4, "three faces and the report"
    assert contents[0] == contents[1]


class TestHideAndKeep:
    """An attribute that the user names for one option is removed from the default of the other."""

    @staticmethod
    def replace_keywords(hide, keep):
        from masquerade.methods.lreorg.method import LReOrg

        default = loading.load(ROOT, "mini").methods["lreorg"].variants["default"]
        return choosing.replace_keywords("lreorg", LReOrg, default, hide, keep)

    @pytest.mark.parametrize(
        ("hide", "keep", "hidden", "kept"),
        [
            (["identity", "age"], None, ["identity", "age"], ["gender", "expression", "makeup"]),
            (None, ["expression"], ["identity"], ["expression"]),
            (["gender"], [], ["gender"], []),
        ],
    )
    def test_named_attributes_replace_the_default_ones_and_leave_the_other_list(self, hide, keep, hidden, kept):
        knobs = self.replace_keywords(hide, keep)
        assert (knobs.hide, knobs.keep) == (hidden, kept)

    @pytest.mark.parametrize(
        ("hide", "keep", "message"),
        [
            (["age"], ["age"], "--hide age --keep age: age is named twice; name it once"),
            (None, ["identity"], "hide must name a keyword"),
        ],
    )
    def test_a_contradiction_is_refused(self, hide, keep, message):
        with pytest.raises(ParameterError, match=message):
            self.replace_keywords(hide, keep)

    def test_the_error_of_other_methods_names_the_method_that_can_do_it(self, root, pictures, tmp_path, capsys):
        assert anonymize(root, pictures, tmp_path / "out", "--hide", "age") == 1
        assert "'gaussian_noise' does not let you choose what it hides. These do: lreorg." in capsys.readouterr().err


def test_params_show_check_and_schema(root, capsys):
    assert run("params", "show", "--root", root) == 0
    assert yaml.safe_load(capsys.readouterr().out)["image"] == {"size": 64}
    assert run("params", "check", "--root", root) == 0
    assert "mini: valid" in capsys.readouterr().out
    assert run("params", "schema") == 0
    printed = capsys.readouterr().out
    assert run("params", "schema", "--output", root / "schema.json") == 0
    assert (root / "schema.json").read_text() == printed
    assert "image" in json.loads(printed)["required"]
    assert run("params", "template", "gaussian_noise") == 0
    assert "gaussian_noise:" in capsys.readouterr().out


def test_the_doctor_names_what_is_missing_and_ends_with_status_1(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(doctor, "COMPILED", ["PIL"])
    checks = {check.name: check for check in doctor.examine(tmp_path)}
    assert checks["Python"].ok
    assert checks["loading"].ok
    assert not checks["packages"].ok
    assert not checks["params.yaml"].ok
    assert run("doctor", "--root", tmp_path) == 1
    assert "params.yaml" in capsys.readouterr().out


def test_the_doctor_compares_packages_with_the_lock(tmp_path):
    (tmp_path / "requirements-cuda.lock").touch()
    lock = tmp_path / "requirements.lock"
    lock.write_text(f"numpy=={np.__version__}\npillow==0.0.1\nno-such-package==1.0\n# a comment==1\n")
    checks = {check.name: check for check in doctor.check_packages(tmp_path)}
    assert set(checks) == {"package pillow", "package no-such-package"}
    assert checks["package no-such-package"].essential
    assert not checks["package pillow"].essential
    lock.write_text(f"numpy=={np.__version__}\n")
    (only,) = doctor.check_packages(tmp_path)
    assert only.ok
    assert "all 1" in only.state


def commands(group: typer.core.TyperGroup, *names: str) -> Iterator[tuple[str, ...]]:
    yield names
    for name, command in group.commands.items():
        if isinstance(command, typer.core.TyperGroup):
            yield from commands(command, *names, name)
        else:
            yield (*names, name)


@pytest.mark.parametrize("names", commands(typer.main.get_command(main.app)), ids=" ".join)
def test_each_command_prints_its_help(names):
    """Brackets in a text are markup, unless they are escaped."""
    result = CliRunner().invoke(main.app, [*names, "--help"])
    assert result.exit_code == 0, result.exception
    assert "Usage" in result.output
