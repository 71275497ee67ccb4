"""The record of how each artifact was made: runs (MLflow), files (DVC), circumstances of jobs, chains to raw data.

No code here computes a result: steps are in `pipeline`, and the hashes of code and files are in `core.fingerprints`.
docs/sharing.md lists what is recorded and where.
"""
