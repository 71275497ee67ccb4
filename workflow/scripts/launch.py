"""Run a program of workflow/scripts/ here or on a cluster: ``launch.py LAUNCHER SUBMISSION SCRIPT ARGUMENTS``."""

import json
import sys

from masquerade.pipeline import launch

if __name__ == "__main__":
    launcher, request, script, *arguments = sys.argv[1:]
    submission = json.loads(request)
    try:
        if launcher == "slurm" and submission.get("together", 1) > 1:
            from masquerade.pipeline import shared_submission

            shared_submission.run(submission, script, arguments)
        else:
            launch.run(launcher, submission, script, arguments)
    except launch.LaunchError as error:
        sys.exit(str(error))
