"""Where each file of a scale lies, relative to the root of the repository. No other module builds these paths."""

import re
from functools import cache
from pathlib import PurePath, PurePosixPath

CELL = "{dataset}/{method}/{variant}/{seed}"
"""The path of a cell below every folder that has one file for each cell."""
LOGS = "logs"
SCORES = "scores.json"
CODE = ".masquerade/code"
"""The folder with the fingerprints of the code of each step."""
DATA, CHECKPOINTS, RESULTS = "data/", "checkpoints/", "results/"
BUILT = (DATA, CHECKPOINTS, RESULTS)
"""The folders that a build fills."""


class Paths:
    """The files of one scale. Names in braces, such as ``{dataset}``, are the wildcards of the rules."""

    def __init__(self, scale: str):
        data, checkpoints, results = (f"{folder}{scale}" for folder in BUILT)
        self.data, self.checkpoints, self.results, self.logs = data, checkpoints, results, f"{LOGS}/{scale}"
        self.submissions = f"{self.logs}/submitit"
        self.states = f".masquerade/state/{scale}"
        # faces and what is computed of them
        self.faces = f"{data}/faces/{{dataset}}.zip"
        self.fakes = f"{data}/fakes.safetensors"
        self.distractors = f"{data}/distractors.safetensors"
        self.latents = f"{data}/latents/{{dataset}}.safetensors"
        self.imported = f"imported/{scale}/{{dataset}}/{{variant}}.zip"
        self.anonymized = f"{data}/anonymized/{CELL}.zip"
        self.anonymized_train = f"{data}/anonymized_train/{CELL}.zip"
        self.attackers_faces = f"{data}/attackers/{{key_kind}}/{CELL}.zip"
        self.recoveries = f"{data}/recoveries/{CELL}.zip"
        self.features = f"{data}/features/{CELL}.parquet"
        self.pseudo_labels = f"{data}/attributes/pseudo_labels.parquet"
        self.attributes = f"{data}/attributes/{CELL}.parquet"
        # measurements
        self.source_measurements = f"{data}/measurements/{{dataset}}/source.parquet"
        self.target_measurements = f"{data}/measurements/{{dataset}}/target.parquet"
        self.measurements = f"{data}/measurements/{CELL}.parquet"
        self.recovery_measurements = f"{data}/measurements_of_recoveries/{CELL}.parquet"
        self.attack_results = f"{data}/attack_results/{CELL}.parquet"
        self.downstream_utility = f"{data}/downstream_utility/{CELL}.parquet"
        # checkpoints
        self.backbone = f"{checkpoints}/backbones/{{backbone}}.safetensors"
        self.backbone_quality = f"{checkpoints}/backbones/{{backbone}}.json"
        self.method = f"{checkpoints}/methods/{{method}}/{{seed}}.safetensors"
        self.ablation = f"{checkpoints}/ablations/{{method}}/{{variant}}/{{seed}}.safetensors"
        self.attacker = f"{checkpoints}/attackers/{{attacker}}/{CELL}/{{trial}}.safetensors"
        self.attacker_quality = f"{checkpoints}/attackers/{{attacker}}/{CELL}/{{trial}}.json"
        # results
        self.metrics_folder = f"{results}/metrics"
        self.metrics = f"{self.metrics_folder}/{CELL}.json"
        self.key_attacks = f"{results}/attacks/{CELL}.json"
        self.pseudo_label_quality = f"{results}/attributes/pseudo_labels.json"
        self.scores = f"{results}/{SCORES}"
        self.tables, self.figures = f"{results}/tables", f"{results}/figures"
        self.table = f"{self.tables}/{{paper}}/{{item}}"
        self.figure = f"{self.figures}/{{paper}}/{{item}}"
        self.leaderboard = f"{results}/leaderboard"
        self.score = f"{results}/scores/{{variant}}"
        self.backbones_table = f"{self.tables}/backbones.md"
        self.claims_table = f"{self.tables}/claims"
        self.report = f"{results}/report/index.html"

    @staticmethod
    def parse(kind: str, path: PurePath) -> dict[str, str]:
        """The ``scale`` and the wildcards of a path of this kind, such as ``metrics``: an attribute of this class.

        The path may begin with the root of the repository. Raises ValueError for a path of another kind.
        """
        match = _compile_pattern(kind).fullmatch(path.as_posix())
        if match is None:
            raise ValueError(f"{path} is no path of the kind '{kind}'")
        return match.groupdict()


@cache
def _compile_pattern(kind: str) -> re.Pattern[str]:
    """What matches the paths of a kind, with one group for each wildcard."""
    pattern = getattr(Paths("{scale}"), kind)
    return re.compile("(?:.*/)?" + re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(pattern)))


def index(archive: str) -> str:
    """The index that lies beside an archive of faces."""
    return PurePosixPath(archive).with_suffix(".parquet").as_posix()


def with_index(archive: str) -> list[str]:
    """An archive of faces and its index."""
    return [archive, index(archive)]
