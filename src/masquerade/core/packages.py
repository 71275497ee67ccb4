"""Names a package that is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from masquerade.core.errors import MissingPackage


@contextmanager
def naming_missing_packages() -> Iterator[None]:
    """Raises MissingPackage in place of an ImportError for a package from outside. It is a decorator, too."""
    try:
        yield
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        if name in ("", __name__.partition(".")[0]):
            raise  # a mistake in this program
        raise MissingPackage(
            f"The package {name} is missing or does not load ({error}). Install the packages of Masquerade: `make "
            "environment` in a clone; elsewhere `pip install` with the wheel, and for builds with '<wheel>[pipeline]'. "
            "`masquerade doctor` lists what is missing."
        ) from error
