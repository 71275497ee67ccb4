"""A working copy of the sources, and the commands of a user in it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import yaml
from numba.core.caching import UserProvidedCacheLocator

import programs
from masquerade.lineage import chain
from masquerade.lineage.address import ResolvedAddress, resolve
from masquerade.lineage.history import read_working_copy
from masquerade.lineage.records import Records

BUILT_FOLDERS = ("data/tiny", "checkpoints/tiny", "results/tiny")
"""The folders of the built files."""
NEVER_CHANGED = ("weights", ".git/objects", ".dvc/cache", "mlruns")
"""Folders whose files are replaced and never written to: copies of a working copy share them."""
KERNELS = Path("src/drawnpeople")
"""The folder of the kernels that draw faces."""


class Repository:
    """The working copy at ``path``; commands run in it with ``environment`` (default: that of the tests)."""

    def __init__(self, path: Path, environment: Mapping[str, str] = os.environ):
        self.path = path
        removed = ("MASQUERADE_BUILD", "MLFLOW_TRACKING_URI", "DVC_STAGE", "PYTHONDONTWRITEBYTECODE")
        inherited = {key: value for key, value in environment.items() if key not in removed}
        # this working copy's own sources, not the installed ones
        self.environment = inherited | {
            "PATH": f"{programs.BIN}{os.pathsep}{inherited['PATH']}",
            "PYTHONPATH": str(path / "src"),
            "GIT_CONFIG_GLOBAL": os.devnull,
        }

    def run(self, *command: str, fails: bool = False) -> str:
        """What the command wrote. Fails if its status is not 0, or, with ``fails``, if it is."""
        if command[0] in programs.NAMES:
            code, output = programs.run(command, self.path, self.environment)
        else:
            done = subprocess.run(
                command, cwd=self.path, env=self.environment, capture_output=True, text=True, check=False
            )
            code, output = done.returncode, done.stdout + done.stderr
        assert (code != 0) == fails, f"{' '.join(command)} -> {code}\n{output[-6000:]}"
        return output

    def snakemake(self, *arguments: str, fails: bool = False) -> str:
        return self.run("snakemake", "--cores", "2", *arguments, fails=fails)

    def build(self, *targets: str, fails: bool = False) -> str:
        """`snakemake` of these targets, without recording the build in git and DVC, which takes seconds."""
        return self.snakemake("--config", "scale=tiny", "--", *targets, fails=fails)

    def git(self, *arguments: str) -> str:
        names = ("-c", "user.name=t", "-c", "user.email=t@example.org")
        return self.run("git", *names, "-c", "core.looseCompression=0", *arguments)  # compressing takes seconds

    def commit(self, message: str = "state") -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)

    def all_jobs(self) -> set[str]:
        """All jobs of the graph, each by its rule and wildcards."""
        return {name for name, _ in self._plan_jobs(0)}

    def out_of_date(self) -> set[str]:
        """The jobs that Snakemake would run, each by its rule and wildcards."""
        return {name for name, _ in self._plan_jobs(1)}

    def files_out_of_date(self) -> set[str]:
        """The jobs that Snakemake would run, each by its first output."""
        return {output for _, output in self._plan_jobs(1)}

    def _plan_jobs(self, part: int) -> list[list[str]]:
        """The name and the first output of each job in one of the two lists of `plan_jobs`."""
        program = (
            "import json; from masquerade.lineage.snakemake_internals import plan_jobs\n"
            "names = [['-'.join([job.rule.name, *map(str, job.wildcards_dict.values())]).replace('.', '_'),\n"
            f"          str(job.output[0])] for job in plan_jobs()[{part}]]\n"
            "print('JOBS', json.dumps(names))"
        )
        output = self.run(sys.executable, "-c", program)
        return json.loads(output.split("JOBS ")[-1].splitlines()[0])

    def runs(self) -> dict[str, str]:
        """First output of each recorded job of scale tiny -> its run, which is another one when the job runs again."""
        recorded = Records.read("tiny", self.path)
        return {key: record.circumstances["run"] for key, record in recorded.jobs.items()}

    def made_since(self, runs: Mapping[str, str]) -> set[str]:
        """The recorded jobs that ran since `runs` was called, each by its first output."""
        return {key for key, run in self.runs().items() if runs.get(key) != run}

    def edit_params(self, change, file: str = "params.yaml") -> None:
        tree = yaml.safe_load((self.path / file).read_text())
        change(tree)
        (self.path / file).write_text(yaml.safe_dump(tree, sort_keys=False))

    def edit(self, file: str, old: str, new: str) -> None:
        text = (self.path / file).read_text()
        assert old in text, f"{old!r} is not in {file}"
        (self.path / file).write_text(text.replace(old, new, 1))

    def copy(self, to: Path, environment: Mapping[str, str] | None = None) -> "Repository":
        shared = tuple(f"{self.path / name}{os.sep}" for name in NEVER_CHANGED)

        def copied(source: str, target: str) -> None:
            (os.link if source.startswith(shared) else shutil.copy2)(source, target)

        shutil.copytree(self.path, to, symlinks=True, copy_function=copied)
        copy_kernels(self.path, to)
        return Repository(to, environment or self.environment)

    def clone(self, to: Path) -> "Repository":
        """The working copy of a colleague after ``git clone`` and ``dvc pull``."""
        self.git("clone", "--quiet", str(self.path), str(to))
        cloned = Repository(to, self.environment)
        cloned.run("dvc", "pull")
        return cloned

    def files(self, *folders: str) -> dict[str, bytes]:
        """Path -> bytes of every file below these folders."""
        paths = (path for folder in folders for path in sorted((self.path / folder).rglob("*")) if path.is_file())
        return {path.relative_to(self.path).as_posix(): path.read_bytes() for path in paths}

    @classmethod
    def of_sources(cls, root: Path, path: Path, scale: str) -> "Repository":
        """A new repository at ``path``: the sources of the working tree at ``root``, at ``scale``, nothing built.

        It has no pretrained networks: no scale of the tests uses them, and each commit and clone would copy 140 MB.
        """
        for name in sources(root):
            of_another_build = name == "dvc.lock" or name.startswith("records/")
            if not of_another_build and (not name.startswith("weights/") or name == "weights/README.md"):
                (path / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, path / name)
        copy_kernels(root, path)
        repository = cls(path)
        repository.edit("params.yaml", "scale: mini", f"scale: {scale}")
        repository.git("init", "--quiet", "--initial-branch", "main")
        repository.commit(scale)
        return repository


def copy_kernels(root: Path, path: Path) -> None:
    """Copy the compiled kernels: compiling takes 20 s. Numba names their folder after that of their source."""
    names = [UserProvidedCacheLocator.get_suitable_cache_subpath(str(top / KERNELS / "x.py")) for top in (root, path)]
    for compiled in (root / KERNELS / "__pycache__").glob(f"*/{names[0]}"):
        to = path / compiled.relative_to(root).with_name(names[1])
        shutil.copytree(compiled, to, dirs_exist_ok=True)


def sources(root: Path) -> list[str]:
    """The files of the working tree at ``root`` that git does not ignore. The tree may be a plain copy without git."""
    with tempfile.TemporaryDirectory() as folder:
        git = ["git", f"--git-dir={folder}/empty", f"--work-tree={root}"]
        subprocess.run([*git, "init", "--quiet"], check=True)
        listed = subprocess.run(
            [*git, "ls-files", "-z", "--others", "--exclude-standard"],
            cwd=root,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    return sorted(filter(None, listed.split("\0")))


def follow(repository: Repository, address: str) -> tuple[ResolvedAddress, list[chain.Link]]:
    """What the address names, and the links behind it down to raw data."""
    history = read_working_copy(repository.path)
    resolved = resolve(address, history)
    return resolved, chain.follow(history, resolved)
