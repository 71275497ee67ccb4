"""What is worn on the head or held before it: hats, glasses, and objects that hide part of the face."""

from drawnpeople.glasses import glaze
from drawnpeople.hats import hat, hat_covers, tuck
from drawnpeople.occluders import occlude
from drawnpeople.person import Person
from drawnpeople.shape import Body
from drawnpeople.shot import Shot
from drawnpeople.things import Thing

__all__ = ["Thing", "glaze", "hat_covers", "occlude", "things", "tuck"]


def things(person: Person, shot: Shot, body: Body) -> list[Thing]:
    """The meshes on the head: those of the hat. Glasses are lines, which `glaze` draws."""
    return hat(shot, body)
