"""Run a program of workflow/scripts/ here or on a cluster: ``launch.py LAUNCHER SUBMISSION SCRIPT ARGUMENTS``."""

import json
import sys

from masquerade.pipeline import launch

if __name__ == "__main__":
    launcher, submission, script, *arguments = sys.argv[1:]
    try:
        launch.run(launcher, json.loads(submission), script, arguments)
    except launch.LaunchError as error:
        sys.exit(str(error))
