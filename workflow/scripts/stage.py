"""Make the files of one job with Snakemake: ``stage.py RULE OUTPUT ...``. DVC calls this for a stage."""

import sys

from masquerade.pipeline import stage

if __name__ == "__main__":
    stage.run(sys.argv[1], sys.argv[2:])
