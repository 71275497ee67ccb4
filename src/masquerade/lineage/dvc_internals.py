"""What Masquerade changes inside DVC, in one place.

``tests/unit/test_dvc_internals.py`` fails when an installed DVC differs from VERSION in these parts.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace

from masquerade.params import overlays

VERSION = "3.67.1"
"""The version of DVC for which this module is written."""


@contextmanager
def fast_parameters() -> Iterator[None]:
    """Within the block, DVC reads each parameter file once and looks its keys up directly.

    Otherwise DVC parses both parameter files four times for each stage and walks through the whole tree for each key,
    which takes longer than everything else.
    """
    import dpath
    from dvc.dependency import param
    from dvc.utils import serialize

    def get(tree: dict, key: str, separator: str) -> object:
        value = overlays.at(tree, key)
        return dpath.get(tree, key, separator=separator) if value is overlays.MISSING else value

    serialize.LOADERS[".yaml"] = cache(serialize.load_yaml)
    param.dpath = SimpleNamespace(get=get)
    try:
        yield
    finally:
        param.dpath = dpath
        del serialize.LOADERS[".yaml"]
