"""What is read off pictures once for many keys."""

import numpy as np

from masquerade.methods._batches import Remembered


def test_last_pictures_are_read_once():
    seen = []
    first, second, third = (np.full((1, 3, 2, 2), value, dtype=np.float32) for value in range(3))

    def read(images: np.ndarray) -> float:
        seen.append(float(images.mean()))
        return seen[-1]

    remembered = Remembered(read, kept=2)
    assert [remembered(each) for each in (first, second, first.copy(), second)] == [0.0, 1.0, 0.0, 1.0]
    assert seen == [0.0, 1.0]
    assert remembered(third) == 2.0
    assert remembered(first) == 0.0
    assert seen == [0.0, 1.0, 2.0, 0.0]
