"""A batch is processed as a whole. If it is refused, each face is processed alone, in the same order."""

import numpy as np
import pandas as pd
import pytest

from masquerade.core.errors import PictureError, ProtocolError
from masquerade.core.images import Faces
from masquerade.pipeline import batching
from masquerade.pipeline.batching import Refusal


def faces(first: int, count: int = 4) -> Faces:
    images = np.arange(first, first + count, dtype=np.float32).reshape(count, 1, 1, 1)
    return Faces(images, pd.DataFrame({"id": [f"f{number}" for number in range(first, first + count)]}))


def test_a_batch_without_a_refusal_is_processed_once():
    batch = faces(0)
    ((part, result),) = batching.apply_or_refuse(lambda given: given.images.sum(), batch)
    assert part is batch
    assert result == 6


def test_only_the_refused_faces_have_no_result_and_the_order_is_kept():
    calls = []

    def work(batch, partners):
        calls.append(batch.ids)
        if (batch.images == 2).any():
            raise PictureError("is the third")
        return (batch.images + partners.images).ravel().tolist()

    parts = list(batching.apply_or_refuse(work, faces(0), faces(10)))
    assert [part.ids for part, _ in parts] == [["f0"], ["f1"], ["f2"], ["f3"]]
    assert [result for _, result in parts] == [[10], [12], Refusal("is the third"), [16]]
    assert calls == [["f0", "f1", "f2", "f3"], ["f0"], ["f1"], ["f2"], ["f3"]]


def test_other_errors_are_raised_and_not_counted_as_refusals():
    def work(batch):
        raise ProtocolError("has a wrong shape")

    with pytest.raises(ProtocolError, match="wrong shape"):
        list(batching.apply_or_refuse(work, faces(0)))
