"""Lists the files that `rule all` builds."""

from collections.abc import Callable
from typing import Any

from masquerade.params.paths import with_index
from masquerade.pipeline.graph import Graph


class Targets:
    """The target files of a graph: one method for each kind. Every kept file is the target of one kind."""

    def __init__(self, graph: Graph):
        self._graph, self._paths = graph, graph.paths

    def of(self, kind: str) -> Callable[[Any], list[str]]:
        """Input function: the files of a kind. They are listed when a rule needs them, not in every job."""
        return lambda wildcards: getattr(self, kind)()

    def data(self) -> list[str]:
        """The faces of every dataset."""
        return _with_indexes(self._graph.of_datasets(self._graph.datasets, self._paths.faces))

    def backbones(self) -> list[str]:
        """Every backbone, its quality, and their table."""
        patterns = self._paths.backbone, self._paths.backbone_quality
        files = [pattern.format(backbone=name) for name in self._graph.parameters.backbones for pattern in patterns]
        return files + self._graph.results(self._paths.backbones_table)

    def latents(self) -> list[str]:
        """The set of fakes, and the codes of each dataset that a method anonymizes in latent space."""
        able = {cell.method: self._graph.methods.capabilities(cell.method) for cell in self._graph.built}
        fakes = [self._paths.fakes] if any(capabilities.fakes for capabilities in able.values()) else []
        datasets = {cell.dataset for cell in self._graph.built if self._graph.parameters.takes_codes(cell.method)}
        return fakes + self._graph.of_datasets(sorted(datasets), self._paths.latents)

    def train(self) -> list[str]:
        """The checkpoints of the methods and their ablations."""
        trained = [cell for cell in self._graph.built if self._graph.parameters.trains(cell.method)]
        return sorted({str(self._graph.methods.checkpoint(cell)).format(**vars(cell)) for cell in trained})

    def anonymize(self) -> list[str]:
        """The anonymized test faces of every cell, and the train faces that the attribute protocol needs."""
        train = [cell for cell in self._graph.attributed if self._graph.has_train_split(cell.dataset)]
        test = self._graph.of(self._graph.cells, self._paths.anonymized)
        return _with_indexes(test + self._graph.of(train, self._paths.anonymized_train))

    def measure(self) -> list[str]:
        """The measurements of every dataset and every cell."""
        sources = self._graph.of_datasets(self._graph.datasets, self._paths.measured_source)
        return sources + self._graph.of(self._graph.cells, self._paths.measured)

    def attributes(self) -> list[str]:
        """What the attribute protocol gives."""
        labels = [self._paths.pseudo_labels, self._paths.pseudo_label_quality]
        return labels + self._graph.of(self._graph.attributed, self._paths.attributes)

    def recovery(self) -> list[str]:
        """Attempts to recover faces, their measurements, and attacks on keys."""
        attempted, attacked = self._graph.attempted, self._graph.key_attacked
        return (
            _with_indexes(self._graph.of(attempted, self._paths.recoveries))
            + self._graph.of(attempted, self._paths.measured_recoveries)
            + self._graph.of(attacked, self._paths.key_attacks)
        )

    def attackers(self) -> list[str]:
        """The pictures, trainings and results of attackers who know the method, and the downstream utility."""
        inputs, paths = self._graph.attackers, self._paths
        results = [
            file
            for pattern in (paths.attack_results, paths.downstream_utility)
            for file in self._graph.of(inputs.cells, pattern)
        ]
        return _with_indexes(inputs.archives()) + inputs.trainings() + results

    def features(self) -> list[str]:
        """The features that figures of clusters show."""
        return self._graph.papers.files(self._paths.features, self._graph.papers.clustered)

    def metrics(self) -> list[str]:
        """The metrics of every cell, and the file with all their means."""
        return self._graph.of(self._graph.cells, self._paths.metrics) + self._graph.results(self._paths.scores)

    def tables(self) -> list[str]:
        """Every table and figure, and the page of claims."""
        papers = self._graph.papers
        files = [path for item in papers.items.values() for path in papers.outputs(item)]
        claims = [f"{self._paths.claims_table}.{ending}" for ending in ("csv", "md", "tex")]
        return self._graph.results(*files, *claims)

    def report(self) -> list[str]:
        """The report page."""
        return self._graph.results(self._paths.report)


def _with_indexes(archives: list[str]) -> list[str]:
    return [path for archive in archives for path in with_index(archive)]
