"""Free photographs of real people, anonymized by the methods of the scale photo. Writes photographs.md.

The series was frozen before anything was tuned on its test part: the astronaut (NASA, in scikit-image) and Grace Hopper
(U.S. Navy, in matplotlib) were looked at during the work; the four photographs of two people (White House, public
domain, in the source package of face_recognition 1.3.0) were not. `pip download --no-deps --no-binary :all:
face_recognition==1.3.0` gets that package; unpack it and name its folder tests/test_images with --photographs.
"""

import argparse
import hashlib
import time
from pathlib import Path

import numpy as np
from pages import MACHINE, ROOT, table, write
from PIL import Image

METHODS = ("inverted", "falco", "identitydp", "ifadit", "riddle", "lreorg")
"""The first is a control: it should be refused, because it hides nothing."""
TEST = {
    "obama.jpg": "0930e3aa8cae5920",
    "obama2.jpg": "a7efcc9073752747",
    "obama3.jpg": "76ac6bf97c36dc2d",
    "biden.jpg": "3c17508bb91554c6",
}
"""Photographs of the test part -> the beginning of their SHA-256."""
JUDGES = ("faceres", "age_gender", "face_mesh")
ACCEPTED = 0.33
"""faceres accepts a smaller 1 - cosine as the same person at a false-accept rate of 0.1 % (docs/anonymize.md)."""
KEY = "a key of a benchmark, which protects nobody"


def read_series(folder: Path) -> dict[str, tuple[str, Image.Image]]:
    """Name -> (part, photograph)."""
    import matplotlib.cbook
    from skimage.data import astronaut

    hopper = Image.open(matplotlib.cbook.get_sample_data("grace_hopper.jpg", asfileobj=False)).convert("RGB")
    series = {"astronaut": ("looked at", Image.fromarray(astronaut())), "Grace Hopper": ("looked at", hopper)}
    for name, digest in TEST.items():
        found = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        if not found.startswith(digest):
            raise SystemExit(f"{folder / name} is another file than that of the series: {found}")
        series[name] = "test", Image.open(folder / name).convert("RGB")
    return series


def main() -> None:
    import masquerade
    from masquerade.core import discovery
    from masquerade.core.images import to_float
    from masquerade.core.settings import NoParameters

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--photographs", type=Path, required=True)
    series = read_series(parser.parse_args().photographs)
    faceres, ages, poses = (discovery.load("judges", name)(NoParameters(), {}) for name in JUDGES)
    originals = {name: cut_face(picture) for name, (_, picture) in series.items()}
    rows = []
    for method in METHODS:
        loaded = masquerade.load(method, scale="photo", root=ROOT)
        options = {"key": KEY} if loaded.takes_key else {}
        for name, (part, picture) in series.items():
            began = time.perf_counter()
            try:
                result = loaded.anonymize(picture, faces="largest", **options)
            except masquerade.PictureError as error:
                spent = time.perf_counter() - began
                rows.append([loaded.title, name, part, f"refused: {error}", "", "", "", "", "", f"{spent:.0f}"])
                continue
            seconds = time.perf_counter() - began
            both = to_float(np.stack([np.asarray(result.image), originals[name]]))
            first, second = faceres.measure(both)["embedding"]
            apart = 1 - float(first @ second)
            verdict = "accepted" if apart < ACCEPTED else "not accepted"
            looks, yaw = ages.measure(both), poses.measure(both)["pose"][:, 0]
            men = looks["male"] > 0.5
            rows.append([loaded.title, name, part, "written", f"{result.distance:.2f}", f"{apart:.2f}, {verdict}",
                         f"{looks['age'][1]:.0f} → {looks['age'][0]:.0f}", "yes" if men[0] == men[1] else "no",
                         f"{abs(yaw[0] - yaw[1]):.0f}", f"{seconds:.0f}"])  # fmt: skip
    write(
        "photographs",
        "# Free photographs",
        f"The largest face of each photograph, scale `photo`, {MACHINE}. *looked at*: used while methods were made; "
        "*test*: frozen before. dlib: the distance to the original (a result at 0.65 or less is not written). faceres: "
        f"1 − cosine, and whether it accepts the person at a false-accept rate of 0.1 % (below {ACCEPTED}). age: "
        "apparent years before and after; yaw: by how many degrees the head turned.",
        table(
            ["method", "photograph", "part", "outcome", "dlib", "faceres", "age", "gender kept", "yaw", "seconds"], rows
        ),
    )


def cut_face(picture: Image.Image) -> np.ndarray:
    """The largest face as the methods get it, uint8 (256, 256, 3)."""
    from masquerade.params import loading
    from masquerade.pipeline.photographs import choosing, single

    parameters = loading.load(ROOT, "photo")
    params = choosing.open_photographs(parameters, None, "largest", "ffhq").params
    records = single.Photograph(params, np.asarray(picture), {}).records(parameters.image.size, 0, 1)
    return next(record.picture for record in records if record.picture is not None)


if __name__ == "__main__":
    main()
