"""A repository with the records of four jobs, for tests of lineage."""

import copy
import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import yaml

from masquerade.core import fingerprints
from masquerade.lineage import local_records, provenance
from masquerade.lineage.snakemake_internals import record_path
from masquerade.params import loading

ROOT = Path(__file__).parents[1]
TABLE = "results/tiny/tables/toy/table1.csv"
FACES, CHECKPOINT, METRICS = "data/tiny/faces/folder.zip", "checkpoints/tiny/methods/fit/0.safetensors", (
    "results/tiny/metrics/folder/fit/default/0.json"
)  # fmt: skip
PRINTED = "reference/toy/table1.yaml"
MACHINE = {"system": "Linux x", "processor": "toy", "cores": 2, "gpu": "", "kernels": ""}
CSV = (
    "row,method,variant,dataset,group,column,metric,part,judge,printed,measured,over,of,reason\n"
    "Ours,fit,default,folder,Re-ID,CASIA(%),re_identification_rate,,recognizer_a,1.5,0.25,4,4,\n"
    "Ours,fit,default,folder,,PSNR,psnr,,,,31.5,4,4,\n"
    "Noise,gaussian_noise,sigma_9,folder,,PSNR,psnr,,,,,0,0,not in the matrix\n"
)


class Toy:
    """A repository with the records of four jobs: photographs -> faces -> checkpoint -> metrics -> table."""

    def __init__(self, root: Path):
        self.root = root
        for name in ("params.yaml", "scales/tiny.yaml", "CITATION.cff", "requirements.lock"):
            self.write(name, (ROOT / name).read_text())
        self.edit("params.yaml", lambda tree: tree.update(scale="tiny"))
        self.parameters = loading.load(root)
        for number in range(6):
            self.write(f"photographs/{number}.png", f"portrait {number}")
        for step in ("data", "train", "metrics", "table"):
            self.write(f"src/{step}.py", f"STEP = {step!r}\n")
            self.plan(step)
        self.write(PRINTED, "title: Table 1\n")
        photographs = [f"photographs/{number}.png" for number in range(6)]
        self.job("faces", "data", [FACES], photographs, ("data_seed",), "faces of six people", "--dataset folder")
        self.job("method", "train", [CHECKPOINT], [FACES], ("methods.fit.params",), "weights", "--method fit --seed 0")
        self.job("metrics", "metrics", [METRICS], [FACES, CHECKPOINT], ("matrix.calibrate_on",), "{}")
        self.job("table", "table", [TABLE, TABLE.replace(".csv", ".md")], [METRICS, PRINTED], ("scale", "seeds"), CSV)
        self.write("Snakefile", "rule all:\n")
        self.record()

    def plan(self, step: str) -> None:
        """Writes the fingerprints of the code of a step, as planning does."""
        source = f"src/{step}.py"
        known = {source: fingerprints.fingerprint_source((self.root / source).read_text())}
        self.write(f".masquerade/code/{step}.json", json.dumps(known, indent=0))

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, name: str, change) -> None:
        tree = yaml.load((self.root / name).read_text(), Loader=yaml.CSafeLoader)
        change(tree)
        self.write(name, yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False))

    def job(self, rule, step, outputs, inputs, keys, content, words="") -> None:
        """Writes the outputs of a job and all records that a real job writes."""
        for output in outputs:
            self.write(output, content)
        template, code = f"python {rule}", f".masquerade/code/{step}.json"
        known = self.parameters.slice(keys)
        record = {
            "rule": rule, "input": [code, *inputs], "shellcmd": f"{template} {words} --outputs {' '.join(outputs)}",
            "params": [repr(f"logs/{rule}"), repr(json.dumps(known))], "code": template, "conda_env": "",
            "starttime": 1.0, "endtime": 2.5,
            "input_checksums": {path: f"sha256:{self.hash(path, 'sha256')}" for path in [code, *inputs]},
        }  # fmt: skip
        for output in outputs:
            self.write(record_path(output), json.dumps(record))
        circumstances = {
            "outputs": {path: self.hash(path) for path in outputs}, "commit": "c0ffee",
            "machine": MACHINE, "run": f"run of {rule}",
            "environment": {"sha256": "e" * 64, "python": "3.11.7", "packages": {"torch": "2.13.0"}},
            "started": "2026-11-21T20:00:00+00:00", "seconds": 1.5, "threads": 1,
        }  # fmt: skip
        self.write(provenance.circumstances_path(outputs[0]).as_posix(), json.dumps(circumstances))

    def record(self) -> None:
        """The text of the records, as `snakemake all` leaves it."""
        local_records.write_records("tiny", self.root)

    def hash(self, path: str, kind: str = "md5") -> str:
        return hashlib.new(kind, (self.root / path).read_bytes()).hexdigest()

    def copy(self, root: Path) -> "Toy":
        shutil.copytree(self.root, root)
        twin = copy.copy(self)
        twin.root = root
        return twin

    def git(self, *arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
            cwd=self.root, check=True, capture_output=True,
        )  # fmt: skip

    def commit(self) -> None:
        if not (self.root / ".git").is_dir():
            self.git("init", "--quiet")
            self.write(".gitignore", "data\ncheckpoints\nresults\n.snakemake\n.masquerade\n")
        self.record()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "built")
