"""The base class of the rendered datasets: how many images each person has, their order, and the processes."""

import multiprocessing
from abc import abstractmethod
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from drawnpeople.attributes import attributes, caption
from drawnpeople.person import Person
from drawnpeople.shot import Conditions, sample_shot
from masquerade.core.seeding import make_generator
from masquerade.core.settings import Settings
from masquerade.faces import Dataset, Record
from masquerade.faces._splits import Identities

if TYPE_CHECKING:
    from drawnpeople.renderer import Figure

BLOCK, CHUNK = 120, 12  # images in memory at a time, and those that a process draws: whole people of 3 or 4 images

SERIES = {"train": "train", "validation": "test", "test": "unseen"}
"""Split -> the series of draws from which its people and their images come.

The constants of this repository were tuned on the first people of the series ``test``, so these people are in the
validation split. Nothing was tuned on people of the series ``unseen``.
"""


class RenderedParams(Settings):
    """The parameters of both rendered datasets."""

    identities: Identities
    """Number of people in each split."""
    supersampling: int
    """Number of samples along each side of a pixel. The time to render an image grows with the square of it."""


Job = tuple[str, str, int, int, int, Conditions, int, int]


class RenderedDataset(Dataset):
    """A dataset of rendered faces. ``prefix`` is part of the row ids and of the seeds, so datasets share no people."""

    shows = "procedural people, drawn by a program; no photographs"
    synthetic = True
    prefix: str
    conditions: Conditions
    """How strongly its images vary."""

    @abstractmethod
    def count_images(self, seed: int, split: str, person: int) -> int:
        """Number of images of a person."""

    def count(self, seed: int) -> dict[str, int]:
        people = {split: range(getattr(self.params.identities, split)) for split in self.splits}
        return {split: sum(self.count_images(seed, split, person) for person in people[split]) for split in people}

    def records(self, size: int, seed: int, workers: int) -> Iterator[Record]:
        """Yield every face, split by split and person by person."""
        jobs = self._jobs(size, seed)
        if workers <= 1:
            yield from map(render, jobs)
            return
        yield from map(render, islice(jobs, CHUNK))  # compiles the kernels, so that the processes read them
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            while block := list(islice(jobs, BLOCK)):
                yield from pool.map(render, block, chunksize=CHUNK)

    def _jobs(self, size: int, seed: int) -> Iterator[Job]:
        for split in self.splits:
            for person in range(getattr(self.params.identities, split)):
                for shot in range(self.count_images(seed, split, person)):
                    yield self.prefix, split, person, shot, seed, self.conditions, size, self.params.supersampling


def make_person(prefix: str, split: str, number: int, seed: int) -> Person:
    """The person with this number. It depends on the dataset, the series of the split, the number and the seed."""
    from drawnpeople.sampling import sample_person

    return sample_person(make_generator(seed, "faces", prefix, SERIES[split], number))


@lru_cache(maxsize=1)
def make_figure(prefix: str, split: str, number: int, seed: int) -> "Figure":
    """What all images of a person share. The images of a person follow one another, so the last one is kept."""
    from drawnpeople.renderer import Figure

    return Figure(make_person(prefix, split, number, seed))


def render(job: Job) -> Record:
    """Draw one image of one person."""
    from drawnpeople.renderer import draw

    prefix, split, number, take, seed, conditions, size, supersampling = job
    figure = make_figure(prefix, split, number, seed)
    person = figure.person
    shot = sample_shot(
        make_generator(seed, "faces", prefix, SERIES[split], number, "picture", take), person, conditions
    )
    drawing = draw(figure, shot, size, supersampling)
    identity = f"{prefix}-{split}-{number:04d}"
    row = {
        "id": f"{identity}-{take:02d}",
        "identity": identity,
        "split": split,
        "landmarks": drawing.landmarks.ravel().tolist(),
        "caption": caption(person, shot, formal=number % 2 == 1),
        "pose.yaw": shot.yaw,
        "pose.pitch": shot.pitch,
        "pose.roll": shot.roll,
        "attribute.age": person.age,
        "attribute.expression": shot.expression,
    }
    row.update({f"attribute.{name}": bool(value) for name, value in attributes(person, shot, figure.body).items()})
    return Record(drawing.picture, row, drawing.mask)
