"""What the procedural datasets share: who is drawn how often, in which order, by how many processes."""

import multiprocessing
from abc import abstractmethod
from collections.abc import Iterator
from itertools import islice

from masquerade.faces import Dataset, Record
from masquerade.faces._attributes import attributes, caption
from masquerade.faces._identity import Person, sample_person
from masquerade.faces._shot import Conditions, sample_shot
from masquerade.seeding import generator
from masquerade.settings import Settings

BLOCK = 128  # pictures that are in memory at once


class Identities(Settings):
    """How many people each split holds; no one is in two splits."""

    train: int
    """People, count. Ours; CelebA has 8192 (falco takes 10,177 in all)."""
    validation: int
    """People, count: thresholds are chosen on them."""
    test: int
    """People, count: the pictures that are anonymized."""


class ProceduralParams(Settings):
    """Knobs that both procedural datasets have. Angles are standard deviations in degrees."""

    identities: Identities
    """People in each split."""
    yaw: float
    """Turn to the side, standard deviation in degrees; clipped at 38."""
    pitch: float
    """Nod, standard deviation in degrees; clipped at 20."""
    roll: float
    """Lean that alignment left over, standard deviation in degrees."""
    jitter: float
    """Error of the aligned crop, standard deviation as a fraction of its side."""
    light: float
    """0: soft light from the front; 1: hard light from anywhere."""
    noise: float
    """Largest sensor noise, standard deviation as a fraction of the range."""
    blur: float
    """Largest blur, Gaussian deviation as a fraction of the picture's side."""
    occlusion: float
    """Probability that a microphone, a cup or a hand hides a part of the lower face."""
    supersampling: int
    """Samples along each side of a pixel; the time grows with its square."""


Job = tuple[str, str, str, int, int, Conditions, int, int]


class Procedural(Dataset):
    """A dataset of drawn faces. ``prefix`` names it in row ids and keeps its people apart from other datasets'."""

    prefix: str

    @abstractmethod
    def pictures(self, seed: int, split: str, person: int) -> int:
        """How many pictures there are of a person."""

    def conditions(self) -> Conditions:
        p = self.params
        return Conditions(p.yaw, p.pitch, p.roll, p.jitter, p.light, p.noise, p.blur, p.occlusion)

    def count(self, seed: int) -> dict[str, int]:
        return {
            split: sum(self.pictures(seed, split, person) for person in range(getattr(self.params.identities, split)))
            for split in self.splits
        }

    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        """Every face, split by split, person by person. Raises no error; needs no file."""
        jobs = self._jobs(size, seed)
        if workers <= 1:
            yield from map(render, jobs)
            return
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            while block := list(islice(jobs, BLOCK)):
                yield from pool.map(render, block, chunksize=8)

    def _jobs(self, size: int, seed: int) -> Iterator[Job]:
        conditions = self.conditions()
        for split in self.splits:
            for person in range(getattr(self.params.identities, split)):
                for shot in range(self.pictures(seed, split, person)):
                    yield self.prefix, split, person, shot, seed, conditions, size, self.params.supersampling


def person_of(prefix: str, split: str, number: int, seed: int) -> Person:
    """A person depends on the dataset, the split, the number and the seed: on nothing that is asked for beside it."""
    return sample_person(generator(seed, "faces", prefix, split, number))


def render(job: Job) -> Record:
    """Draw one picture of one person."""
    from masquerade.faces._renderer import draw

    prefix, split, number, take, seed, conditions, size, supersampling = job
    person = person_of(prefix, split, number, seed)
    shot = sample_shot(generator(seed, "faces", prefix, split, number, "picture", take), person, conditions)
    drawing = draw(person, shot, size, supersampling)
    identity = f"{prefix}-{split}-{number:04d}"
    row = {
        "id": f"{identity}-{take:02d}",
        "identity": identity,
        "split": split,
        "landmarks": drawing.landmarks.ravel().tolist(),
        "caption": caption(person, shot),
        "pose.yaw": shot.yaw,
        "pose.pitch": shot.pitch,
        "pose.roll": shot.roll,
        "attribute.age": person.age,
        "attribute.expression": shot.expression,
    }
    row.update({f"attribute.{name}": bool(value) for name, value in attributes(person, shot).items()})
    return Record(drawing.picture, row, drawing.mask)
