"""The set-up of a new user: a shallow clone, installed and used with nothing but the package registry.

The name of the folder has a space, the home folder is read-only, pip has no configuration and no cache, and there is no
display. Each test continues from the one before it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.setup, pytest.mark.slow]
CELL = "results/tiny/metrics/synthetic_hq/identitydp/eps_6/0.json"
# Variables that a machine may need to reach the registry.
KEPT = ("PIP_CERT", "PIP_PROXY", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")
DROPPED = ("PYTHON", "MAKE", "VIRTUAL_ENV", "XDG_", "DISPLAY", "PIP_", "MPLCONFIGDIR", "MFLAGS", "CI")


class Newcomer:
    """An ordinary user with a clone at ``path``. If root runs the tests, it is a new account, which `close` removes."""

    def __init__(self, root: Path):
        self.folder = Path(tempfile.mkdtemp(prefix="masquerade setup "))
        self.path, home = self.folder / "masquerade", self.folder / "home"
        subprocess.run(["git", "clone", "--quiet", "--no-local", "--depth", "1", root, self.path], check=True)
        home.mkdir(mode=0o555)
        params = self.path / "params.yaml"
        params.write_text(params.read_text().replace("scale: mini", "scale: tiny", 1))
        self.account: dict = {}
        if os.geteuid() == 0:
            name = f"masquerade-{os.getpid()}"
            subprocess.run(["useradd", "--no-create-home", "--home-dir", home, name], check=True)
            self.account = {"user": name, "group": name, "extra_groups": []}
            self.folder.chmod(0o755)
            subprocess.run(["chown", "--recursive", f"{name}:{name}", self.path], check=True)
        environment = {key: value for key, value in os.environ.items() if key in KEPT or not key.startswith(DROPPED)}
        folders = [
            folder for folder in os.environ["PATH"].split(os.pathsep) if Path(folder) != Path(sys.executable).parent
        ]
        self.environment = environment | {
            "PATH": os.pathsep.join(folders),
            "HOME": str(home),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
        }

    def close(self) -> None:
        if self.account:
            subprocess.run(["userdel", self.account["user"]], check=True)
        shutil.rmtree(self.folder)

    def run(self, *command: str, fails: bool = False) -> str:
        """The output of a command. The clone's own environment comes first on PATH, as after ``activate``."""
        environment = self.environment | {"PATH": f"{self.path}/.venv/bin{os.pathsep}{self.environment['PATH']}"}
        done = subprocess.run(
            command, cwd=self.path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False, **self.account,
        )  # fmt: skip
        output = done.stdout + done.stderr
        assert (done.returncode != 0) == fails, f"{' '.join(command)} -> {done.returncode}\n{output[-6000:]}"
        return output


@pytest.fixture(scope="module")
def newcomer(root) -> Iterator[Newcomer]:
    user = Newcomer(root)
    try:
        yield user
    finally:
        user.close()


def test_an_environment_from_the_registry_alone_can_be_imported(newcomer):
    assert "packages with compiled code" in newcomer.run("make", "environment")
    cuda = newcomer.run("python", "-c", "import torch; print(torch.version.cuda)")
    assert cuda.strip() != "None", "the registry's torch is a CUDA build"


def test_versions_are_those_of_the_locks_and_torchvision_is_unchanged(newcomer):
    tests = [
        "tests/unit/test_torchvision.py",
        "tests/unit/test_house.py::test_installed_packages_are_those_of_the_locks",
    ]
    newcomer.run("python", "-m", "pytest", "-p", "no:cacheprovider", *tests)


def test_a_neural_cell_is_built(newcomer):
    newcomer.run("make", "reproduce", f"TARGETS={CELL}")
    statement = json.loads((newcomer.path / CELL).read_text())["statement"]
    assert statement["faces"] > 0 == statement["refused"]


def test_without_git_nothing_is_out_of_date(newcomer):
    (newcomer.path / ".git").rename(newcomer.folder / "git")
    assert "Nothing to be done" in newcomer.run("make", "reproduce", f"TARGETS={CELL}")


def test_a_deleted_library_is_named_with_its_package_and_a_remedy(newcomer):
    (library,) = (newcomer.path / ".venv").rglob("nvidia/**/libcudnn.so.9")
    library.unlink()
    output = newcomer.run("python", "-m", "masquerade.cli.doctor", fails=True)
    assert "libcudnn.so.9: cannot open shared object file" in output
    assert "make environment" in output
    table = newcomer.run("env", "COLUMNS=200", "masquerade", "doctor", fails=True)
    assert "loading torch" in table
    assert "libcudnn.so.9" in table
