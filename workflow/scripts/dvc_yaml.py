"""Write dvc.yaml from the Snakemake graph."""

from masquerade.lineage import versioning

if __name__ == "__main__":
    versioning.DVC_YAML.write_text(versioning.document(versioning.graph(force_all=True)[0]), encoding="utf-8")
