"""Do detectors find the procedural faces, and do recognisers tell their people apart? The networks never saw them.

`python benchmarks/faces.py` renders unseen people of synthetic_hq, measures them with dlib (HOG detector, 68-point
predictor, 128-D recogniser) and MTCNN, and writes benchmarks/faces.md.
"""

import argparse
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from masquerade.core import discovery
from masquerade.core.images import to_float
from masquerade.faces._drawn.procedural import render
from masquerade.judges.dlib_face import DlibFace
from masquerade.judges.mtcnn import Mtcnn
from masquerade.params import loading

ROOT = Path(__file__).resolve().parent.parent


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
        (kind.prefix, "test", person, take, seed, dataset.conditions(), size, dataset.params.supersampling)
        for person in range(identities)
        for take in range(pictures)
    ]
    start = time.process_time()
    records = [render(job) for job in jobs]
    cost = (time.process_time() - start) / len(jobs)
    images = to_float(np.stack([record.picture for record in records]))
    people = np.array([record.row["identity"] for record in records])
    truth = np.array([record.row["landmarks"] for record in records]).reshape(-1, 68, 2)
    dlib = DlibFace(DlibFace.Params(), {}).measure(images)
    mtcnn = Mtcnn(Mtcnn.Params(), {}).measure(images)
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
        "ms a picture": f"{1000 * cost:.0f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--identities", type=int, default=60)
    parser.add_argument("--pictures", type=int, default=4)
    parser.add_argument("--sizes", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--sets", nargs="+", choices=["hq", "wild"], default=["hq", "wild"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path(__file__).with_suffix(".md"))
    arguments = parser.parse_args()
    rows = [
        measure(f"synthetic_{name}", size, arguments.identities, arguments.pictures, arguments.seed)
        for name in arguments.sets
        for size in arguments.sizes
    ]
    head = "| " + " | ".join(rows[0]) + " |\n|" + " --- |" * len(rows[0])
    table = "\n".join([head, *("| " + " | ".join(str(value) for value in row.values()) + " |" for row in rows)])
    note = (
        f"{arguments.identities} people of the test split, {arguments.pictures} pictures each, seed {arguments.seed}. "
        "AUC: dlib's 128-D recogniser, all pairs. Landmark error: dlib's 68 points against the truth, mean distance "
        "over the distance of the eyes (in brackets: pictures with points). Processor time on one core."
    )
    arguments.output.write_text(f"# Procedural faces before real judges\n\n{table}\n\n{note}\n")
    print(table)


if __name__ == "__main__":
    main()
