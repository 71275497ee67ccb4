"""From a folder of photographs to a folder of anonymized or recovered faces: the steps of the command line."""

import csv
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from pydantic import ValidationError

from masquerade import discovery
from masquerade.errors import CheckpointError, MasqueradeError, ParameterError
from masquerade.faces.folder import Folder
from masquerade.images import OK, ArchiveWriter, FaceArchive, index_path, to_uint8
from masquerade.methods import Method, Resources
from masquerade.params import Parameters, trained_with
from masquerade.settings import Settings

REPORT = "report.csv"
COLUMNS = ("file", "output", "status", "reason")
BATCH = 16
# What a variant's knobs become for real photographs, where it has them: noise that nobody can repeat, and a
# sensitivity that holds for every face, not only for those of this folder.
STRICT = {"sampler": "opendp", "sensitivity": "bound"}


def check_output(output: Path, source: Path, overwrite: bool) -> None:
    """Raises MasqueradeError where the results would mix with something else."""
    if output.resolve().is_relative_to(source.resolve()):
        raise MasqueradeError(f"{output} lies in {source}: the results would be read as pictures the next time.")
    if output.exists() and not output.is_dir():
        raise MasqueradeError(f"{output} is not a folder.")
    if output.is_dir() and any(output.iterdir()) and not overwrite:
        raise MasqueradeError(f"{output} is not empty. Name another folder, or add --overwrite.")


def method(
    root: Path, parameters: Parameters, name: str, variant: str | None, strict: bool,
    hide: list[str] | None = None, keep: list[str] | None = None,
) -> tuple[Method, str]:  # fmt: skip
    """The method, loaded, and the name of its variant, whose knobs become those of STRICT if ``strict``.

    ``hide`` and ``keep`` take the place of the variant's own, of a method that lets one choose. Raises ParameterError.
    """
    cls = discovery.load("methods", name)
    if name not in parameters.methods:
        raise ParameterError(f"params.yaml has no block methods.{name} at scale {parameters.scale}.")
    block = parameters.methods[name]
    variant = variant or next(iter(block.variants))
    if variant not in block.variants:
        raise ParameterError(f"'{name}' has no variant '{variant}'. It has: {', '.join(block.variants)}.")
    knobs = block.variants[variant]
    if strict:
        overruled = {knob: value for knob, value in STRICT.items() if knob in type(knobs).model_fields}
        knobs = type(knobs)(**{**knobs.model_dump(), **overruled})
    if hide is not None or keep is not None:
        knobs = _choosing(name, cls, knobs, hide, keep)
    trained = trained_with(cls, parameters.tree["methods"][name]["params"], parameters.ablations(name).get(variant))
    return cls(trained, knobs, resources(root, parameters, name, variant)), variant


def _choosing(
    name: str, cls: type[Method], knobs: Settings, hide: list[str] | None, keep: list[str] | None
) -> Settings:
    """The knobs of a variant with other attributes: what is named on one side goes from the other's usual ones."""
    if not cls.capabilities.attribute_selective:
        able = [
            one for one in discovery.names("methods") if discovery.load("methods", one).capabilities.attribute_selective
        ]
        raise ParameterError(f"'{name}' does not let you choose what it hides. These do: {', '.join(able)}.")
    hidden = [one for one in knobs.hide if one not in keep] if hide is None else hide
    kept = [one for one in knobs.keep if one not in hide] if keep is None else keep
    try:
        return type(knobs)(**{**knobs.model_dump(), "hide": hidden, "keep": kept})
    except ValidationError as error:
        told = "; ".join(item["msg"].removeprefix("Value error, ") for item in error.errors())
        raise ParameterError(f"--hide {','.join(hidden)} --keep {','.join(kept)}: {told}.") from error


def resources(root: Path, parameters: Parameters, name: str, variant: str) -> Resources:
    """The files that a method needs, at their places in the repository. Raises CheckpointError naming a missing one."""
    cls, checkpoints = discovery.load("methods", name), Path("checkpoints", parameters.scale)
    place = Path("ablations", name, variant) if variant in parameters.ablations(name) else Path("methods", name)
    checkpoint = checkpoints / place / f"{parameters.seeds[0]}.safetensors"
    backbones = {need: checkpoints / "backbones" / f"{need}.safetensors" for need in cls.needs}
    gallery = Path("data", parameters.scale, "faces", f"{parameters.matrix.train_on}.zip")
    fakes = Path("data", parameters.scale, "fakes.safetensors")
    wanted = [checkpoint] * cls.capabilities.trains + list(backbones.values())
    wanted += [gallery, index_path(gallery)] * cls.capabilities.gallery
    wanted += [fakes] * cls.capabilities.fakes
    missing = [path for path in wanted if not (root / path).is_file()]
    if missing:
        raise CheckpointError(
            f"{name} needs {', '.join(map(str, missing))}, which {'is' if len(missing) == 1 else 'are'} missing. Run "
            f"`make reproduce`, or only `snakemake {' '.join(map(str, missing))}`, in {root.resolve()}."
        )
    return Resources(
        checkpoint=root / checkpoint if cls.capabilities.trains else None,
        backbones={need: root / path for need, path in backbones.items()},
        gallery=FaceArchive(root / gallery) if cls.capabilities.gallery else None,
        fakes=root / fakes if cls.capabilities.fakes else None,
    )


def folder(parameters: Parameters, path: Path, faces: str, alignment: str) -> Folder:
    """The photographs at ``path``, with the limits of params.yaml. Nobody in them is known by name."""
    if "folder" not in parameters.datasets:
        raise ParameterError(f"params.yaml has no block datasets.folder at scale {parameters.scale}.")
    limits = parameters.datasets["folder"].model_dump()
    changes = {"path": str(path), "faces": faces, "alignment": alignment, "identity": "unknown"}
    return Folder(Folder.Params(**{**limits, **changes}))


def build(source: Folder, archive: Path, size: int, looking: Callable[[int], None]) -> FaceArchive:
    """All pictures of the folder as an archive, less the report of an earlier run. ``looking`` hears how many."""
    with ArchiveWriter(archive) as out:
        for number, record in enumerate(source.records(size, seed=0, workers=1)):
            looking(number)
            if record.row["file"] != REPORT:
                out.add(record.picture, record.row)
    if not out.rows:
        raise MasqueradeError(f"There is no file in {source.params.path}.")
    return FaceArchive(archive)


def publish(result: FaceArchive, output: Path) -> list[dict[str, str]]:
    """Write one PNG a face and the report; returns the report's rows. No metadata of the photograph goes along."""
    output.mkdir(parents=True, exist_ok=True)
    for batch in result.batches(BATCH):
        for name, picture in zip(batch.ids, to_uint8(batch.images), strict=True):
            Image.fromarray(picture).save(output / f"{name}.png")
    report = []
    for row in result.index.to_dict("records"):
        picture = f"{row['id']}.png" if row["status"] == OK else ""
        if not picture:  # what an earlier run left here would look like a result of this one
            (output / f"{row['id']}.png").unlink(missing_ok=True)
        report.append({"file": row["file"], "output": picture, "status": row["status"], "reason": row["reason"]})
    with (output / REPORT).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(report)
    return report
