"""Where a recovered person is lost: the error ladder of three methods with keys at the scale photo. Writes recovery.md.

It needs the build of the scale (`make photo`, `snakemake --config scale=photo ...`). The faces are those of validation
people; the thresholds come from the other validation people.
"""

import argparse

from pages import table, write
from validation import FAR, JUDGES, Validation

from masquerade.pipeline import anonymization, ladder

METHODS = {"riddle": "default", "ifadit": "full", "cao21": "d_9"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", type=int, default=24)
    parser.add_argument("--scale", default="photo")
    options = parser.parse_args()
    people = Validation(options.scale, options.faces)
    faces, rows = people.faces, []
    for name, variant in METHODS.items():
        method = people.load(name, variant)
        keys = method.capabilities.keys
        assert keys is not None
        right = anonymization.experiment_keys(keys, 0)(faces)
        wrong = anonymization.experiment_keys(keys, 0, "wrong")(faces)
        anonymized = method.anonymize(faces, 0, right)
        rungs = {
            "anonymized": anonymized,
            **ladder.climb(method, faces, 0),
            "wrong": method.recover(anonymized, wrong),
        }
        title = f"{method.title} ({name}/{variant})"
        rows += [[title, rung, *people.describe(images)] for rung, images in rungs.items()]
    write(
        "recovery",
        "# Where a recovered person is lost",
        f"{len(faces)} validation people of `{people.dataset}` at scale `{people.scale}`. Each place says how many "
        f"faces are accepted as the person at a false-accept rate of {FAR:.0%} on other validation people, and the "
        "median distance. `anonymized`: before any recovery; `saved`: from the representation that the image was "
        f"drawn of; `noised`: with {ladder.NOISE:.0%} of noise in it; `exact`: from the image before it was rounded; "
        f"`png`: from its 8 bits; `jpeg`: of quality {ladder.QUALITY}; `resized`: reduced to half and enlarged again; "
        "`wrong`: as `exact`, with a wrong key.",
        table(["method", "from", *JUDGES], rows),
        people.describe_thresholds(),
    )


if __name__ == "__main__":
    main()
