"""A sheet of rendered faces, for whoever wants to look at them."""

import numpy as np

from drawnpeople.renderer import Figure, draw
from drawnpeople.sampling import sample_person
from drawnpeople.seeding import generator
from drawnpeople.shot import STUDIO, WILD, sample_shot


def sheet(people: int, size: int, seed: int, wild: bool = False) -> np.ndarray:
    """One image each of ``people`` people, uint8 (rows * size, columns * size, 3).

    Raises ValueError if ``people`` is below 1 or ``size`` is not from 16 to 1024 pixels.
    """
    if people < 1:
        raise ValueError(f"people is {people}; at least 1 is needed.")
    if not 16 <= size <= 1024:
        raise ValueError(f"size is {size}; allowed are 16 to 1024 pixels.")
    columns = min(people, int(np.ceil(np.sqrt(1.5 * people))))
    rows = -(-people // columns)
    out = np.full((rows * size, columns * size, 3), 255, np.uint8)
    for number in range(people):
        person = sample_person(generator(seed, "sheet", number))
        shot = sample_shot(generator(seed, "sheet", number, "picture"), person, WILD if wild else STUDIO)
        y, x = number // columns * size, number % columns * size
        out[y : y + size, x : x + size] = draw(Figure(person), shot, size).picture
    return out
