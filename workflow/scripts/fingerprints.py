"""Bring the fingerprints of all code up to date: parsing the Snakefile writes those that changed."""

from masquerade import versioning

if __name__ == "__main__":
    versioning.graph(force_all=True)
