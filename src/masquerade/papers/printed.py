"""Numbers as a paper prints them: the text, digit by digit, and its value."""

import re
from typing import Annotated, Any

from pydantic import BeforeValidator

from masquerade.core.settings import Settings


class Printed(Settings):
    """A number as the paper prints it: the ``text`` and its ``value``. A percent sign divides the value by 100."""

    text: str
    value: float
    spread: float | None = None
    """The number behind the ± sign."""

    def scale(self, factor: float) -> "Printed":
        """The same text with its value and spread in another unit."""
        spread = None if self.spread is None else self.spread * factor
        return self.model_copy(update={"value": self.value * factor, "spread": spread})


def _parse_printed(text: Any) -> Any:
    """'0.965 ± 0.016', '1.0280', '3.2e-4', '97.367%' or 'null' (the paper gives none) -> Printed or None."""
    if not isinstance(text, str) or text == "null":
        return None if text == "null" else text
    number = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
    if not (match := re.fullmatch(rf"({number})(?: ± ({number}))?(%?)", text)):
        raise ValueError(f"'{text}' is not a printed number such as 1.0280, 0.965 ± 0.016, 97.367%, or null for none")
    unit = 0.01 if match[3] else 1.0
    return {"text": text, "value": float(match[1]) * unit, "spread": match[2] and float(match[2]) * unit}


PrintedNumber = Annotated[Printed | None, BeforeValidator(_parse_printed)]
KnownNumber = Annotated[Printed, BeforeValidator(_parse_printed)]
"""A number that the paper gives: null is refused."""
