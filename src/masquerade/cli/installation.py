"""Checks whether the installed packages load on this machine: ``python -m masquerade.cli.installation`` checks all.

A wheel can be installed and still not load, because a shared library is missing or the processor is too old. The check
runs right after the installation and in ``masquerade doctor``, so that no job fails for this reason.
"""

import ctypes
import importlib
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import Distribution, distribution, distributions
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

LOCK, CUDA_LOCK = "requirements.lock", "requirements-cuda.lock"
ANEW = "`rm -r .venv && make environment`"
CRASHED = "Python crashed while it loaded the package"
# Shared library -> Debian package. All other libraries that the wheels link to come inside the wheels.
SYSTEM_LIBRARIES = {
    "libstdc++.so.6": "libstdc++6",
    "libgcc_s.so.1": "libgcc-s1",
    "libz.so.1": "zlib1g",
    "libgomp.so.1": "libgomp1",
}
# Extension modules of this Python. A bare `.so` is a library that a module of its package loads by itself.
MODULE_SUFFIXES = tuple(suffix for suffix in EXTENSION_SUFFIXES if suffix != ".so")
# Extension modules that a package does without where their library is missing: numba's pool of Intel's threads.
OPTIONAL = ("tbbpool",)


@dataclass(frozen=True)
class Unloadable:
    """Packages that are installed but do not load. ``reason`` is the error of Python or of the dynamic linker.

    ``packages``: name and version of each, such as ``torch 2.13.0``.
    """

    packages: tuple[str, ...]
    reason: str

    @property
    def library(self) -> str:
        """The shared library that the linker did not find; '' for another reason."""
        missing = re.search(
            r"(lib[\w.+-]+\.so[\w.]*)\S*(: cannot open shared| not found in the system path)", self.reason
        )
        return missing[1].rstrip(".") if missing else ""

    @property
    def remedy(self) -> str:
        """What to do, in one or two sentences."""
        if self.library in SYSTEM_LIBRARIES:
            return (
                f"{self.library} belongs to the operating system: install it "
                f"(Debian and Ubuntu: `apt-get install {SYSTEM_LIBRARIES[self.library]}`)."
            )
        if re.match(r"lib(cublas|cudart|cudnn|cufft|cufile|cupti|curand|cusolver|cusparse|nccl|nv)", self.library):
            return (
                f"{self.library} comes with the packages of {CUDA_LOCK}, which the CUDA build of torch needs: {ANEW}. "
                "docs/installation.md says how to take the smaller CPU build."
            )
        if re.search("GLIBC(XX)?_", self.reason):
            return "The C or C++ library of this system is too old: use Debian 11, Ubuntu 20.04, RHEL 8 or newer."
        if self.reason == CRASHED:
            return f"Its files are damaged, then {ANEW} helps, or the processor lacks instructions that it uses."
        library = f"{self.library} is not on this machine: " if self.library else ""
        return f"{library}install the packages anew, {ANEW}."

    def __str__(self) -> str:
        verb = "is installed and does" if len(self.packages) == 1 else "are installed and do"
        return f"{', '.join(self.packages)} {verb} not load: {self.reason}. {self.remedy}"


def locks() -> list[str]:
    """The lock files of the installed packages. A CUDA build of torch adds the lock of its libraries."""
    torch = next((item for item in distributions() if item.name == "torch"), None)
    cuda = torch is not None and any(line.startswith(("cuda-", "nvidia-")) for line in torch.requires or ())
    return [LOCK, CUDA_LOCK] if cuda else [LOCK]


def installed() -> dict[str, Distribution]:
    """Normal name -> the distribution that Python finds first, of all on its path."""
    found: dict[str, Distribution] = {}
    for item in distributions():
        if item.metadata["Name"]:
            found.setdefault(normal(item.metadata["Name"]), item)
    return found


def normal(name: str) -> str:
    """The name of a package in lower case, with hyphens."""
    return re.sub(r"[-_.]+", "-", name).lower()


def shadowed(packages: Mapping[str, Distribution]) -> dict[Path, list[str]]:
    """Folder outside this environment -> those of ``packages`` that Python imports from there, each with its version.

    Such a folder comes before the environment: by PYTHONPATH, as the user's site-packages, or by a sitecustomize.
    ``packages``: as `installed` gives them.
    """
    environment = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib", "stdlib")}
    found: dict[Path, list[str]] = {}
    for name, item in packages.items():
        folders = [Path(str(item.locate_file(""))).resolve()]
        folders += [folder for module in _modules(item) if (folder := _folder(module))]
        foreign = [folder for folder in folders if folder not in environment]
        if foreign:
            version = item.version if foreign[0] == folders[0] else "of unknown version"
            found.setdefault(foreign[0], []).append(f"{name} {version}")
    return found


def _modules(item: Distribution) -> list[str]:
    """The packages and modules of a distribution that lie in no package."""
    single = {file.stem for file in item.files or () if len(file.parts) == 1 and file.suffix == ".py"}
    return sorted({*_top_level(item), *single})


def _folder(module: str) -> Path | None:
    """The folder from which Python imports a package or module that lies in no package; None if there is no file."""
    spec = find_spec(module)
    if spec is None or not spec.origin or not spec.has_location:
        return None
    return Path(spec.origin).resolve().parents[1 if spec.submodule_search_locations else 0]


def way_out(folder: Path) -> str:
    """What to do so that Python no longer imports from ``folder``."""
    named = [Path(entry).resolve() for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    if folder in named:
        return "PYTHONPATH names this folder: unload the environment module that sets it, or `unset PYTHONPATH`."
    if folder == Path(site.getusersitepackages()).resolve():
        return "These are packages of `pip install --user`: `export PYTHONNOUSERSITE=1`."
    return "A sitecustomize.py or a .pth file puts this folder before the environment: `python -m site` lists the path."


def compiled() -> list[str]:
    """The names of all installed packages that have compiled code, in alphabetical order."""
    names = {item.name for item in distributions() if item.name and _extensions(item, tuple(EXTENSION_SUFFIXES))}
    return sorted(names, key=str.lower)


def unloadable(packages: Iterable[str]) -> list[Unloadable]:
    """Load each of ``packages`` once, in another process. Returns the failures, in the order of their first package.

    A package that kills the process is a failure too. The remaining packages are then loaded in a new process.
    """
    reasons: dict[str, list[str]] = {}
    waiting = list(packages)
    while waiting:
        with ProcessPoolExecutor(max_workers=1, mp_context=get_context("spawn")) as process:
            while waiting:
                name = waiting.pop(0)
                try:
                    reason = process.submit(load, name).result()
                except BrokenProcessPool:
                    reason = CRASHED
                if reason:
                    reasons.setdefault(reason, []).append(f"{name} {distribution(name).version}")
                if reason == CRASHED:
                    break
    return [Unloadable(tuple(names), reason) for reason, names in reasons.items()]


def load(package: str) -> str:
    """Import a package and link each of its extension modules. Returns the error, or '' if there is none."""
    item = distribution(package)
    try:
        if package == "torchvision":
            from masquerade.networks import torchvision_internals

            torchvision_internals.ensure()
        for name in _top_level(item):
            importlib.import_module(name)
        for file in _extensions(item, MODULE_SUFFIXES):
            if not file.name.startswith(OPTIONAL):
                ctypes.CDLL(str(item.locate_file(file)))
    except Exception as error:  # noqa: BLE001 - a package may raise anything while it is imported
        return f"{error}".strip().rstrip(".") or type(error).__name__
    return ""


def _extensions(item: Distribution, suffixes: tuple[str, ...]) -> list:
    return [file for file in item.files or () if file.name.endswith(suffixes)]


def _top_level(item: Distribution) -> list[str]:
    """The packages of a distribution, and its extension modules that lie in no package."""
    packages = {file.parts[0] for file in item.files or () if len(file.parts) == 2 and file.name == "__init__.py"}
    modules = {file.name.split(".")[0] for file in _extensions(item, MODULE_SUFFIXES) if len(file.parts) == 1}
    return sorted(packages | modules)


def main() -> int:
    """Print one paragraph for each reason why packages do not load. Returns the status of the process."""
    packages = compiled()
    failures = unloadable(packages)
    for failure in failures:
        sys.stderr.write(f"{failure}\n")
    failed = sum(len(failure.packages) for failure in failures)
    sys.stdout.write(f"{len(packages) - failed} of {len(packages)} packages with compiled code load\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
