"""The spread between trainings: one method, trained with several seeds, on the same validation people. Writes seeds.md.

It needs the checkpoints of the seeds, for example those of the stand-in of IdentityDP (13 minutes of a core each):
`snakemake --config scale=photo_evening -- checkpoints/photo_evening/methods/identitydp/{0,1,2}.safetensors`.
"""

import argparse

from pages import ROOT, table, write
from validation import FAR, JUDGES, Validation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="photo_evening")
    parser.add_argument("--method", default="identitydp")
    parser.add_argument("--variants", nargs="+", default=["eps_6", "eps_100"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--faces", type=int, default=24)
    options = parser.parse_args()
    people = Validation(options.scale, options.faces)
    rows = []
    for variant in options.variants:
        for seed in options.seeds:
            checkpoint = ROOT / people.paths.method.format(method=options.method, seed=seed)
            method = people.load(options.method, variant, checkpoint)
            rows.append([f"{options.method}/{variant}", seed, *people.describe(method.anonymize(people.faces, 0))])
    write(
        "seeds",
        "# The spread between trainings",
        f"{len(people.faces)} validation people of `{people.dataset}` at scale `{people.scale}`, anonymized with seed "
        "0 by networks that were trained with several seeds. Each place says how many faces are accepted as the person "
        f"at a false-accept rate of {FAR:.0%} on other validation people, and the median distance.",
        table(["cell", "seed of the training", *JUDGES], rows),
        people.describe_thresholds(),
    )


if __name__ == "__main__":
    main()
