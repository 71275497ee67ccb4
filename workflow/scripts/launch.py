"""Run a program of workflow/scripts/ here or on a cluster: ``launch.py LAUNCHER SUBMISSION LOGS SCRIPT ARGUMENTS``."""

import json
import sys
from pathlib import Path

from masquerade import launch

if __name__ == "__main__":
    launcher, submission, logs, script, *arguments = sys.argv[1:]
    try:
        launch.run(launcher, json.loads(submission), Path(logs), script, arguments)
    except launch.LaunchError as error:
        sys.exit(str(error))
