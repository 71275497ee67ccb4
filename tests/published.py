"""Small datasets in the layouts in which they are published, and what the loaders read of them."""

import io
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from drawnpeople.shot import Conditions
from masquerade.core import annotations, discovery
from masquerade.faces.rendered import render
from masquerade.params import blocks, overlays

CELEBA_ATTRIBUTES = sorted([*annotations.INNER, *annotations.OUTER, "Attractive", "Blurry"])
LFW_FOLDS = 10


def jpeg(picture: np.ndarray, quality: int = 95) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


def png(picture: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def write(path: Path, content: bytes | str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def sign(number: int, column: int) -> int:
    """The invented attribute: 1 or -1."""
    return 1 if (number + column) % 3 == 0 else -1


def attribute_list(files: Sequence[str]) -> str:
    body = [f"{file}  {' '.join(f'{sign(n, k):2d}' for k in range(40))}" for n, file in enumerate(files)]
    return "\n".join([f"{len(files)} ", " ".join(CELEBA_ATTRIBUTES) + " ", *body, ""])


def celeba_lists(root: Path, who: Sequence[int], parts: Sequence[int]) -> list[str]:
    """Writes CelebA's identities and partition of images 000001.jpg on in the published place; returns the files."""
    files = [f"{number:06d}.jpg" for number in range(1, len(who) + 1)]
    write(root / "Anno/identity_CelebA.txt", "".join(f"{f} {w}\n" for f, w in zip(files, who, strict=True)))
    write(root / "Eval/list_eval_partition.txt", "".join(f"{f} {p}\n" for f, p in zip(files, parts, strict=True)))
    return files


def celeba(
    root: Path,
    pictures: Sequence[np.ndarray],
    who: Sequence[int],
    parts: Sequence[int],
    version: str = "img_align_celeba",
    middles: Sequence[tuple[int, int]] | None = None,
) -> None:
    """CelebA: Anno/, Eval/ and Img/. ``middles``: one point per image, the position of all its five landmarks."""
    files = celeba_lists(root, who, parts)
    middles = middles or [(p.shape[1] // 2, p.shape[0] // 2) for p in pictures]
    points = [f"{file} {f'{x:4d} {y:4d} ' * 5}" for file, (x, y) in zip(files, middles, strict=True)]
    head = "lefteye_x lefteye_y righteye_x righteye_y nose_x nose_y leftmouth_x leftmouth_y rightmouth_x rightmouth_y"
    kind = "_align" if version == "img_align_celeba" else ""
    write(root / f"Anno/list_landmarks{kind}_celeba.txt", "\n".join([f"{len(files)}", head, *points, ""]))
    write(root / "Anno/list_attr_celeba.txt", attribute_list(files))
    for file, picture in zip(files, pictures, strict=True):
        write(root / "Img" / version / file, jpeg(picture))


def celeba_hq(
    root: Path, lists: Path, pictures: Sequence[np.ndarray], who: Sequence[int], parts: Sequence[int]
) -> None:
    """CelebAMask-HQ/, and CelebA's lists below ``lists``; image i is CelebA's ``len - i``; masks: skin and nose."""
    top = root / "CelebAMask-HQ"
    count = len(pictures)
    celeba_lists(lists, who, parts)
    rows = [f"{n:<9d} {count - 1 - n:<11d} {count - n:06d}.jpg  " for n in range(count)]
    write(top / "CelebA-HQ-to-CelebA-mapping.txt", "\n".join(["idx       orig_idx    orig_file", *rows, ""]))
    write(top / "CelebAMask-HQ-attribute-anno.txt", attribute_list([f"{n}.jpg" for n in range(count)]))
    for number, picture in enumerate(pictures):
        write(top / f"CelebA-HQ-img/{number}.jpg", jpeg(picture))
        skin, nose = np.zeros((2, 512, 512, 3), np.uint8)
        skin[100:400, 150:350], nose[200:300, 230:270] = 255, 255
        for name, part in (("skin", skin), ("nose", nose)):
            write(top / f"CelebAMask-HQ-mask-anno/{number // 2000}/{number:05d}_{name}.png", png(part))


def lfw(root: Path, people: dict[str, Sequence[np.ndarray]], folder: str = "lfw") -> None:
    """LFW: people go to ten folds in turn. Each fold has one matched and one mismatched pair if it has the images."""
    names = sorted(people)
    folds = [names[fold::LFW_FOLDS] for fold in range(LFW_FOLDS)]
    lines = [str(LFW_FOLDS)]
    for fold in folds:
        lines += [str(len(fold)), *(f"{name}\t{len(people[name])}" for name in fold)]
    write(root / "people.txt", "\n".join(lines) + "\n")
    pairs = [f"{LFW_FOLDS}\t1"]
    for fold in folds:
        several = next(name for name in fold if len(people[name]) > 1)
        other = next(name for name in fold if name != several)
        pairs += [f"{several}\t1\t2", f"{several}\t1\t{other}\t1"]
    write(root / "pairs.txt", "\n".join(pairs) + "\n")
    for name, pictures in people.items():
        for number, picture in enumerate(pictures, start=1):
            write(root / folder / name / f"{name}_{number:04d}.jpg", jpeg(picture))


def ffhq(root: Path, pictures: Iterable[np.ndarray], folder: str = "images1024x1024") -> None:
    for number, picture in enumerate(pictures):
        write(root / folder / f"{number // 1000 * 1000:05d}" / f"{number:05d}.png", png(picture))
    write(root / folder / "LICENSE.txt", b"what may be done with them")


def casia_folders(root: Path, people: Sequence[Sequence[np.ndarray]]) -> None:
    for person, pictures in enumerate(people):
        for number, picture in enumerate(pictures, start=1):
            write(root / "CASIA-WebFace" / f"{person + 45:07d}" / f"{number:03d}.jpg", jpeg(picture))


def zipped(folder: Path, archive: Path, top: str) -> None:
    """``folder`` as an uncompressed zip with the name ``top`` inside it."""
    with zipfile.ZipFile(archive, "w") as entries:
        for path in sorted(folder.rglob("*")):
            entries.write(path, f"{top}/{path.relative_to(folder)}")


def tarred(folder: Path, archive: Path, top: str) -> None:
    with tarfile.open(archive, "w:gz") as entries:
        entries.add(folder, top)


SIZE = 64
SEED = 7
SHARES = {"backbones": 0.25, "judges": 0.25, "methods": 0.25, "attackers": 0.25}
STUDIO = Conditions(yaw=6.0, pitch=3.0, roll=1.0, jitter=0.01, light=0.2, noise=0.0, blur=0.0, occlusion=0.0)


@cache
def face(person: int, take: int = 0, side: int = 250) -> np.ndarray:
    return render(("test", "test", person, take, SEED, STUDIO, side, 1)).picture


def noise(number: int, side: int = 1024) -> np.ndarray:
    coarse = np.random.default_rng(number).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    return np.kron(coarse, np.ones((side // 8, side // 8, 1), np.uint8))


def dataset(name: str, root: Path, **changes):
    """The dataset with the parameters of params.yaml, and with the tree at ``root``."""
    knobs = overlays.read_yaml(Path(__file__).parents[1] / blocks.PARAMS)["datasets"][name]
    cls = discovery.load("faces", name)
    return cls(cls.Params(**{**knobs, "path": str(root), **changes}))


def records(name: str, root: Path, **changes) -> list:
    return list(dataset(name, root, **changes).records(SIZE, SEED, workers=1))


def by_split(faces: list) -> dict[str, list[str]]:
    splits = {}
    for record in faces:
        splits.setdefault(record.row["split"], []).append(record.row["id"])
    return splits


def replaced(path: Path, old: str, new: str, count: int = 1) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, count))


def edited(name: str, old: str, new: str):
    """A damage of a tree: a function of its root that replaces a text in the file ``name``."""
    return lambda root: replaced(root / name, old, new)


WHO, PARTS_OF = [11, 11, 22, 33, 33], [0, 0, 1, 2, 2]  # of CelebA's images 1 to 5
