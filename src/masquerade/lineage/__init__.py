"""Where a number comes from: the code, parameters, data, environment and machine behind every artifact.

Jobs import `fingerprints` (which code) and `provenance` (in which circumstances) alone, and both are cheap. The other
rooms read what jobs left behind: `history` the records, `address` what a person names, `chain` the way from a cell to
its raw data; `verify` recomputes every hash, `difference` compares two commits, `drawing` draws a chain, `crate`
exports a run. docs/lineage.md says what is recorded where.
"""

from masquerade.lineage.fingerprints import (
    SOURCE,
    closure,
    commit,
    fingerprint,
    fingerprint_of,
    md5,
    write_fingerprints,
)

__all__ = ["SOURCE", "closure", "commit", "fingerprint", "fingerprint_of", "md5", "write_fingerprints"]
