"""The lineage of a number in a working copy."""

from masquerade.lineage import chain
from masquerade.lineage.address import ResolvedAddress, resolve
from masquerade.lineage.history import History
from repository import Repository


def follow(repository: Repository, address: str) -> tuple[ResolvedAddress, list[chain.Link]]:
    """What the address names, and the links behind it down to raw data."""
    history = History(repository.path)
    resolved = resolve(address, "tiny", history.outputs(), history.read)
    return resolved, chain.follow(history, "tiny", resolved)
