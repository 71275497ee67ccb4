"""Write the parameters that take effect. Stop a DVC experiment that changes a knob which the overlay hides."""

import os
import subprocess
import sys
from pathlib import Path

from masquerade.core.errors import MasqueradeError
from masquerade.lineage import versioning
from masquerade.params import blocks, overlays, yaml_files

BASELINE = "DVC_EXP_BASELINE_REV"  # `dvc exp run` sets it: the commit from which the experiment starts


def main() -> None:
    parameters = versioning.write_parameters()
    if BASELINE in os.environ:
        overlay = f"{blocks.SCALES}/{parameters.scale}.yaml"
        command = ["git", "show", f"{os.environ[BASELINE]}:./{blocks.PARAMS}"]
        before = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        overlays.check(
            yaml_files.parse(before, blocks.PARAMS),
            yaml_files.read(Path(blocks.PARAMS)),
            yaml_files.read(Path(overlay)),
            overlay,
        )


if __name__ == "__main__":
    try:
        main()
    except MasqueradeError as error:
        sys.exit(str(error))
