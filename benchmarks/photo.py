"""The build of scale photo: seconds of each rule and image, and how faces with an attribute fare. Writes photo.md.

`python benchmarks/photo.py` after `snakemake all --config scale=photo`. The seconds are the processor's, of Snakemake's
benchmark files; the faces are those of the test people, of whom no network learned.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from pages import MACHINE, ROOT, table, write

from masquerade.core import face_tables
from masquerade.core.images import FaceArchive
from masquerade.papers import cautions
from masquerade.params import loading
from masquerade.params.paths import Paths

SCALE, DATASET = "photo", "generated_hq"
PATHS = Paths(SCALE)
STAND_INS = loading.load(ROOT, SCALE).latent_stand_ins
DISTANCE = 0.6
"""The published threshold of dlib's recognizer (King 2017)."""
CHILD, OLD, PROFILE = 18, 50, 20.0
"""Years, years, and degrees of yaw from which a face belongs to a group."""
DARK = 0.25
"""Share of the faces whose skin counts as dark: those with the lowest lightness between eyes and mouth."""
METHODS = {
    "inverted, not anonymized": "inverted/control",
    "FALCO (m = 0)": "falco/m_0",
    "IdentityDP (ε = 6)": "identitydp/eps_6",
    "LReOrg": "lreorg/default",
    "Cao et al. (d = 9)": "cao21/d_9",
    "iFADIT": "ifadit/full",
    "RiDDLE": "riddle/default",
    "DeepPrivacy": "deepprivacy/default",
    "DeepPrivacy2": "deepprivacy2/default",
    "CIAGAN": "ciagan/default",
}


def processor(benchmark: Path) -> float:
    """Processor seconds of a job, from its benchmark file."""
    return float(pd.read_csv(benchmark, sep="\t")["cpu_time"].iloc[0])


def seconds() -> dict[str, list[float]]:
    """Rule -> processor seconds of each of its jobs."""
    base, found = ROOT / PATHS.logs / "benchmarks", defaultdict(list)
    for path in base.rglob("*.tsv"):
        found[path.relative_to(base).with_suffix("").parts[0]].append(processor(path))
    return dict(found)


def pictures() -> Iterator[tuple[str, int, float]]:
    """(method/variant, images, processor seconds) of each anonymized cell of the test people."""
    base = ROOT / PATHS.logs / "benchmarks/anonymize" / DATASET
    for path in sorted(base.rglob("*.tsv")):
        cell = path.relative_to(base).with_suffix("")
        archive = ROOT / PATHS.anonymized.format(
            dataset=DATASET, method=cell.parts[0], variant=cell.parts[1], seed=cell.parts[2]
        )
        count = len(FaceArchive(archive).select("test"))
        yield "/".join(cell.parts[:2]), count, processor(path)


def measured(cell: str) -> pd.DataFrame:
    method, _, variant = cell.partition("/")
    path = PATHS.measurements.format(dataset=DATASET, method=method, variant=variant, seed=0)
    return face_tables.read(ROOT / path).set_index("source_id")


def lightness(archive: FaceArchive, rows: pd.DataFrame) -> np.ndarray:
    """Mean of L* (0 to 100) of the skin between eyes and mouth, (N,)."""
    import cv2

    values = []
    for picture, points in zip(archive.pictures(rows), rows["landmarks"], strict=True):
        points = np.reshape(points, (-1, 2)).round().astype(int)
        top, bottom = points[36:48, 1].max(), points[48:60, 1].min()
        left, right = points[36:48, 0].min(), points[36:48, 0].max()
        skin = picture[top : max(bottom, top + 1), left : max(right, left + 1)]
        values.append(cv2.cvtColor(skin.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)[..., 0].mean())
    return np.array(values)


def groups(rows: pd.DataFrame, light: np.ndarray) -> dict[str, np.ndarray]:
    """Name of a group of faces -> which faces are in it, bool (N,)."""
    age, yaw = rows["attribute.age"].to_numpy(), rows["pose.yaw"].abs().to_numpy()
    return {
        "all": np.ones(len(rows), bool),
        f"under {CHILD} years": age < CHILD,
        f"{OLD} years and more": age >= OLD,
        "glasses": rows["attribute.Eyeglasses"].to_numpy(bool),
        f"yaw beyond {PROFILE:g} degrees": yaw > PROFILE,
        "darkest quarter of skins": light <= np.quantile(light, DARK),
        "men": rows["attribute.Male"].to_numpy(bool),
        "women": ~rows["attribute.Male"].to_numpy(bool),
    }


def by_attribute() -> Iterator[str]:
    """A heading and a table for each method."""
    archive = FaceArchive(ROOT / PATHS.faces.format(dataset=DATASET))
    rows = archive.select("test")
    parts = groups(rows, lightness(archive, rows))
    source = face_tables.read(ROOT / PATHS.source_measurements.format(dataset=DATASET)).set_index("id")
    for title, cell in METHODS.items():
        made, clear = measured(cell).reindex(rows["id"]), source.reindex(rows["id"])
        pair = [face_tables.stack(frame["dlib_face.embedding"]) for frame in (made, clear)]
        distance = np.linalg.norm(pair[0] - pair[1], axis=1)
        years = (made["age_gender.age"] - clear["age_gender.age"]).abs().to_numpy(float)
        same = ((made["age_gender.male"] > 0.5) == (clear["age_gender.male"] > 0.5)).to_numpy()
        found = made["dlib_face.detected"].to_numpy(float) > 0
        lines = []
        for name, chosen in parts.items():
            near = distance[chosen & np.isfinite(distance)]
            lines.append(
                [
                    name, chosen.sum(), f"{np.median(near):.2f}" if near.size else "–",
                    f"{(near >= DISTANCE).sum()} of {near.size}", f"{found[chosen].sum()} of {chosen.sum()}",
                    f"{np.nanmean(years[chosen]):.1f}" if chosen.any() else "–",
                    f"{same[chosen].sum()} of {chosen.sum()}",
                ]
            )  # fmt: skip
        head = ["faces", "number", "dlib distance, median", f"beyond {DISTANCE}", "found by HOG", "years of change"]
        yield f"### {cautions.mark_title(title, cell.partition('/')[0], STAND_INS)}"
        yield table([*head, "gender kept"], lines)


def main() -> None:
    rules = sorted(seconds().items(), key=lambda item: -sum(item[1]))
    total = sum(sum(values) for _, values in rules)
    write(
        SCALE,
        "# The build of `photo`",
        f"`snakemake all --config scale=photo`, one build. {MACHINE}. All jobs together took {total / 60:.0f} "
        "minutes of a processor's core.",
        "## Processor seconds by rule",
        table(["rule", "jobs", "seconds"], [[name, len(values), f"{sum(values):.0f}"] for name, values in rules]),
        "## Processor seconds an image",
        "Those of a whole job. FALCO and the keyed methods take codes that the rule `latents` computed. The cells of "
        f"{', '.join(f'`{name}`' for name in STAND_INS)} are latent stand-ins, not the published methods.",
        table(
            ["cell", "pictures", "seconds an image"],
            [[name, count, f"{spent / max(count, 1):.2f}"] for name, count, spent in pictures()],
        ),
        "## By attribute",
        "The generator draws few children, head scarves and profiles. Age, glasses, pose and sex are those of the "
        "dataset's index; scarves have no measure there. Small groups say little: read the numbers of faces.",
        *by_attribute(),
    )


if __name__ == "__main__":
    main()
