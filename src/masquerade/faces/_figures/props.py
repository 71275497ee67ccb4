"""What is worn on the head or held before it: hats, glasses, and objects that hide part of the face."""

from masquerade.faces._figures.glasses import glaze
from masquerade.faces._figures.hats import hat, hat_covers, tucked
from masquerade.faces._figures.occluders import occlude
from masquerade.faces._figures.person import Person
from masquerade.faces._figures.shape import Body
from masquerade.faces._figures.shot import Shot
from masquerade.faces._figures.things import Thing

__all__ = ["Thing", "glaze", "hat_covers", "occlude", "things", "tucked"]


def things(person: Person, shot: Shot, body: Body) -> list[Thing]:
    """The meshes on the head: those of the hat. Glasses are lines, which `glaze` draws."""
    return hat(shot, body)
