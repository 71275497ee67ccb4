"""Accuracy of the evaluators of pose, gaze and expression on rendered faces, which are known. Writes evaluators.md.

The people are those of the validation split of `synthetic_hq`; nothing of these evaluators is tuned.
"""

import argparse
from dataclasses import replace

import numpy as np
from pages import table, write

SIDE = 256
TURN, NOD, TILT, GAZE = 25.0, 12.0, 12.0, 0.25
"""The largest yaw, pitch and roll in degrees, and the largest gaze in radians, right or left, up or down."""


def draw_faces(count: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Images of as many people, float32 (N, 3, 256, 256), and what is known of them: (N,) each."""
    from drawnpeople.renderer import draw
    from drawnpeople.shot import STUDIO, sample_shot
    from masquerade.core.images import to_float
    from masquerade.core.seeding import make_generator
    from masquerade.faces.rendered import make_figure

    pictures, truth = [], []
    for number in range(count):
        figure = make_figure("hq", "validation", number, 0)
        random = make_generator(0, "benchmark of evaluators", number)
        shot = sample_shot(random, figure.person, replace(STUDIO, jitter=0.0))
        yaw, pitch = random.uniform(-TURN, TURN), random.uniform(-NOD, NOD)
        gaze = random.uniform(-GAZE, GAZE, 2) * (1, 0.5)
        roll = random.uniform(-TILT, TILT)
        shot = replace(shot, yaw=yaw, pitch=pitch, roll=roll, gaze=gaze, glasses="", occluder="", hat="")
        pictures.append(draw(figure, shot, SIDE, 1).picture)
        right, up = np.degrees(gaze)
        angles = {"yaw": yaw, "pitch": pitch, "roll": roll, "gaze right": right, "gaze up": up}
        truth.append({**angles, "expression": shot.expression})
    return to_float(np.stack(pictures)), {name: np.array([each[name] for each in truth]) for name in truth[0]}


def measure(images: np.ndarray) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The angles in degrees by name, NaN without a face, and the name of the most probable expression of each image."""
    from masquerade.core.settings import NoParameters
    from masquerade.judges.expressions import EXPRESSIONS, Expression, FaceMesh

    mesh = FaceMesh(NoParameters(), {}).measure(images)
    probable = Expression(NoParameters(), {}).measure(images)["expression"].argmax(axis=1)
    angles = dict(zip(("yaw", "pitch", "roll"), mesh["pose"].T, strict=True))
    angles |= {"gaze right": mesh["gaze"][:, 0], "gaze up": mesh["gaze"][:, 1]}
    return angles, np.array(EXPRESSIONS)[probable]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faces", type=int, default=120)
    count = parser.parse_args().faces
    images, truth = draw_faces(count)
    angles, expressions = measure(images)
    rows = []
    found = np.isfinite(angles["yaw"])
    for name, values in angles.items():
        known, values = truth[name][found], values[found]
        slope, offset = np.polyfit(known, values, 1)
        error = np.abs((values - offset) / slope - known).mean()
        constant = np.abs(known - known.mean()).mean()
        rows.append([name, f"{np.corrcoef(known, values)[0, 1]:.2f}", f"{slope:.2f}", f"{offset:+.1f}", f"{error:.1f}",
                     f"{constant:.1f}"])  # fmt: skip
    shown = [
        [name, str((own := truth["expression"] == name).sum()), *(
            f"{(expressions[own] == guess).mean():.2f}" for guess in ("happy", "neutral", "sad", "surprised", "angry")
        )]
        for name in ("happy", "neutral", "surprised", "sad", "stern")
    ]  # fmt: skip
    write(
        "evaluators",
        "# Evaluators of pose, gaze and expression",
        f"{count} rendered faces of as many people (the validation split of `synthetic_hq`, {SIDE} pixels), looking "
        f"up to {TURN:g} degrees to either side, {NOD:g} up or down, tilted by up to {TILT:g}, and with the eyes up to "
        f"{np.degrees(GAZE):.0f} degrees to either side and {np.degrees(GAZE) / 2:.0f} up or down. `face_mesh` finds "
        f"{found.sum()} of the faces and measures their angles; the known angle of the rendering is the truth.",
        table(
            [
                "angle",
                "correlation",
                "slope",
                "offset (degrees)",
                "mean error after both (degrees)",
                "of a constant answer",
            ],
            rows,
        ),
        "Metrics compare two images of one face, so that an offset cancels out. A slope below 1 makes differences "
        "smaller than they are.",
        "`expression`: the share of the faces of each expression (rows) that it calls so (columns).",
        table(["rendered", "faces", "happy", "neutral", "sad", "surprised", "angry"], shown),
    )


if __name__ == "__main__":
    main()
