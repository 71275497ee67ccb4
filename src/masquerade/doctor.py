"""What this machine has, what it lacks, and what to do about it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from masquerade import assets, discovery, installation, matrix, params, tracking
from masquerade.errors import MasqueradeError

PYTHONS = ((3, 11), (3, 12), (3, 13))  # on which the lock was installed and the tests were run
INSTALL = "make environment"
# What the judges and the alignment read inside installed packages: package -> files below its folder.
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
    """One line of the table. A line that is essential and not ok makes the whole examination fail."""

    what: str
    ok: bool
    found: str
    todo: str = ""
    essential: bool = False

    @property
    def word(self) -> str:
        return "ok" if self.ok else "missing" if self.essential else "absent"

    @property
    def style(self) -> str:
        return "green" if self.ok else "bold red" if self.essential else "yellow"


def examine(root: Path, scale: str | None = None) -> list[Check]:
    """Every check, in the order of the table; ``root`` is the repository, ``scale`` as in `params.load`."""
    installed = [python(), *packages(root), *loading(), *model_files()]
    return [*installed, gpu(), slurm(), dvc_remote(root), store(), disk(root), *pipeline(root, scale)]


def python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    right = PYTHONS[0] <= sys.version_info[:2] <= PYTHONS[-1]
    allowed = ", ".join(f"{major}.{minor}" for major, minor in PYTHONS)
    return Check("Python", right, version, "" if right else f"Use one of Python {allowed}.", essential=True)


def packages(root: Path) -> Iterator[Check]:
    """Installed packages against the locks of ``root``: one line a difference, one line where there is none."""
    locks = [root / lock for lock in installation.locks()]
    if missing := [lock for lock in locks if not lock.is_file()]:
        yield Check("packages", False, f"{missing[0]} is missing", "Run this in the repository, or give --root.", True)
        return
    pins = [line.split(";")[0].strip() for lock in locks for line in lock.read_text(encoding="utf-8").splitlines()]
    wanted = dict(pin.split("==", 1) for pin in pins if "==" in pin and not pin.startswith("#"))
    installed = {_normal(item.metadata["Name"]): item.version for item in distributions() if item.metadata["Name"]}
    differences = 0
    for name, version in wanted.items():
        have = installed.get(_normal(name.split("[")[0]))
        if have is None or have.split("+")[0] != version.split("+")[0]:  # +cpu, +cu130 are builds of one version
            differences += 1
            yield Check(
                f"package {name}", False, have or "not installed", f"{version} is locked: `{INSTALL}`", have is None
            )
    if not differences:
        yield Check("packages", True, f"all {len(wanted)} as locked")


def loading() -> Iterator[Check]:
    """Packages with compiled code: one line for each reason why some do not load, one line where all do."""
    compiled = installation.compiled()
    failures = installation.unloadable(compiled)
    for failure in failures:
        yield Check(f"loading {', '.join(failure.packages)}", False, failure.reason, failure.remedy, essential=True)
    if not failures:
        yield Check("loading", True, f"all {len(compiled)} packages with compiled code")


def _normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def model_files() -> Iterator[Check]:
    """Published models that come inside packages."""
    for package, files in MODEL_FILES.items():
        spec = find_spec(package)
        folder = Path(spec.submodule_search_locations[0]) if spec else None
        lost = [file for file in files if folder is None or not (folder / file).is_file()]
        found = f"without {', '.join(lost)}" if lost else "there"
        yield Check(f"models in {package}", not lost, found, INSTALL if lost else "", essential=True)


def gpu() -> Check:
    try:
        import torch
    except (ImportError, OSError, ValueError):  # what torch raises for a library; `loading` names it
        return Check("GPU", False, "torch does not load")
    if torch.cuda.is_available():
        return Check("GPU", True, torch.cuda.get_device_name())
    return Check("GPU", False, f"none seen by torch {torch.__version__}", "Not needed at the scales tiny and mini.")


def slurm() -> Check:
    lost = [name for name in ("sbatch", "sinfo") if shutil.which(name) is None]
    found = f"no {' and no '.join(lost)} on PATH" if lost else "sbatch, sinfo"
    return Check("SLURM", not lost, found, "Needed only for `snakemake --profile slurm`." if lost else "")


def dvc_remote(root: Path) -> Check:
    """Where `dvc push` and `dvc pull` move bytes; the names of the remotes alone, since a URL can hold a secret."""
    listed = subprocess.run(
        [sys.executable, "-m", "dvc", "remote", "list"], cwd=root, capture_output=True, text=True, check=False
    )
    names = [line.split()[0] for line in listed.stdout.splitlines() if line.strip()]
    if listed.returncode or not names:
        return Check("DVC remote", False, "none", "`dvc remote add -d NAME URL`, to share data and checkpoints.")
    return Check("DVC remote", True, ", ".join(names))


def store() -> Check:
    """Where runs are shown; a server is named, not asked."""
    uri = urlsplit(tracking.store())
    if uri.scheme.startswith("sqlite"):
        file = Path(uri.path.removeprefix("/"))
        return Check("MLflow store", True, f"{file} ({'there' if file.is_file() else 'made by the first build'})")
    return Check("MLflow store", True, f"{uri.scheme}://{uri.hostname or uri.path}")


def disk(root: Path) -> Check:
    free = shutil.disk_usage(root).free / 1e9
    todo = "" if free >= FREE_GB else f"Free {FREE_GB:g} GB: data, checkpoints and their DVC cache need room."
    return Check("disk", free >= FREE_GB, f"{free:.0f} GB free", todo)


def pipeline(root: Path, scale: str | None) -> Iterator[Check]:
    """params.yaml, and the checkpoints of the scale."""
    try:
        parameters = params.load(root, scale)
        trained = [name for name in parameters.methods if discovery.load("methods", name).capabilities.trains]
    except MasqueradeError as error:
        yield Check("params.yaml", False, str(error), "Correct it; see `masquerade params check`.", essential=True)
        return
    yield Check("params.yaml", True, f"scale {parameters.scale}")
    yield from outside(root, parameters)
    folder = Path("checkpoints", parameters.scale)
    seed = parameters.seeds[0]
    for kind, files in {
        "backbones": [folder / "backbones" / f"{name}.safetensors" for name in parameters.backbones],
        "methods": [folder / "methods" / name / f"{seed}.safetensors" for name in trained],
    }.items():
        lost = [path for path in files if not (root / path).is_file()]
        todo = f"`make reproduce`, or `snakemake {lost[0]}`" if lost else ""
        yield Check(f"checkpoints of {kind}", not lost, f"{len(files) - len(lost)} of {len(files)}", todo)


def outside(root: Path, parameters: params.Parameters) -> Iterator[Check]:
    """Files from outside that the scale asks for; no line where it asks for none, as tiny and mini do."""
    asked = roles(parameters)
    unready = [(role, trouble) for role in asked if (trouble := assets.unready(role, root))]
    if asked:
        found = f"{len(asked) - len(unready)} of {len(asked)}"
        lost = f" (without {', '.join(role for role, _ in unready)})" if unready else ""
        yield Check("files from outside", not unready, found + lost, unready[0][1] if unready else "")


def roles(parameters: params.Parameters) -> list[str]:
    """The roles of assets that the backbones, judges and datasets of a scale ask for, in the registry's order."""
    backbones = [discovery.load("backbones", name)(knobs) for name, knobs in parameters.backbones.items()]
    judges = [discovery.load("judges", name) for name in {*parameters.measure.judges, *parameters.recovery.judges}]
    asked = {backbone.asset for backbone in backbones}
    asked |= {role for judge in judges for role in getattr(judge, "assets", ())}
    asked |= {cell.dataset for cell in matrix.cells(parameters)}
    return [role for role in assets.registry() if role in asked]
