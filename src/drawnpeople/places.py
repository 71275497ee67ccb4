"""Places behind a person: a studio, a room, a window, a street, a park, leaves, shelves and a city at night."""

from collections.abc import Callable

import numpy as np

from drawnpeople.indoors import room, shelf, studio, window
from drawnpeople.outdoors import foliage, night, park, street
from drawnpeople.scene import Scene, enlarge
from drawnpeople.seeding import generator
from drawnpeople.shot import Shot

GRIDS = (64, 96)  # pixels across the image in which places are drawn: for images up to SMALL samples, and larger
SMALL = 160


def background(shot: Shot, n: int) -> np.ndarray:
    """The place ``shot.place``, out of focus: float32 (n, n, 3), linear light.

    Depends on the place, light, distance and texture of the shot only. Raises ValueError for an unknown place.
    """
    if shot.place not in PLACES:
        raise ValueError(f"no place is named {shot.place!r}: choose one of {', '.join(PLACES)}")
    scene = Scene(shot, generator(shot.texture, "place"))
    PLACES[shot.place](scene)
    return enlarge(scene.develop(GRIDS[n > SMALL]), n)


PLACES: dict[str, Callable[[Scene], None]] = {
    "studio": studio,
    "room": room,
    "window": window,
    "street": street,
    "park": park,
    "foliage": foliage,
    "shelf": shelf,
    "night": night,
}
"""Name of a place -> the function that draws it."""
