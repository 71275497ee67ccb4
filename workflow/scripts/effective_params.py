"""Write the parameters that take effect. Stop a DVC experiment that changes a knob which the overlay hides."""

import os
import subprocess
import sys
from pathlib import Path

from masquerade.core.errors import MasqueradeError
from masquerade.lineage import versioning
from masquerade.params import blocks, loading, overlays, yaml_files
from masquerade.pipeline import stage

BASELINE = "DVC_EXP_BASELINE_REV"  # `dvc exp run` sets it: the commit from which the experiment starts


def main() -> None:
    stage.start_server()  # other stages will need it, and it takes some seconds
    parameters = versioning.write_parameters()
    if BASELINE in os.environ:
        command = ["git", "show", f"{os.environ[BASELINE]}:./{blocks.PARAMS}"]
        before = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        trees = yaml_files.parse(before, blocks.PARAMS), yaml_files.read(Path(blocks.PARAMS))
        for file, layer in reversed(loading.layers_of(parameters.scale).items()):
            overlays.check(*trees, layer, file)


if __name__ == "__main__":
    try:
        main()
    except MasqueradeError as error:
        sys.exit(str(error))
