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

from machine import lacks
from masquerade.cli import doctor, installation, main
from masquerade.cli.installation import Unloadable
from masquerade.core.errors import MasqueradeError
from masquerade.pipeline import checks


def broken(reason: str) -> str:
    return str(Unloadable(("torch 2.13.0",), reason))


def missing(library: str) -> str:
    return broken(f"{library}: cannot open shared object file: No such file or directory")


def package(folder, name: str, code: str = "", requires: str = "") -> None:
    """An installed package with an invalid extension module, and with ``code`` as its source."""
    information = folder / f"{name}-1.0.dist-info"
    (folder / name).mkdir()
    information.mkdir()
    (folder / name / "__init__.py").write_text(code)
    (folder / name / f"fast{installation.MODULE_SUFFIXES[0]}").write_text("no library")
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}")
    (information / "RECORD").write_text(f"{name}/__init__.py,,\n{name}/fast{installation.MODULE_SUFFIXES[0]},,\n")


def test_packages_of_the_computations_are_among_the_loaded_packages():
    assert {"numpy", "torch", "torchvision", "dlib-bin", "onnxruntime", "pyarrow"} <= set(installation.compiled())


def test_installed_packages_load():
    """The installation loads all packages; this test loads a few that load fast."""
    assert installation.unloadable(["numpy", "pillow", "orjson"]) == []


def test_every_package_that_fails_is_named_once_and_the_others_are_still_loaded(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    library = "libnowhere.so.3: cannot open shared object file: No such file or directory"
    package(tmp_path, "lacking", f"raise ImportError({library!r})")
    package(tmp_path, "likewise", f"raise OSError({library!r})")
    package(tmp_path, "killing", "import os; os.abort()")
    failures = installation.unloadable(["lacking", "killing", "likewise", "numpy"])
    assert failures == [
        Unloadable(("lacking 1.0", "likewise 1.0"), library),
        Unloadable(("killing 1.0",), installation.CRASHED),
    ]
    assert "lacking 1.0, likewise 1.0 are installed and do not load: libnowhere.so.3" in str(failures[0])
    assert "libnowhere.so.3 is not on this machine" in str(failures[0])


def test_extension_module_is_loaded_even_if_its_package_does_not_import_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package(tmp_path, "lazy")
    (only,) = installation.unloadable(["lazy"])
    assert only.library == ""
    assert f"fast{installation.MODULE_SUFFIXES[0]}" in only.reason


@pytest.fixture
def card(tmp_path, monkeypatch):
    """A machine with a GPU that torch does not find: a function that sets nvidia-smi's answer and torch's CUDA."""

    def place(answer: str, cuda: str | None, status: int = 0) -> doctor.Check:
        import torch

        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\necho '{answer}'\nexit {status}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
        return doctor.gpu()

    return place


def test_doctor_says_which_driver_or_build_to_install_for_a_driver_that_is_too_old(card):
    check = card("NVIDIA A100-SXM4-80GB, 535.104.05", "13.0")
    assert "NVIDIA A100-SXM4-80GB with driver 535.104.05" in check.state
    assert "for CUDA 13.0: the driver is too old" in check.state
    assert "driver 580 or newer" in check.remedy
    assert "a build of torch for CUDA 12" in check.remedy
    assert not check.ok


def test_doctor_says_when_torch_has_no_cuda_the_driver_fails_or_the_gpu_is_hidden(card):
    assert "take the CUDA build" in card("NVIDIA H100, 580.65.06", None).remedy
    failing = card("Failed to initialize NVML: Driver/library version mismatch", "13.0", status=18)
    assert "Driver/library version mismatch" in failing.state
    assert "restart the machine" in failing.remedy
    assert "CUDA_VISIBLE_DEVICES" in card("NVIDIA H100, 580.65.06", "13.0").remedy


def test_doctor_needs_no_gpu_where_there_is_none(card, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert card("", "13.0").remedy == "Not needed at the scales tiny and mini."


def test_error_text_names_package_library_and_remedy():
    assert "CUDA build" in missing("libcudnn.so.9")
    assert installation.CUDA_LOCK in missing("libcudnn.so.9")
    assert "`apt-get install libstdc++6`" in missing("libstdc++.so.6")
    assert "libfoo-2.so.1 is not on this machine" in missing("libfoo-2.so.1")
    assert "library of this system is too old" in broken(
        "/lib/libc.so.6: version `GLIBC_2.28' not found (required by x.so)"
    )
    preloading = broken("libcublas.so.*[0-9] not found in the system path ['/somewhere']")
    assert "libcublas.so comes with the packages of requirements-cuda.lock" in preloading
    assert installation.CUDA_LOCK not in missing("libcurl.so.4")
    assert "processor lacks instructions" in broken(installation.CRASHED)
    for text in (missing("libcudnn.so.9"), missing("libstdc++.so.6"), broken("undefined symbol: x")):
        assert text.startswith("torch 2.13.0 is installed and does not load: ")
        assert "\n" not in text


def test_the_doctor_names_packages_that_are_imported_from_another_place_also_in_the_locked_version(root, tmp_path):
    """Environment modules of clusters set PYTHONPATH. A folder there may have no metadata, and so no version."""
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", (root / "requirements.lock").read_text(), re.MULTILINE))
    information = tmp_path / f"tifffile-{locked['tifffile']}.dist-info"
    for folder in (tmp_path / "tifffile", tmp_path / "imageio", information):
        folder.mkdir()
        (folder / "__init__.py").touch()
    (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tifffile\nVersion: {locked['tifffile']}\n")
    (tmp_path / "threadpoolctl.py").touch()
    program = (
        "from pathlib import Path\nfrom masquerade.cli import doctor\n"
        f"for check in doctor.packages(Path({str(root)!r})): print(*vars(check).values())"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(root / "src")])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert f"packages of {tmp_path} False in place of ours: " in done.stdout
    for text in (f"tifffile {locked['tifffile']}", "imageio of unknown version", "threadpoolctl of unknown version"):
        assert text in done.stdout
    assert "unload the environment module that sets it, or `unset PYTHONPATH`. True" in done.stdout
    assert "as locked" not in done.stdout


def test_the_doctor_says_how_a_folder_came_before_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    monkeypatch.setattr(installation.site, "getusersitepackages", lambda: str(tmp_path / "user"))
    assert "PYTHONNOUSERSITE=1" in installation.way_out(tmp_path / "user")
    assert "sitecustomize.py" in installation.way_out(tmp_path / "other")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}/module{os.pathsep}src")
    assert "`unset PYTHONPATH`" in installation.way_out(tmp_path / "module")


def test_the_doctor_reports_packages_that_do_not_load(monkeypatch):
    failure = Unloadable(("dlib-bin 20.0",), "libstdc++.so.6: cannot open shared object file")
    monkeypatch.setattr(installation, "unloadable", lambda packages: [failure])
    (check,) = doctor.loadable()
    assert (check.name, check.state, check.remedy) == ("loading dlib-bin 20.0", failure.reason, failure.remedy)
    assert check.essential
    assert not check.ok


def test_lock_of_the_cuda_libraries_is_used_if_torch_requires_them(tmp_path, monkeypatch):
    package(tmp_path, "torch", requires='Requires-Dist: nvidia-cudnn-cu13==9; platform_system == "Linux"\n')
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert installation.locks() == [installation.LOCK, installation.CUDA_LOCK]
    shutil.rmtree(tmp_path / "torch-1.0.dist-info")
    assert installation.locks() == [installation.LOCK]


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


def test_extension_module_that_its_package_does_without_is_not_loaded(monkeypatch):
    """numba's pool of Intel's threads needs a library that no wheel of the lock has; numba takes another pool."""
    assert installation.load("numba") == ""
    linked = []
    monkeypatch.setattr(installation.ctypes, "CDLL", linked.append)
    assert installation.load("numba") == ""
    assert any("helperlib" in name for name in linked)
    assert not any("tbbpool" in name for name in linked)


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


@pytest.mark.parametrize("setting", [
    "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_PYTHON", "PYTHONPATH",
    "user = true", "target = ELSEWHERE", "prefix = ELSEWHERE", "root = ELSEWHERE",
])  # fmt: skip
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
