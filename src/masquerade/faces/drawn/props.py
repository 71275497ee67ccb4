"""What is worn on the head or held before it: hats, glasses, and objects that hide part of the face."""

from masquerade.faces.drawn.glasses import glaze
from masquerade.faces.drawn.hats import hat, hat_covers, tucked
from masquerade.faces.drawn.occluders import occlude
from masquerade.faces.drawn.person import Person
from masquerade.faces.drawn.shape import Body
from masquerade.faces.drawn.shot import Shot
from masquerade.faces.drawn.things import Thing

__all__ = ["Thing", "glaze", "hat_covers", "occlude", "things", "tucked"]


def things(person: Person, shot: Shot, body: Body) -> list[Thing]:
    """The meshes on the head: those of the hat. Glasses are lines, which `glaze` draws."""
    return hat(shot, body)
