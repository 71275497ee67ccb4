"""The build of a commit: params.yaml and the records, read through git. Nothing is checked out."""

from pathlib import Path

from masquerade.core import fingerprints
from masquerade.lineage import records
from masquerade.lineage.history import History, LineageError, parse_history
from masquerade.params import blocks, yaml_files


def read_revision(name: str, root: Path = Path()) -> History:
    """The history of the commit, branch or tag ``name``.

    Raises LineageError if there is no such revision, or no records in it.
    """
    if reason := explain_refusal(root):
        raise LineageError(reason)
    if not (root / ".git").exists():
        raise LineageError(
            f"{root.resolve()} has no .git, so it has no revisions; those of a repository around it are of other "
            "files. Compare revisions in a clone of Masquerade."
        )
    commit = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    if commit is None:
        raise LineageError(f"git has no revision '{name}'. Give a commit, a branch, a tag, HEAD~1, ...")
    commit = commit.strip()
    parameters = yaml_files.parse_yaml(_text(root, commit, blocks.PARAMS) or "{}", f"{blocks.PARAMS} of {name}")
    scale = parameters.get("scale", "")
    path = records.text_path(scale).as_posix()
    text = _text(root, commit, path)
    if text is None:
        raise LineageError(
            f"{path} is not in {commit[:12]}: no build was committed. Check that commit out, build it with "
            f"`snakemake all`, run `git add dvc.lock {records.FOLDER}` and commit (see docs/lineage.md)."
        )
    return parse_history(text, scale, commit, root)


def explain_refusal(root: Path) -> str:
    """Why git does not read the repository at ``root``, with the remedy that git names; '' if it does, or without one.

    git refuses a repository of another user, as in a container, with sudo, or on a share.
    """
    if not (root / ".git").exists():
        return ""
    done = fingerprints.run_git(root, "rev-parse", "--git-dir")
    if not done.returncode:
        return ""
    said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
    command = next((f" Run `{line.strip()}`." for line in said if line.strip().startswith("git config")), "")
    return f"git does not read this repository ({said[0]}).{command}"


def _text(root: Path, commit: str, path: str) -> str | None:
    """The text of a file of a commit, None if the commit does not have it."""
    return _git(root, "cat-file", "blob", f"{commit}:./{path}")


def _git(root: Path, *arguments: str) -> str | None:
    """What git prints, None if it fails."""
    try:
        done = fingerprints.run_git(root, *arguments)
    except OSError as error:
        raise LineageError(f"git does not run ({error}), and revisions are read with it. Install git.") from error
    return None if done.returncode else done.stdout
