"""What Masquerade uses of DVC beyond its public interface, in one place.

``tests/unit/test_dvc_internals.py`` fails when an installed DVC differs from VERSION in these parts.
"""

from itertools import groupby

VERSION = "3.67.1"
"""The version of DVC for which this module is written."""


def commit_changed() -> list[str]:
    """`dvc commit --force --no-relink` of the stages that changed; returns their names. Raises DvcException.

    The public function commits every stage. DVC reads Git's index once for each output, to refuse outputs that Git
    tracks and to list the others in .gitignore; here Git is left out, because .gitignore names their folders.
    """
    from dvc.repo import Repo, lock_repo

    committed = []
    with Repo(config={"core": {"no_scm": True}}) as repo, lock_repo(repo):
        for file, stages in groupby(repo.index.stages, key=lambda stage: stage.dvcfile):
            changed = [stage for stage in stages if stage.changed()]
            for stage in changed:
                stage.save()
                stage.commit(relink=False)
            if changed:
                file.dump_stages(changed, update_pipeline=False)
            committed += [stage.addressing for stage in changed]
    return committed
