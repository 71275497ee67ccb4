"""What Masquerade uses of DVC beyond its public interface, in one place.

``tests/unit/test_dvc_internals.py`` fails when an installed DVC differs from VERSION in these parts.
"""

import subprocess
from itertools import groupby
from pathlib import Path

VERSION = "3.67.1"
"""The version of DVC for which this module is written."""


def commit_changed() -> list[str]:
    """`dvc commit --force --no-relink` of the stages that changed; returns their names. Raises DvcException.

    The public function commits every stage, and reads Git's index for every output: to refuse those that Git tracks,
    and to list the others in .gitignore. Here it is read once; .gitignore names the folders of the outputs.
    """
    from dvc.output import OutputAlreadyTrackedError
    from dvc.repo import Repo, lock_repo

    committed, tracked = [], _tracked()
    with Repo(config={"core": {"no_scm": True}}) as repo, lock_repo(repo):
        for file, stages in groupby(repo.index.stages, key=lambda stage: stage.dvcfile):
            changed = [stage for stage in stages if stage.changed()]
            for stage in changed:
                for output in stage.outs:
                    if Path(output.fs_path).relative_to(repo.root_dir).as_posix() in tracked:
                        raise OutputAlreadyTrackedError(output)
                stage.save()
                stage.commit(relink=False)
            if changed:
                file.dump_stages(changed, update_pipeline=False)
            committed += [stage.addressing for stage in changed]
    return committed


def _tracked() -> set[str]:
    """The files that Git tracks in the working directory, the root of the repository."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    return set(listed.split("\0"))
