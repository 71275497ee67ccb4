"""Without --scale, photographs get the networks for photographs if these are there; what is missing is named."""

from pathlib import Path

import pytest

from command_line import anonymize_from_seed as anonymize
from command_line import folder_with_portrait, report, repository, run
from masquerade.assets import packaged, random_face
from masquerade.cli import doctor
from masquerade.core.errors import ParameterError
from masquerade.faces.folder import Folder
from masquerade.lineage import crate
from masquerade.params import loading
from masquerade.pipeline import method_files, pretrained_networks
from masquerade.pipeline.pretrained_networks import Network

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root(tmp_path) -> Path:
    """A repository with a scale `photo` whose one difference is the size of its images."""
    made = repository(tmp_path)
    (made / "scales" / "photo.yaml").write_text("image: {size: 32}\n")
    return made


@pytest.fixture
def pictures(tmp_path) -> Path:
    return folder_with_portrait(tmp_path, "one.jpg")


@pytest.fixture
def with_generator(monkeypatch):
    """The parameters of a scale whose generator is that of the package."""

    def change(parameters):
        block = loading.load(ROOT, "tiny").backbones["generator"]
        parameters.backbones["generator"] = block.model_copy(update={"published": random_face.PUBLISHED})
        return parameters

    return change


class TestTheDefault:
    def test_the_networks_for_photographs_are_taken_if_they_are_there(self, root, pictures, tmp_path, capsys):
        assert anonymize(root, pictures, tmp_path / "out") == 0
        (row,) = report(tmp_path / "out").values()
        assert row["maker"].startswith("gaussian_noise/strong photo ")
        assert "uses the networks of scale photo and writes images of 32 x 32 pixels." in capsys.readouterr().err

    def test_a_named_scale_is_taken(self, root, pictures, tmp_path, capsys):
        assert anonymize(root, pictures, tmp_path / "out", "--scale", "mini") == 0
        assert "of scale mini and writes images of 64 x 64 pixels.\n" in capsys.readouterr().err

    @pytest.mark.parametrize("package", ["", "Run `make photo`."])
    def test_without_them_the_scale_of_params_is_taken_and_what_is_missing_is_named(self, root, monkeypatch, package):
        """A missing network comes first: the package alone would not help."""
        network = "weights/photo/falco.safetensors"
        monkeypatch.setattr(pretrained_networks, "find_package_problem", lambda parameters: package)
        for lacks, named in (([package, network], network), ([package], "`make photo`")):
            monkeypatch.setattr(method_files, "list_missing", lambda *given, lacks=lacks: filter(None, lacks))
            parameters, sentence = method_files.choose_scale(root, "gaussian_noise", None, None)
            if any(lacks):
                assert parameters.scale == "mini"
                assert named in sentence
                assert ("make photo" in sentence) == (named != network)

    def test_whatever_a_method_needs_may_be_missing(self, tmp_path):
        parameters = loading.load(ROOT, "mini")
        missing = list(method_files.list_missing(tmp_path, parameters, "ifadit", None))
        assert "weights/ifadit.safetensors" in missing
        assert "weights/generator.safetensors" in missing
        assert list(method_files.list_missing(ROOT, parameters, "ifadit", None)) == []
        assert list(method_files.list_missing(ROOT, parameters, "nobody", None)) == ["methods.nobody"]


class TestThePackage:
    @pytest.fixture
    def absent(self, monkeypatch):
        monkeypatch.setattr(packaged, "find_spec", lambda name: None)

    def test_its_absence_stops_a_build_before_any_job_with_the_command(self, absent, with_generator):
        with pytest.raises(ParameterError, match=r"not installed\. Run `make photo`"):
            pretrained_networks.check_pretrained(with_generator(loading.load(ROOT, "tiny")), ROOT)

    def test_the_doctor_names_it(self, absent):
        check = doctor.find_photograph_networks(needed=False)
        assert (check.ok, check.essential) == (False, False)
        assert "make photo" in check.remedy
        assert doctor.find_photograph_networks(needed=True).essential


class TestTerms:
    def test_terms_of_a_dataset_reach_the_caution_that_everything_prints(
        self, root, pictures, tmp_path, monkeypatch, capsys
    ):
        monkeypatch.setattr(Folder, "terms", "research, non-commercial")
        parameters = loading.load(root)
        assert parameters.terms == "research, non-commercial"
        assert parameters.caution == "Networks of a test. Its images and networks: research, non-commercial."
        assert parameters.slice(("caution",)) == {"caution": parameters.caution}
        assert anonymize(root, pictures, tmp_path / "out", "--scale", "mini") == 0
        assert "research, non-commercial" in " ".join(capsys.readouterr().err.split())

    def test_the_package_of_the_generator_has_terms(self, with_generator):
        parameters = with_generator(loading.load(ROOT, "tiny"))
        assert parameters.list_terms([], ["generator"]) == random_face.TERMS
        assert Network(parameters, "methods", "falco").terms == random_face.TERMS
        assert Network(parameters, "backbones", "identity").terms == ""

    def test_the_license_follows_from_the_terms(self):
        assert crate.license_of_networks(random_face.TERMS) == "LicenseRef-research-non-commercial"
        assert crate.license_of_faces("generated_hq", rendered=True, terms=random_face.TERMS) == crate.RESTRICTED
        assert crate.license_of_networks("") == crate.OURS


def test_params_check_names_a_missing_package(root, monkeypatch, capsys):
    monkeypatch.setattr(pretrained_networks, "find_package_problem", lambda parameters: "Run `make photo`.")
    assert run("params", "check", "--root", root) == 0
    assert "photo: valid" in capsys.readouterr().out.replace("Run `make photo`.", "")
