"""Update the fingerprints of all code. Parsing the Snakefile writes those that changed."""

from masquerade.lineage import versioning

if __name__ == "__main__":
    versioning.graph(force_all=True)
