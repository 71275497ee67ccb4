"""Loads a method and its networks for photographs."""

from collections.abc import Sequence
from pathlib import Path

from masquerade.core import discovery, files
from masquerade.core.errors import ParameterError, suggest_nearest
from masquerade.params import repository
from masquerade.pipeline import photograph_scale
from masquerade.pipeline.method_files import Say
from masquerade.pipeline.photographs import calls, choosing
from masquerade.pipeline.photographs.anonymizer import Anonymizer


@calls.call()
def load(
    method: str, variant: str | None = None, *, scale: str | None = None, checkpoint: Path | str | None = None,
    hide: Sequence[str] | None = None, keep: Sequence[str] | None = None, seed: int | None = None,
    root: Path | str | None = None, say: Say = choosing.logger.warning,
) -> Anonymizer:  # fmt: skip
    """Load a method and its networks once, for any number of photographs.

    ``method``, ``variant``: their names in params.yaml; by default the first variant. ``scale``: whose networks; by
    default ``photo`` if they are there, else that of params.yaml. ``checkpoint``: a file of the method's own network,
    in place of that of the scale. ``hide``, ``keep``: keywords, for a method that selects attributes. ``seed``: makes
    results predictable, for experiments alone. ``root``: the clone; by default the current folder. ``say`` gets the
    sentences that a person should read before the results, such as terms of use; by default they are logged.

    Raises ParameterError for an unknown name or option, CheckpointError for a missing or unfitting network, and
    MissingPackage.
    """
    if not isinstance(seed, int | None):
        raise ParameterError(f"seed is {seed!r}; it must be a whole number, or None.")
    root = files.expand_home(str(root)) if root else None
    folder, method = (
        repository.find_repository(root).absolute(),
        str(method),
    )  # it stays when the program changes its folder
    if method not in (known := discovery.names("methods")):
        raise ParameterError(f"There is no '{method}' in methods/. {suggest_nearest(method, known)}")
    parameters, sentence = photograph_scale.chosen(folder, method, variant, scale)
    say(sentence)
    chosen, maker = choosing.method(
        folder,
        parameters,
        method,
        variant,
        seed is None,
        hide,
        keep,
        say,
        files.expand_home(str(checkpoint)).absolute() if checkpoint else None,
    )
    loaded = Anonymizer(folder, parameters, chosen, maker, seed)
    if loaded.caution:
        say(f"Scale {parameters.scale}: {loaded.caution}")
    return loaded
