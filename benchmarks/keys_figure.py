"""Draws docs/riddle.jpg and docs/cao21.jpg: test people of `photo`, anonymized and recovered with right and wrong keys.

It needs the build of the scale. The people are the first of the dataset; nobody chose them by their results.
"""

import numpy as np
import pandas as pd
from pages import ROOT
from PIL import Image, ImageDraw, ImageFont

from masquerade.core.images import FaceArchive
from masquerade.params.paths import Paths

PATHS, DATASET, PEOPLE, SIZE, HEAD = Paths("photo"), "generated_hq", 6, 160, 26
FIGURES = {"riddle": "default", "cao21": "d_9"}
RECOVERIES = {
    "right key": "recovered.0",
    "right key, saved": "saved.0",
    "a wrong key": "wrong.0",
    "another wrong key": "wrong.1",
}


def main() -> None:
    originals = FaceArchive(ROOT / PATHS.faces.format(dataset=DATASET))
    people = originals.select("test")["id"].head(PEOPLE)
    for method, variant in FIGURES.items():
        where = {"dataset": DATASET, "method": method, "variant": variant, "seed": 0}
        anonymized = FaceArchive(ROOT / PATHS.anonymized.format(**where))
        recovered = FaceArchive(ROOT / PATHS.recoveries.format(**where))
        columns = {"original": find(originals, people), "anonymized": find(anonymized, people)}
        for head, attempt in RECOVERIES.items():
            columns[head] = find(recovered, people + f".{attempt}")
        draw(columns).save(ROOT / "docs" / f"{method}.jpg", quality=78)


def find(archive: FaceArchive, names: pd.Series) -> np.ndarray:
    """The images (N, S, S, 3), uint8, of these faces."""
    return archive.pictures(archive.select().set_index("id", drop=False).loc[names])


def draw(columns: dict[str, np.ndarray]) -> Image.Image:
    """A sheet with the images of each column below its head."""
    sheet = Image.new("RGB", (SIZE * len(columns), HEAD + SIZE * PEOPLE), "white")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(15)
    for column, (head, images) in enumerate(columns.items()):
        left = SIZE * column
        pen.text((left + SIZE // 2, HEAD // 2), head, fill="black", font=font, anchor="mm")
        for row, image in enumerate(images):
            small = Image.fromarray(image).resize((SIZE, SIZE), Image.Resampling.LANCZOS)
            sheet.paste(small, (left, HEAD + SIZE * row))
    return sheet


if __name__ == "__main__":
    main()
