"""Where a recovered person is lost: the error ladder of each method with keys at the scale photo. Writes recovery.md.

It needs the build of the scale (`make photo`, `snakemake --config scale=photo ...`). The faces are those of validation
people.
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
    from masquerade.pipeline import ladder, method_files

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", type=int, default=24)
    parser.add_argument("--scale", default="photo")
    given = parser.parse_args()
    parameters = loading.load(ROOT, given.scale)
    archive = FaceArchive(ROOT / Paths(given.scale).faces.format(dataset=parameters.matrix.train_on))
    every = archive.select("validation").drop_duplicates("identity")
    faces = archive.load(rows=every.head(given.faces))
    judges = {name: discovery.load("judges", name)(parameters.judges[name], {}) for name in JUDGES}
    strangers = archive.load(rows=every).images
    limits = {}
    for name, judge in judges.items():
        embeddings = judge.measure(strangers)["embedding"]
        limits[name] = estimate_threshold(FAR, pair_strangers(embeddings, np.array(every["identity"]), FAR), 0).distance
    known = {name: judge.measure(faces.images)["embedding"] for name, judge in judges.items()}
    rows = []
    for method, variant in METHODS.items():
        cls = discovery.load("methods", method)
        resources = method_files.find_resources(ROOT, parameters, method, variant, print)
        block = parameters.methods[method].variants[variant]
        built = cls(parameters.training_params(method, variant), block, resources)
        for rung, images in ladder.climb(built, faces, seed=0).items():
            line = [f"{cls.title} ({method}/{variant})", rung]
            for name, judge in judges.items():
                apart = np.linalg.norm(judge.measure(images)["embedding"] - known[name], axis=1)
                line.append(f"{int((apart < limits[name]).sum())} of {len(faces.ids)} ({np.nanmedian(apart):.2f})")
            rows.append(line)
    write(
        "recovery",
        "# Where a recovered person is lost",
        f"The first {len(faces.ids)} validation people of `{parameters.matrix.train_on}` at scale `{given.scale}`, "
        "with the right keys. Each place: how many faces are accepted as the person at a false-accept rate of "
        f"{FAR:.0%} on other people (and the median distance). `saved`: from the representation that the image was "
        f"drawn of; `noised`: with {ladder.NOISE:.0%} of noise in it; `exact`: from the image before it was rounded; "
        f"`png`: from its 8 bits; `jpeg`: of quality {ladder.QUALITY}; `resized`: reduced to half and enlarged again.",
        table(["method", "rung", *JUDGES], rows),
    )


if __name__ == "__main__":
    main()
