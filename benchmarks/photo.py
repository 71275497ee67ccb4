"""The build of scale photo: what each method does to the test people, and its seconds.

Writes photo.md, and photo_claims.md, a copy of the build's page of claims.

`python benchmarks/photo.py` after `snakemake all --config scale=photo`. The seconds are the processor's, of Snakemake's
benchmark files; the faces are those of the test people, of whom no network learned.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from pages import MACHINE, ROOT, table, write

from masquerade.core import face_tables, thresholds
from masquerade.core.images import FaceArchive
from masquerade.core.statistics import COVERED
from masquerade.papers import cautions, shares
from masquerade.params import loading
from masquerade.params.paths import Paths

SCALE, DATASET = "photo", "generated_hq"
PATHS = Paths(SCALE)
STAND_INS = loading.load(ROOT, SCALE).latent_stand_ins
DISTANCE, WRITTEN = 0.6, 0.65
"""The published threshold of dlib's recognizer (King 2017), and the distance beyond which `anonymize` writes a face."""
TURN = 8.0
"""Degrees of yaw by which a face may turn and still count as having kept its pose."""
FAR, FAR_OF_KEYS = 0.001, 0.01
"""False-accept rates on other people: of what is anonymized, and of what is recovered."""
CHILD, OLD, PROFILE = 18, 50, 20.0
"""Years, years, and degrees of yaw from which a face belongs to a group."""
DARK = 0.25
"""Share of the faces whose skin counts as dark: those with the lowest lightness between eyes and mouth."""
METHODS = {
    "inverted, not anonymized": "inverted/control",
    "FALCO without its optimization": "falco/start",
    "FALCO (m = 0)": "falco/m_0",
    "FALCO (m of strangers)": "falco/m_strangers",
    "IdentityDP (ε = 0.57)": "identitydp/eps_0_57",
    "IdentityDP (ε = 6)": "identitydp/eps_6",
    "IdentityDP (ε = 100)": "identitydp/eps_100",
    "IdentityDP (ε = 800)": "identitydp/eps_800",
    "LReOrg": "lreorg/default",
    "Cao et al. (d = 9)": "cao21/d_9",
    "iFADIT": "ifadit/full",
    "RiDDLE": "riddle/default",
    "latent inpainting": "latent_inpainting/default",
    "DeepPrivacy": "deepprivacy/default",
    "DeepPrivacy2": "deepprivacy2/default",
    "CIAGAN": "ciagan/default",
    "LDFA": "ldfa/default",
    "our FIT": "fit/default",
    "our AnonymousNet": "anonymousnet/default",
    "DartBlur": "dartblur/default",
    "Fawkes": "fawkes/default",
    "CLIP2Protect": "clip2protect/default",
}
KEYED = {"RiDDLE": "riddle/default", "iFADIT": "ifadit/full", "Cao et al. (d = 9)": "cao21/d_9"}
ATTEMPTS = {
    "recovered": "right key, from the image",
    "wrong": "wrong keys",
    "saved": "right key, from what is saved",
    "saved_wrong": "wrong key, from what is saved",
    "file": "right key, from the file",
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


def locate(cell: str) -> str:
    method, _, variant = cell.partition("/")
    return PATHS.measurements.format(dataset=DATASET, method=method, variant=variant, seed=0)


def measured(cell: str) -> pd.DataFrame:
    return face_tables.read(ROOT / locate(cell)).set_index("source_id")


def embedding(frame: pd.DataFrame, judge: str) -> np.ndarray:
    """The embeddings of faces, (N, D); NaN where the evaluator found none."""
    return face_tables.stack(frame[f"{judge}.embedding"])


def find_limit(judge: str, far: float) -> float:
    """The distance below which two images count as one person, at the rate ``far`` on the validation people."""
    frame = face_tables.read(ROOT / PATHS.source_measurements.format(dataset=DATASET))
    frame = frame[frame["split"] == "validation"]
    strangers = thresholds.pair_strangers(embedding(frame, judge), frame["identity"].to_numpy(), far)
    return thresholds.estimate_threshold(far, strangers, 0).distance


def count(chosen: np.ndarray) -> str:
    """How many are chosen, with the 95 % interval of their share (Wilson)."""
    if not chosen.size:
        return "–"
    low, high = shares.find_score_interval(chosen.mean(), chosen.size, COVERED)
    return f"{chosen.sum()} of {chosen.size} [{low:.2f}, {high:.2f}]"


def count_finite(distances: np.ndarray, chosen: np.ndarray) -> str:
    """How many are chosen, of the faces whose distance is known."""
    return count(chosen[np.isfinite(distances)])


def compare(cell: str, source: pd.DataFrame, limits: dict[str, float]) -> list[str]:
    """A row of the table of methods."""
    made = measured(cell)
    clear = source.reindex(made.index)
    apart = {judge: np.linalg.norm(embedding(made, judge) - embedding(clear, judge), axis=1) for judge in limits}
    dlib = apart["dlib_face"]
    years = (made["age_gender.age"] - clear["age_gender.age"]).abs().mean()
    same = (made["age_gender.male"] > 0.5) == (clear["age_gender.male"] > 0.5)
    ethnic = [face_tables.stack(frame["ethnicity.ethnicity"]).argmax(axis=1) for frame in (made, clear)]
    turns = [face_tables.stack(frame["face_mesh.pose"])[:, 0] for frame in (made, clear)]  # yaw, degrees
    turned = np.abs(turns[0] - turns[1])
    accepted = [count_finite(apart[judge], apart[judge] < limits[judge]) for judge in limits]
    return [
        f"{np.nanmedian(dlib):.2f}", count_finite(dlib, dlib > DISTANCE),
        count_finite(dlib, dlib > WRITTEN),
        count((made["dlib_face.detected"] > 0).to_numpy()), f"{years:.1f}", count(same.to_numpy()),
        count(ethnic[0] == ethnic[1]), count_finite(turned, turned < TURN), *accepted[1:],
    ]  # fmt: skip


def by_method() -> str:
    """The table of methods on the test people."""
    source = face_tables.read(ROOT / PATHS.source_measurements.format(dataset=DATASET)).set_index("id")
    limits = {judge: find_limit(judge, FAR) for judge in ("dlib_face", "faceres", "faceplugin")}
    head = ["", "dlib distance, median", f"beyond {DISTANCE}", f"beyond {WRITTEN}", "found by HOG", "years of change",
            "gender kept", "ethnicity kept", f"yaw within {TURN:g} degrees", "accepted by faceres",
            "accepted by faceplugin"]  # fmt: skip
    rows = [
        [cautions.mark_title(title, cell.partition("/")[0], STAND_INS), *compare(cell, source, limits)]
        for title, cell in METHODS.items()
        if (ROOT / locate(cell)).is_file()
    ]
    return table(head, rows)


def by_key() -> str:
    """The table of right and wrong keys: who is accepted as the person, by two evaluators."""
    source = face_tables.read(ROOT / PATHS.source_measurements.format(dataset=DATASET)).set_index("id")
    limits = {judge: find_limit(judge, FAR_OF_KEYS) for judge in ("dlib_face", "faceres")}
    rows = []
    for title, cell in KEYED.items():
        method, _, variant = cell.partition("/")
        path = ROOT / PATHS.recovery_measurements.format(dataset=DATASET, method=method, variant=variant, seed=0)
        every = face_tables.read(path)
        for attempt, name in ATTEMPTS.items():
            made = every[(every["attempt"] == attempt) & (every["status"] == "ok")]
            if made.empty:
                continue
            line = [cautions.mark_title(title, method, STAND_INS), name]
            for judge, limit in limits.items():
                clear = embedding(source.reindex(made["source_id"]), judge)
                apart = np.linalg.norm(embedding(made, judge) - clear, axis=1)
                line.append(f"{count_finite(apart, apart < limit)} ({np.nanmedian(apart):.2f})")
            rows.append(line)
    return table(["", "recovered with", *limits], rows)


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
        if not (ROOT / locate(cell)).is_file():
            continue
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


def copy_claims() -> bool:
    """Copy the build's page of claims. Returns False if the build is not complete, and has none."""
    page = ROOT / f"{PATHS.claims_table}.md"
    if page.is_file():
        write(f"{SCALE}_claims", page.read_text(encoding="utf-8").rstrip())
    return page.is_file()


def main() -> None:
    state = "" if copy_claims() else " **The build is not complete.**"
    rules = sorted(seconds().items(), key=lambda item: -sum(item[1]))
    jobs, total = sum(len(values) for _, values in rules), sum(sum(values) for _, values in rules)
    write(
        SCALE,
        "# The build of `photo`",
        f"`snakemake all --config scale=photo`, one build. {MACHINE}.{state} Its {jobs} finished jobs took "
        f"{total / 60:.0f} minutes of a processor's core.",
        "## Methods on generated people",
        f"The test people of `{DATASET}`, one image each. In brackets stands the 95 % interval of a share (Wilson). "
        f"faceres and faceplugin accept at a false-accept rate of {FAR:.1%} on the validation people.",
        by_method(),
        "## Right and wrong keys",
        f"How many faces are accepted as the person at a false-accept rate of {FAR_OF_KEYS:.0%} on the validation "
        "people, and the median distance.",
        by_key(),
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
