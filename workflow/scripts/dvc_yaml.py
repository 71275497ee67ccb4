"""Write every dvc.yaml from the Snakemake graph."""

from masquerade.lineage import stage_files, versioning

if __name__ == "__main__":
    stage_files.write(versioning.documents(versioning.graph(force_all=True)[0]))
