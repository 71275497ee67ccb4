"""A newcomer: a shallow clone, installed and used by an ordinary user who has the package registry and nothing else.

The folder's name has a space, the home cannot be written, pip has no configuration, no cache and no source but the
registry, and there is no display. The tests go on from one another, in the order in which they stand here.
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

from masquerade.cli import installation

pytestmark = [pytest.mark.setup, pytest.mark.slow]
CELL = "results/tiny/metrics/synthetic_hq/identitydp/eps_6/0.json"
# What a machine needs in order to reach the registry at all.
KEPT = ("PIP_CERT", "PIP_PROXY", "PIP_INDEX_URL", "PIP_DEFAULT_TIMEOUT")
DROPPED = ("PYTHON", "MAKE", "VIRTUAL_ENV", "XDG_", "DISPLAY", "PIP_", "MPLCONFIGDIR", "MFLAGS", "CI")


class Newcomer:
    """An ordinary user with a clone at ``path``. Of root an account is made, which `close` removes; else oneself."""

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
        """What a command printed; the programs of the clone's own environment come first, as after ``activate``."""
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


def test_the_registry_alone_gives_an_environment_that_loads(newcomer):
    assert "packages with compiled code load" in newcomer.run("make", "environment")
    found = newcomer.run("python", "-c", "from masquerade.cli import installation; print(installation.locks())")
    assert found.strip() == str([installation.LOCK, installation.CUDA_LOCK]), "the registry's torch is a CUDA build"


def test_versions_are_those_of_the_locks_and_nothing_of_torchvision_is_replaced(newcomer):
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


def test_a_library_that_is_lost_later_is_named_with_its_package_and_a_remedy(newcomer):
    (library,) = (newcomer.path / ".venv").rglob("nvidia/**/libcudnn.so.9")
    library.unlink()
    said = newcomer.run("python", "-m", "masquerade.cli.installation", fails=True)
    assert "libcudnn.so.9: cannot open shared object file" in said
    assert installation.CUDA_LOCK in said
    assert installation.ANEW in said
    table = newcomer.run("env", "COLUMNS=200", "masquerade", "doctor", fails=True)
    assert "torch does not load" in table
    assert "libcudnn.so.9" in table
