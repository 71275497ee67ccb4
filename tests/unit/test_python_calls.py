"""`import masquerade`: one photograph, a key and a folder from Python, under the rules of the command line."""

import dataclasses
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import masquerade
from command_line import anonymize, folder_with_portrait, make_original_keyed, portrait, report, repository, written
from masquerade.core import discovery
from masquerade.core.images import to_float, to_uint8
from masquerade.judges.dlib_face import DlibFace
from masquerade.methods.gaussian_noise import GaussianNoise
from masquerade.params.paths import Paths
from masquerade.pipeline.photographs import single

ROOT = Path(__file__).parents[2]
KEY = "correct horse battery"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def noise(root) -> masquerade.Anonymizer:
    """Strong noise, the same in every run."""
    return masquerade.load("gaussian_noise", seed=1, root=root)


@pytest.fixture
def weak(root) -> masquerade.Anonymizer:
    return masquerade.load("gaussian_noise", "weak", root=root)


@pytest.fixture
def keyed(root, monkeypatch) -> masquerade.Anonymizer:
    make_original_keyed(monkeypatch)
    return masquerade.load("original", seed=1, root=root)


@pytest.fixture
def scratch(tmp_path, monkeypatch) -> Path:
    """The folder of temporary files."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def two_people() -> Image.Image:
    picture = Image.new("RGB", (600, 300))
    picture.paste(portrait(), (0, 0))
    picture.paste(portrait().transpose(Image.Transpose.FLIP_LEFT_RIGHT), (300, 0))
    return picture


class TestImport:
    def test_importing_masquerade_imports_no_large_package(self):
        large = ("torch", "numpy", "pandas", "pyarrow", "pydantic", "PIL", "cv2", "dlib", "typer")
        code = f"import sys, masquerade; print([name for name in {large} if name in sys.modules])"
        printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert printed.strip() == "[]"

    def test_methods_can_be_called_before_and_after_their_room_is_imported(self):
        code = (
            "import masquerade; before = masquerade.methods(); import masquerade.methods;"
            "from masquerade import methods; assert before == masquerade.methods() == methods();"
            "print(methods.Method.__name__)"
        )
        printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        assert printed.strip() == "Method"

    def test_methods_lists_names_papers_and_capabilities(self):
        listed = {method.name: method for method in masquerade.methods()}
        assert list(listed) == discovery.list_programs()
        assert listed["riddle"].capabilities.invertible
        assert "Li" in listed["riddle"].paper

    def test_everything_that_is_offered_is_there(self):
        assert all(getattr(masquerade, name) for name in masquerade.__all__)
        assert set(masquerade.__all__) <= set(dir(masquerade))
        with pytest.raises(AttributeError, match="no attribute 'loaded'"):
            _ = masquerade.loaded


class TestOnePhotograph:
    def test_path_image_and_array_give_the_same_face(self, noise, tmp_path):
        portrait().save(tmp_path / "picture.bmp")
        given = (tmp_path / "picture.bmp", str(tmp_path / "picture.bmp"), portrait(), np.asarray(portrait()))
        results = [noise.anonymize(picture) for picture in given]
        assert len({result.content for result in results}) == 1
        (face,) = results[0].faces
        assert results[0].image.size == face.image.size == (64, 64)
        assert results[0].distance == face.distance > face.threshold == noise.threshold.distance == 0.65
        assert (face.salt, face.large, face.maker) == ("", None, "gaussian_noise/strong mini -")

    def test_the_result_is_that_of_the_command_line(self, root, noise, tmp_path):
        pictures = folder_with_portrait(tmp_path, "one.jpg")
        assert anonymize(root, pictures, tmp_path / "out", "--seed", 1) == 0
        (row,) = report(tmp_path / "out").values()
        result = noise.anonymize(pictures / "one.jpg")
        assert result.content == (tmp_path / "out" / row["output"]).read_bytes()
        assert f"{result.distance:.3f}" == row["distance"]

    def test_all_faces_give_the_whole_photograph(self, noise):
        result = noise.anonymize(two_people(), faces="all")
        assert result.image.size == (600, 300)
        assert len(result.faces) == 2
        assert result.distance > 0.65
        changed = np.abs(np.asarray(result.image).astype(int) - np.asarray(two_people())).max(axis=2) > 0
        assert changed[:, :300].any()
        assert changed[:, 300:].any()
        assert len(noise.anonymize(two_people(), faces="largest").faces) == 1

    def test_results_differ_without_a_seed(self, root):
        method = masquerade.load("gaussian_noise", root=root)
        assert method.anonymize(portrait()).content != method.anonymize(portrait()).content

    def test_networks_are_loaded_once_for_all_photographs(self, root, monkeypatch):
        loaded = []
        for cls in (GaussianNoise, DlibFace):
            begin = cls.__init__
            monkeypatch.setattr(
                cls, "__init__",
                lambda self, *given, cls=cls, begin=begin: loaded.append(cls) or begin(self, *given),
            )  # fmt: skip
        method = masquerade.load("gaussian_noise", seed=1, root=root)
        for _ in range(2):
            method.anonymize(portrait())
        assert loaded == [GaussianNoise, DlibFace]

    def test_one_photograph_is_written_to_no_file(self, noise, weak, keyed, scratch, tmp_path, monkeypatch):
        """Whatever ends the process, and whenever, leaves nothing."""
        portrait().save(tmp_path / "one.png")
        monkeypatch.setattr("tempfile.mkdtemp", lambda *given, **options: pytest.fail("a folder for files was made"))
        before = files_in(tmp_path)
        for picture in (portrait(), tmp_path / "one.png"):
            noise.anonymize(picture, faces="all")
            with pytest.raises(masquerade.StillRecognized):
                weak.anonymize(picture)
            hidden = keyed.anonymize(picture, key=KEY)
            keyed.recover(hidden.image, key=KEY)
        assert files_in(tmp_path) == before

    @pytest.mark.parametrize("call", ["one", "folder", "recovery"])
    def test_a_killed_program_leaves_no_original_and_no_recovered_face(self, root, tmp_path, call):
        """It is killed by a signal that no program can handle, in the middle of its work."""
        scratch, pictures = tmp_path / "scratch", folder_with_portrait(tmp_path, "one.png")
        scratch.mkdir()
        code = (
            "import os, sys, pytest, masquerade\n"
            "from PIL import Image\n"
            "from command_line import make_original_keyed\n"
            "from masquerade.pipeline import inspection, release\n"
            "make_original_keyed(pytest.MonkeyPatch())\n"
            "root, call, images, output = sys.argv[1:]\n"
            "method = masquerade.load('original', seed=1, root=root)\n"
            "def end(*given): os.kill(os.getpid(), 9)\n"
            "if call == 'recovery':\n"
            "    hidden = method.anonymize(images + '/one.png', key='correct horse').image\n"
            "    write = release.write_face\n"
            "    release.write_face = lambda *given: (write(*given), end())\n"
            "    method.recover(hidden, key='correct horse')\n"
            "inspection.Inspector.search = end\n"
            "if call == 'one':\n"
            "    method.anonymize(Image.open(images + '/one.png'), key='correct horse')\n"
            "method.anonymize_folder(images, output, key='correct horse')\n"
        )
        process = subprocess.run(
            [sys.executable, "-c", code, root, call, pictures, tmp_path / "out"], cwd=scratch, check=False,
            env=os.environ | {"TMPDIR": str(scratch), "PYTHONPATH": str(ROOT / "tests")},
        )  # fmt: skip
        assert process.returncode == -signal.SIGKILL
        assert files_in(scratch) == []
        assert written(tmp_path / "out") == set()

    def test_the_file_that_was_judged_is_saved(self, noise, tmp_path):
        result = noise.anonymize(portrait())
        result.save(tmp_path / "one.png")
        assert (tmp_path / "one.png").read_bytes() == result.content
        with pytest.raises(masquerade.MasqueradeError, match=r"the image is a PNG file. Name it .png"):
            result.save(tmp_path / "one.jpg")


class TestRefusals:
    def test_what_is_still_recognized_is_not_returned(self, weak):
        with pytest.raises(
            masquerade.StillRecognized, match=r"still recognized \(distance 0\..*; threshold 0.650"
        ) as it:
            weak.anonymize(portrait())
        assert 0 < it.value.distance < it.value.threshold == 0.65

    def test_no_whole_photograph_is_returned_if_one_face_is_recognized(self, weak):
        with pytest.raises(masquerade.StillRecognized):
            weak.anonymize(two_people(), faces="all")

    def test_a_photograph_without_a_face_or_with_several_is_told_apart(self, noise):
        with pytest.raises(masquerade.NoFace, match="no face was found"):
            noise.anonymize(np.full((200, 200, 3), 128, np.uint8))
        with pytest.raises(masquerade.SeveralFaces, match="2 faces were found"):
            noise.anonymize(two_people())

    @pytest.mark.parametrize(("reason", "kind"), [
        ("a face is left in it that was not replaced", masquerade.FaceLeft), ("wrong key", masquerade.WrongKey),
        ("the file is empty", masquerade.PictureError),
    ])  # fmt: skip
    def test_a_reason_of_the_report_is_the_text_of_its_error(self, reason, kind):
        with pytest.raises(masquerade.PictureError) as raised:
            single._check({"status": "refused"}, reason, None)
        assert (type(raised.value), str(raised.value)) == (kind, reason)

    @pytest.mark.parametrize("content", [b"", b"GIF89a"])
    def test_a_file_that_is_no_picture_has_the_text_of_the_command_line(self, root, noise, tmp_path, content):
        (tmp_path / "pictures").mkdir()
        (tmp_path / "pictures" / "letter.jpg").write_bytes(content)
        assert anonymize(root, tmp_path / "pictures", tmp_path / "out") == 1
        with pytest.raises(masquerade.PictureError) as raised:
            noise.anonymize(tmp_path / "pictures" / "letter.jpg")
        assert str(raised.value) == report(tmp_path / "out")["letter.jpg"]["reason"]

    @pytest.mark.parametrize(("picture", "message"), [
        ("nowhere.jpg", "nowhere.jpg is no file"), ("x" * 5000, "File name too long"),
        (None, "not an image but of type NoneType"), (np.zeros((9, 9, 3)), r"this one is float64 \(9, 9, 3\)"),
        (Image.new("F", (9, 9)), "an image in the color mode F"),
        (np.zeros((1, 40_000, 3), np.uint8), "a side longer than"),
    ])  # fmt: skip
    def test_something_else_than_a_picture_is_refused(self, noise, picture, message):
        with pytest.raises(masquerade.PictureError, match=message):
            noise.anonymize(picture)

    def test_other_faces_are_refused_by_name(self, noise):
        with pytest.raises(masquerade.ParameterError, match="faces is 'both'; it must be one of one, largest, all"):
            noise.anonymize(portrait(), faces="both")

    def test_large_pictures_need_a_method_that_has_them(self, noise):
        with pytest.raises(masquerade.ParameterError, match="has no images of 1024 pixels"):
            noise.anonymize(portrait(), large=True)


class TestThreadsAndForks:
    def test_threads_give_the_bytes_of_one_thread(self, root, noise):
        """They share the method, and the detectors with another method."""
        pictures, other = (portrait(), portrait().rotate(3)), masquerade.load("gaussian_noise", seed=2, root=root)

        def call(number: int) -> bytes:
            return (other if number == 7 else noise).anonymize(pictures[number % 2]).content

        alone = [call(number) for number in (0, 1, 7)]
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(call, range(8))) == [*alone[:2] * 3, alone[0], alone[2]]

    def test_a_fork_of_a_process_that_loaded_is_refused_at_once_and_told_to_load_in_the_worker(self, root, noise):
        fork = multiprocessing.get_context("fork")
        answers, calls = fork.SimpleQueue(), (
            lambda: noise.anonymize(portrait()),
            lambda: noise.recover(portrait(), key=KEY),
            lambda: masquerade.load("gaussian_noise", root=root),
        )  # fmt: skip

        def work() -> None:
            for call in calls:
                try:
                    answers.put(repr(call()))
                except masquerade.MasqueradeError as error:
                    answers.put(str(error))

        worker = fork.Process(target=work, daemon=True)
        worker.start()
        worker.join(60)
        assert worker.exitcode == 0
        for _ in calls:
            assert f"a fork of process {os.getpid()}" in (answer := answers.get())
            assert "Call masquerade.load in each worker" in answer

    def test_a_loaded_method_that_is_sent_to_another_process_is_refused(self, noise):
        with pytest.raises(masquerade.MasqueradeError, match=r"Call masquerade\.load in each worker"):
            pickle.dumps(noise)


class TestLoad:
    def test_another_current_folder_changes_nothing_after_loading(self, root, tmp_path, monkeypatch):
        """A service changes its folder; the threshold of its calibration was then dropped in silence."""
        measured = root / Paths("mini").source_measurements.format(dataset="folder")
        measured.parent.mkdir(parents=True)
        draw, names = np.random.default_rng(0), np.repeat([f"p{number}" for number in range(30)], 2)
        embeddings = list(0.5 * draw.normal(size=(len(names), 128)).astype(np.float32))
        columns = {"identity": names, "split": "validation", "status": "ok", "dlib_face.embedding": embeddings}
        table = pa.Table.from_pandas(pd.DataFrame(columns)).replace_schema_metadata({"masquerade": '{"size": 64}'})
        pq.write_table(table, measured)
        monkeypatch.chdir(root)
        method = masquerade.load("gaussian_noise", seed=1)
        monkeypatch.chdir(tmp_path)
        assert "impostor pairs of folder (validation)" in method.threshold.origin
        assert method.threshold == masquerade.load("gaussian_noise", root=root).threshold

    @pytest.mark.parametrize(("given", "error", "message"), [
        ({"seed": "1"}, masquerade.ParameterError, "seed is '1'; it must be a whole number"),
        ({"method": "gausian_noise"}, masquerade.ParameterError, "Did you mean 'gaussian_noise'?"),
        ({"variant": "faint"}, masquerade.ParameterError, "It has: strong, weak"),
        ({"scale": "huge"}, masquerade.ParameterError, "no scale 'huge'"),
        ({"options": masquerade.LoadOptions(hide=["age"])}, masquerade.ParameterError, "These do: lreorg"),
        ({"checkpoint": "mine.safetensors"}, masquerade.ParameterError, "has no network of its own"),
        ({"method": "k_same"}, masquerade.CheckpointError, "`make reproduce`"),
    ])  # fmt: skip
    def test_a_wrong_option_has_the_text_of_the_command_line(self, root, given, error, message):
        with pytest.raises(error, match=message.replace("?", r"\?")):
            masquerade.load(**{"method": "gaussian_noise", "root": root, **given})

    @pytest.mark.slow
    def test_a_checkpoint_of_ones_own_takes_the_place_of_that_of_the_scale(self, tmp_path):
        usual, other = (masquerade.load(name, scale="mini", root=ROOT) for name in ("deepprivacy", "ciagan"))
        own = Path(shutil.copy(usual._method.checkpoint, tmp_path / "mine.safetensors"))

        def load() -> masquerade.Anonymizer:
            return masquerade.load("deepprivacy", scale="mini", checkpoint=own, root=ROOT)

        assert load().maker == usual.maker
        assert load()._method.checkpoint == own
        for content in (other._method.checkpoint.read_bytes(), own.read_bytes()[:1000]):
            own.write_bytes(content)
            with pytest.raises(masquerade.CheckpointError, match=r"mine\.safetensors"):
                load()
        own.unlink()
        with pytest.raises(masquerade.CheckpointError, match=r"mine\.safetensors is missing"):
            load()

    def test_a_named_folder_without_parameters_is_refused_and_an_unnamed_one_is_left_for_the_clone(
        self, tmp_path, monkeypatch
    ):
        with pytest.raises(masquerade.ParameterError, match=f"{tmp_path}/params.yaml is missing. Run this in a clone"):
            masquerade.load("gaussian_noise", root=tmp_path)
        monkeypatch.chdir(tmp_path)
        assert masquerade.load("gaussian_noise").maker.scale in ("mini", "photo"), "the clone of the code"

    def test_what_a_person_should_read_is_said_and_logged(self, root, caplog):
        said = []
        loaded = masquerade.load("gaussian_noise", root=root, options=masquerade.LoadOptions(say=said.append))
        assert "writes images of 64 x 64 pixels" in said[0]
        assert said[1] == "Scale mini: Networks of a test."
        assert loaded.caution == "Networks of a test."
        assert repr(loaded) == "<Anonymizer gaussian_noise/strong mini ->"
        masquerade.load("gaussian_noise", root=root)
        assert caplog.messages == said

    def test_a_missing_package_is_named_by_both(self, root, noise, tmp_path, monkeypatch, capsys):
        monkeypatch.setitem(sys.modules, "dlib", None)
        pictures = folder_with_portrait(tmp_path, "one.jpg")
        with pytest.raises(masquerade.MissingPackage, match="The package dlib is missing") as raised:
            noise.anonymize(portrait())
        assert anonymize(root, pictures, tmp_path / "out") == 1
        assert capsys.readouterr().err.strip().endswith(str(raised.value))


class TestKeys:
    def test_the_right_key_recovers_the_face(self, keyed):
        hidden = keyed.anonymize(portrait(), key=KEY)
        shown = np.asarray(keyed.recover(hidden.image, key=KEY.encode()))
        again = keyed.recover(np.asarray(hidden.image), key=KEY, salt=hidden.faces[0].salt)
        assert np.array_equal(np.asarray(again), shown)
        assert np.abs(shown.astype(int) - np.asarray(hidden.image)).mean() > 20

    @pytest.fixture
    def describing(self, keyed, monkeypatch):
        """A method with keys that describes a face by its mean color."""

        def describe(method, faces):
            return [bytes(color) for color in to_uint8(faces.images).mean(axis=(1, 2)).round().astype(np.uint8)]

        def draw(method, descriptions):
            colors = np.array([list(each) for each in descriptions], dtype=np.uint8)
            return to_float(np.broadcast_to(colors[:, None, None], (len(colors), 64, 64, 3)).copy())

        cls = type(keyed._method)
        monkeypatch.setattr(cls, "capabilities", dataclasses.replace(cls.capabilities, describes=True))
        monkeypatch.setattr(cls, "describe", describe)
        monkeypatch.setattr(cls, "draw_described", draw)
        return keyed

    def test_a_sealed_record_brings_the_face_back_and_opens_beside_its_image_with_its_key_alone(
        self, describing, tmp_path
    ):
        plain = describing.anonymize(portrait(), key=KEY)
        hidden = describing.anonymize(portrait(), key=KEY, record=True)
        assert "masquerade record" not in plain.image.info
        assert len(hidden.image.info["masquerade record"]) <= 4 * 512 / 3 + 3
        shown, from_image = (describing.recover(hidden.image, key=KEY, from_image=choice) for choice in (False, True))
        assert (shown.info["recovered_from"], from_image.info["recovered_from"]) == ("file", "image")
        assert np.ptp(np.asarray(shown), axis=(0, 1)).max() == 0, "the mean color, from the record"
        assert np.ptp(np.asarray(from_image), axis=(0, 1)).max() > 0
        hidden.save(tmp_path / "hidden.png")
        batch = describing.recover_folder(tmp_path / "hidden.png", tmp_path / "out", key=KEY)
        assert batch.rows[0]["recovered_from"] == "file"
        with pytest.raises(masquerade.WrongKey):
            describing.recover(hidden.image, key="incorrect horse battery")
        exchanged = hidden.image.copy()
        mirrored = describing.anonymize(np.asarray(portrait())[:, ::-1].copy(), key=KEY, record=True)
        exchanged.info["masquerade record"] = mirrored.image.info["masquerade record"]
        with pytest.raises(masquerade.SealError, match="does not open"):
            describing.recover(exchanged, key=KEY)
        exchanged.info["masquerade record"] = "cut"
        with pytest.raises(masquerade.SealError, match="damaged"):
            describing.recover(exchanged, key=KEY)

    def test_a_batch_that_goes_on_with_records_anonymizes_again_what_has_none(self, describing, tmp_path):
        source, output = tmp_path / "photographs", tmp_path / "out"
        source.mkdir()
        portrait().save(source / "somebody.png")
        assert describing.anonymize_folder(source, output, key=KEY).rows[0]["record"] == "no"
        goes_on = masquerade.FolderOptions(record=True, go_on=True)
        [row] = describing.anonymize_folder(source, output, key=KEY, options=goes_on).rows
        assert row["record"] == "yes"
        assert "masquerade record" in Image.open(output / row["output"]).info
        before = (output / row["output"]).read_bytes()
        describing.anonymize_folder(source, output, key=KEY, options=goes_on)
        assert (output / row["output"]).read_bytes() == before, "it is complete"

    def test_a_face_that_the_method_cannot_describe_has_no_record_and_is_not_tried_again(
        self, describing, tmp_path, monkeypatch
    ):
        describe, seen = describing._method.describe, []

        def describe_first(faces):
            if len(faces) > 1 or seen:
                raise masquerade.PictureError("its inversion diverged")
            seen.append(faces.ids)
            return describe(faces)

        monkeypatch.setattr(describing._method, "describe", describe_first)
        source = tmp_path / "photographs"
        source.mkdir()
        for number in (1, 2):
            portrait().rotate(number).save(source / f"{number}.png")
        output = tmp_path / "out"
        options = masquerade.FolderOptions(record=True)
        rows = describing.anonymize_folder(source, output, key=KEY, options=options).rows
        assert [(row["status"], row["record"]) for row in rows] == [("ok", "yes"), ("ok", "impossible")]
        before = [(output / row["output"]).read_bytes() for row in rows]
        goes_on = dataclasses.replace(options, go_on=True)
        again = describing.anonymize_folder(source, output, key=KEY, options=goes_on).rows
        assert [row["record"] for row in again] == ["yes", "impossible"]
        assert [(output / row["output"]).read_bytes() for row in again] == before

    def test_a_record_that_nobody_could_make_is_refused(self, keyed, noise):
        with pytest.raises(masquerade.ParameterError, match=r"stores no record .* ifadit, riddle"):
            keyed.anonymize(portrait(), key=KEY, record=True)
        with pytest.raises(masquerade.ParameterError, match=r"stores no record .* ifadit, riddle"):
            noise.anonymize(portrait(), record=True)

    def test_a_saved_picture_brings_its_salt(self, keyed, tmp_path):
        hidden = keyed.anonymize(portrait(), key=KEY)
        hidden.save(tmp_path / "hidden.png")
        shown = keyed.recover(tmp_path / "hidden.png", key=KEY)
        assert np.array_equal(np.asarray(shown), np.asarray(keyed.recover(hidden.image, key=KEY)))
        with pytest.raises(masquerade.WrongKey, match="wrong key"):
            keyed.recover(tmp_path / "hidden.png", key="incorrect horse battery", salt=hidden.faces[0].salt)

    def test_a_lost_or_damaged_salt_is_refused(self, keyed):
        hidden = np.asarray(keyed.anonymize(portrait(), key=KEY).image)
        with pytest.raises(masquerade.PictureError, match="its salt is not known"):
            keyed.recover(hidden, key=KEY)
        with pytest.raises(masquerade.PictureError, match="its salt is damaged"):
            keyed.recover(hidden, key=KEY, salt="12")
        with pytest.raises(masquerade.KeyFormatError, match="A salt is text"):
            keyed.recover(hidden, key=KEY, salt=b"12")

    @pytest.mark.parametrize(("key", "message"), [
        ("1234567", "shorter than 8 bytes"), (None, "needs a key"), (12345678, "value of the type int"),
    ])  # fmt: skip
    def test_a_key_of_the_wrong_form_is_refused_and_not_repeated(self, keyed, key, message):
        for call in (keyed.anonymize, keyed.recover):
            picture = portrait() if call == keyed.anonymize else keyed.anonymize(portrait(), key=KEY).image
            with pytest.raises(masquerade.KeyFormatError, match=message) as raised:
                call(picture, key=key)
            assert str(key) not in str(raised.value) or key is None

    @pytest.mark.parametrize("maker", ["original/control mini 0123456789abcdef", "falco/m_0 mini -"])
    def test_a_picture_of_other_networks_or_another_method_is_refused(self, keyed, maker):
        image = keyed.anonymize(portrait(), key=KEY).image
        image.info["masquerade maker"] = maker
        with pytest.raises(masquerade.PictureError, match="it would become somebody else"):
            keyed.recover(image, key=KEY)

    def test_methods_without_keys_say_so(self, noise):
        with pytest.raises(masquerade.ParameterError, match="'gaussian_noise' takes no key"):
            noise.anonymize(portrait(), key=KEY)
        with pytest.raises(masquerade.ParameterError, match="has no key that recovers a face"):
            noise.recover(portrait(), key=KEY)

    def test_no_result_shows_a_key(self, keyed):
        result = keyed.anonymize(portrait(), key=KEY)
        assert KEY not in repr(result) + repr(keyed) + repr(vars(keyed)) + str(result.image.info)
        assert KEY.encode() not in result.content


def test_a_folder_is_that_of_the_command_line(root, noise, tmp_path):
    pictures = folder_with_portrait(tmp_path, "one.jpg")
    (pictures / "letter.jpg").write_text("Dear Sir or Madam,")
    batch = noise.anonymize_folder(pictures, tmp_path / "python", whole=True)
    assert anonymize(root, pictures, tmp_path / "terminal", "--seed", 1, "--photographs") == 3
    names = written(tmp_path / "python")
    assert names == written(tmp_path / "terminal")
    for name in names:
        assert (tmp_path / "python" / name).read_bytes() == (tmp_path / "terminal" / name).read_bytes()
    assert [row["status"] for row in batch.rows] == ["refused", "ok"]
