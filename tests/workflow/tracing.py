"""The lineage of a number in a working copy."""

from masquerade.lineage import chain
from masquerade.lineage.address import ResolvedAddress, resolve
from masquerade.lineage.history import read_working_copy
from repository import Repository


def follow(repository: Repository, address: str) -> tuple[ResolvedAddress, list[chain.Link]]:
    """What the address names, and the links behind it down to raw data."""
    history = read_working_copy(repository.path)
    resolved = resolve(address, history)
    return resolved, chain.follow(history, resolved)
