"""Where a recovered person is lost: the error ladder of three methods with keys at the scale photo. Writes recovery.md.

It needs the build of the scale (`make photo`, `snakemake --config scale=photo ...`). The faces are those of validation
people; the thresholds come from the other validation people.
"""

import argparse

import numpy as np
from pages import ROOT, table, write

METHODS = {"riddle": "default", "ifadit": "full", "cao21": "d_9"}
JUDGES = ("dlib_face", "faceres")
FAR = 0.01


def main() -> None:
    from masquerade.core import discovery
    from masquerade.core.images import FaceArchive
    from masquerade.core.thresholds import estimate_threshold, pair_strangers
    from masquerade.params import loading
    from masquerade.params.paths import Paths
    from masquerade.pipeline import anonymization, ladder, method_files

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", type=int, default=24)
    parser.add_argument("--scale", default="photo")
    options = parser.parse_args()
    parameters = loading.load(ROOT, options.scale)
    archive = FaceArchive(ROOT / Paths(options.scale).faces.format(dataset=parameters.matrix.train_on))
    people = archive.select("validation").drop_duplicates("identity")
    faces = archive.load(rows=people.head(options.faces))
    others = archive.load(rows=people.iloc[options.faces :])
    judges = {name: discovery.load("judges", name)(parameters.judges[name], {}) for name in JUDGES}
    originals = {name: judge.measure(faces.images)["embedding"] for name, judge in judges.items()}
    thresholds = {}
    for name, judge in judges.items():
        strangers = judge.measure(others.images)["embedding"]
        thresholds[name] = estimate_threshold(
            FAR, pair_strangers(strangers, others.index["identity"].to_numpy(), FAR), 0
        )

    def describe(images: np.ndarray) -> list[str]:
        """How many images are accepted as the person, and their median distance, by each evaluator."""
        cells = []
        for name, judge in judges.items():
            distances = np.linalg.norm(judge.measure(images)["embedding"] - originals[name], axis=1)
            accepted = int((distances < thresholds[name].distance).sum())
            cells.append(f"{accepted} of {len(faces)} ({np.nanmedian(distances):.2f})")
        return cells

    rows = []
    for method, variant in METHODS.items():
        cls = discovery.load("methods", method)
        resources = method_files.find_resources(ROOT, parameters, method, variant, print)
        block = parameters.methods[method].variants[variant]
        program = cls(parameters.training_params(method, variant), block, resources)
        right = anonymization.experiment_keys(program.capabilities.keys, 0)(faces)
        wrong = anonymization.experiment_keys(program.capabilities.keys, 0, "wrong")(faces)
        anonymized = program.anonymize(faces, 0, right)
        rungs = {
            "anonymized": anonymized,
            **ladder.climb(program, faces, 0),
            "wrong": program.recover(anonymized, wrong),
        }
        rows += [[f"{cls.title} ({method}/{variant})", rung, *describe(images)] for rung, images in rungs.items()]
    write(
        "recovery",
        "# Where a recovered person is lost",
        f"{len(faces)} validation people of `{parameters.matrix.train_on}` at scale `{options.scale}`. Each place "
        "says how many faces are "
        f"accepted as the person at a false-accept rate of {FAR:.0%} on other validation people, and the median "
        "distance. `anonymized`: before any recovery; `saved`: from the representation that the image was "
        f"drawn of; `noised`: with {ladder.NOISE:.0%} of noise in it; `exact`: from the image before it was rounded; "
        f"`png`: from its 8 bits; `jpeg`: of quality {ladder.QUALITY}; `resized`: reduced to half and enlarged again; "
        "`wrong`: as `exact`, with a wrong key.",
        table(["method", "from", *JUDGES], rows),
        " ".join(f"{name}: {threshold.describe()}." for name, threshold in thresholds.items()),
    )


if __name__ == "__main__":
    main()
