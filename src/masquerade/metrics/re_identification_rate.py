"""Share of anonymized faces that a recognizer takes for the person of their original."""

import operator
from typing import Annotated

from pydantic import Field

from masquerade.core.settings import Settings
from masquerade.metrics import Evidence, Metric, Value
from masquerade.metrics._values import shares_at_rate


class ReIdentificationRate(Metric):
    """Mean over faces of [||e(X) - e(X')||_2 < t], in [0, 1]; lower is better.

    The complement of `protection_success_rate_at_far`, with the same embeddings e, (N, D), and the same threshold t. A
    face that was not anonymized or measured does not count as hidden: it is missing from ``over``.
    The paper counts "images whose identity is still detected in the anonymized version" and gives no protocol. Its
    faces drawn at random have 3.61 % and 1.08 %. That is far above the chance to be the nearest of 6,000 people, so
    the paper must compare with a threshold. The choice of the threshold is ours.
    Reference: Barattin et al. 2023 (FALCO), section 4.1.

    >>> from masquerade.metrics._examples import evidence, values
    >>> people = {"net.embedding": [[0], [4], [10]]}  # distances 4, 6 and 10: the threshold is 10 for far = 2/3
    >>> values(ReIdentificationRate, evidence(people, {"net.embedding": [[9], [14], [10]]}), far=0.67)
    {'net': 0.6667}
    """

    title = "re-identification rate"
    direction = "lower"
    unit = "share of faces"

    class Params(Settings):
        """The false-accept rate."""

        far: Annotated[float, Field(gt=0, lt=1)]
        """False-accept rate of the threshold (0.01: about the rate for random faces in falco's Table 1)."""

    params: Params

    def compute(self, evidence: Evidence) -> dict[str, Value]:
        return shares_at_rate(evidence, self.params.far, operator.lt)
