"""Installed packages load. A package that does not load is named with its library and a remedy."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch

from masquerade.cli import doctor, main
from masquerade.core.errors import MasqueradeError
from masquerade.pipeline import checks
from programs import lacks


def test_the_doctor_says_why_torch_uses_no_gpu(monkeypatch):
    def fail():
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).\nUpdate it.")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", fail)
    check = doctor.check_gpu()
    assert check.state.endswith("The NVIDIA driver on your system is too old (found version 11040).")
    assert "the torch that fits the driver" in check.remedy
    assert not check.ok


def test_the_doctor_names_packages_that_are_imported_from_another_place_also_in_the_locked_version(root, tmp_path):
    """Environment modules of clusters set PYTHONPATH."""
    version = re.search(r"^tifffile==(\S+)", (root / "requirements.lock").read_text(), re.MULTILINE)[1]
    information = tmp_path / f"tifffile-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tifffile\nVersion: {version}\n")
    program = (
        "from pathlib import Path\nfrom masquerade.cli import doctor\n"
        f"for check in doctor.check_packages(Path({str(root)!r})): print(*vars(check).values())"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(root / "src")])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert f"package tifffile False imported from {tmp_path}" in done.stdout
    assert "unset PYTHONPATH" in done.stdout
    assert "as required" not in done.stdout


@pytest.mark.parametrize(("code", "reason"), [
    ("raise ImportError('libnowhere.so.3: cannot open shared object file')", "libnowhere.so.3: cannot open"),
    ("import os; os.abort()", "Python crashed"),
])  # fmt: skip
def test_the_doctor_names_a_package_that_does_not_load_and_why(tmp_path, monkeypatch, code, reason):
    (tmp_path / "lacking.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(doctor, "COMPILED", ["PIL", "lacking", "numpy"])
    check = doctor.load_packages()
    assert check.name == "loading lacking"
    assert reason in check.state
    assert check.essential
    assert not check.ok


@pytest.mark.parametrize("chosen", ["PYTHON=python3.8", "PYTHON=no such python", "PYTHONS=python3.99"])
def test_make_without_a_supported_python_names_the_supported_versions_and_the_remedy(root, tmp_path, chosen):
    for name in ("Makefile", "requirements.lock", "requirements-cuda.lock", "pyproject.toml"):
        shutil.copy(root / name, tmp_path)
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHON", "MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(
        ["make", "reproduce", chosen], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert not (tmp_path / ".venv").exists()
    first, *others = done.stderr.splitlines()
    assert first.startswith("Masquerade needs Python 3.11, 3.12 or 3.13")
    assert "PYTHON=/path" in first
    assert len(others) == 1, "the only other line is from make"


def test_a_missing_program_skips_a_test_and_fails_it_under_ci(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium"):
        lacks("no Chromium")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no Chromium"):
        lacks("no Chromium")


@pytest.mark.parametrize("name", ["a:b", 'a"b', "a$b", "a`b", "a\\b", "a%b", "lab{a}", "a{b", "a}b", "a\nb"])
def test_a_path_that_cannot_work_is_refused_in_one_paragraph_before_anything_runs(root, tmp_path, name):
    place = tmp_path / name
    place.mkdir()
    shutil.copy(root / "Makefile", place)
    for lock in ("requirements.lock", "requirements-cuda.lock", "pyproject.toml"):
        (place / lock).touch()
    done = subprocess.run(["make", "environment"], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "The path of this repository has one of the characters" in done.stderr
    assert not (place / ".venv").exists()
    with pytest.raises(MasqueradeError, match="Move the repository to a path without"):
        checks.check_place(place)


@pytest.mark.parametrize("name", ["a b", "it's", "a&b", "(a) [b]", "ä", "#1", "a*b", "a?b", "~a", "-a", "a;b", "<a>"])
def test_a_path_with_another_character_is_accepted(name):
    checks.check_place(Path("/home") / name)


def test_command_line_refuses_to_run_the_code_of_another_working_copy(tmp_path, monkeypatch, capsys):
    (tmp_path / "src/masquerade").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit, match="1"):
        main.main(["params", "check"])
    assert "Run `make environment` here" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["its own", "another", "its own, by a link"])
def test_environment_of_a_moved_or_copied_clone_is_made_anew(root, tmp_path, kind):
    place, link = tmp_path / "it's a clone", tmp_path / "link"
    (place / ".venv/bin").mkdir(parents=True)
    link.symlink_to(place)
    shutil.copy(root / "Makefile", place)
    made_for = tmp_path / "old" if kind == "another" else place
    (place / ".venv/pyvenv.cfg").write_text(f"version = 3.11.7\ncommand = /usr/bin/python3 -m venv {made_for}/.venv\n")
    for name in ("requirements.lock", "requirements-cuda.lock", "pyproject.toml", ".venv/bin/.installed"):
        (place / name).touch()
    where = link if kind.endswith("link") else place
    planned = subprocess.run(["make", "-n", "environment"], cwd=where, capture_output=True, text=True, check=True,
                             env=os.environ | {"PWD": str(where)}).stdout  # fmt: skip
    assert ('[ -z "other-python" ] || rm -rf .venv' in planned) == (kind == "another")


@pytest.fixture
def installed(root, tmp_path):
    """A clone with an environment, whose marks say that everything is installed, and a package to install offline."""
    place = tmp_path / "clone"
    place.mkdir()
    for name in ("Makefile", "requirements.lock", "requirements-cuda.lock", "pyproject.toml"):
        shutil.copy(root / name, place)
    venv.create(place / ".venv", symlinks=True)
    settings = place / ".venv/pyvenv.cfg"
    settings.write_text(re.sub("(?m)^command = .*", f"command = python -m venv {place}/.venv", settings.read_text()))
    (packages,) = (place / ".venv/lib").glob("*/site-packages")
    (packages / "pip_of_the_tests.pth").write_text(sysconfig.get_path("purelib"))
    wheel(tmp_path / "wheels")
    (place / "requirements-photo.lock").write_text("toypackage==1.0\n")
    (place / ".venv/bin/.installed").write_text(make_hash(place, LOCKS))
    return place


LOCKS = ("requirements.lock", "requirements-cuda.lock", "pyproject.toml")


def make_hash(place: Path, names: Iterable[str]) -> str:
    return hashlib.sha256(b"".join((place / name).read_bytes() for name in names)).hexdigest()


def wheel(folder: Path) -> None:
    """Write the wheel of ``toypackage`` 1.0, a module without content."""
    folder.mkdir()
    information = "toypackage-1.0.dist-info"
    files = {
        "toypackage.py": "",
        f"{information}/METADATA": "Metadata-Version: 2.1\nName: toypackage\nVersion: 1.0\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{information}/RECORD"] = "".join(f"{name},,\n" for name in files)
    with zipfile.ZipFile(folder / "toypackage-1.0-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


def make(place: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run make without a network; pip takes packages from the folder of `wheel`."""
    removed = ("PYTHON", "PIP_", "MAKE", "MFLAGS")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(removed)}
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(place.parent / "wheels")}
    return subprocess.run(
        ["make", *arguments], cwd=place, env=environment | pip | settings, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    "setting", ["PIP_USER", "PIP_TARGET", "PIP_PYTHON", "PYTHONPATH", "prefix = ELSEWHERE", "root = ELSEWHERE"]
)
def test_make_installs_into_its_environment_wherever_pip_is_told_to_install(installed, tmp_path, setting):
    """What else pip.conf and the variables say, such as an index, counts: here the folder with the package."""
    elsewhere, configuration = tmp_path / "elsewhere", tmp_path / "pip.conf"
    if "=" in setting:
        configuration.write_text(f"[install]\n{setting.replace('ELSEWHERE', str(elsewhere))}\n")
        settings = {"PIP_CONFIG_FILE": str(configuration)}
    else:
        settings = {setting: {"PIP_USER": "1", "PIP_PYTHON": "/no/python"}.get(setting, str(elsewhere))}
    if setting == "PYTHONPATH":  # pip would take what lies there for installed
        zipfile.ZipFile(tmp_path / "wheels/toypackage-1.0-py3-none-any.whl").extractall(elsewhere)
    done = make(installed, "photo", **settings)
    assert done.returncode == 0, done.stderr
    assert list((installed / ".venv/lib").glob("*/site-packages/toypackage.py"))
    assert elsewhere.exists() == (setting == "PYTHONPATH")


def test_make_installs_nothing_after_files_got_new_times_and_again_after_their_content_changed(installed):
    """`git checkout other && git checkout -` gives files new times. Without a network `make` must not fail then."""
    assert make(installed, "photo").returncode == 0
    for name in (*LOCKS, "requirements-photo.lock"):
        os.utime(installed / name, (2_000_000_000, 2_000_000_000))
    assert "Nothing to be done" in make(installed, "photo").stdout
    for name, packages in (("requirements-photo.lock", "requirements-photo.lock"), ("pyproject.toml", "--editable .")):
        before = (installed / name).read_text()
        (installed / name).write_text(f"{before}\n# another content")
        assert packages in make(installed, "-n", "photo").stdout
        (installed / name).write_text(before)
        assert "Nothing to be done" in make(installed, "photo").stdout


def test_a_half_installed_environment_is_not_taken_for_a_whole_one(installed):
    """The lock of another branch, whose installation fails, and then the lock before it."""
    assert make(installed, "photo").returncode == 0
    lock = installed / "requirements-photo.lock"
    before = lock.read_text()
    lock.write_text("nopackage==1.0\n")
    assert make(installed, "photo").returncode != 0
    lock.write_text(before)
    assert "pip" in make(installed, "-n", "photo").stdout


ROOT = Path(__file__).parents[2]
RECIPE = (ROOT / "apptainer.def").read_text()


def list_installations(text: str, pip: str) -> list[str]:
    """The options and packages of each installation by pip, without those that only save time or disk."""
    saved = r"--(no-cache-dir|disable-pip-version-check|quiet|no-compile|editable) "
    return [re.sub(saved, "", f"{line} ").strip() for line in re.findall(rf"^\s+{pip} (.*)$", text, re.MULTILINE)]


def test_the_container_installs_the_locks_with_the_commands_of_the_makefile():
    makefile = re.search(r"^\$\(BIN\)/\.installed:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    assert list_installations(RECIPE, "python -m pip install") == list_installations(makefile, r"\$\(PIP\)")
    assert len(list_installations(makefile, r"\$\(PIP\)")) == 4


def test_the_container_has_the_python_of_conda():
    (python,) = re.findall(r"^From: python:(\d+\.\d+)-", RECIPE, re.MULTILINE)
    assert f"- python={python}\n" in (ROOT / "environment.yml").read_text()


def test_the_container_gets_the_files_from_which_a_wheel_is_built():
    copied = re.findall(r"^    (\S+) /opt/masquerade/(\S+)$", RECIPE, re.MULTILINE)
    assert all(source == target for source, target in copied)
    needed = {"pyproject.toml", "setup.py", "README.md", "LICENSE", "params.yaml", "scales", "weights", "src"}
    assert {source for source, _ in copied} == needed | {doctor.LOCK, doctor.CUDA_LOCK}
    assert [source for source, _ in copied if not (ROOT / source).exists()] == []
