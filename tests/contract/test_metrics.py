"""Every metric on the same synthetic measurements: controls bracket the methods, and refused faces count."""

import math
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest

from masquerade.attackers.study import EmbeddingSet, measure_distances
from masquerade.core import discovery
from masquerade.core.annotations import ATTRIBUTES
from masquerade.metrics import Evidence
from masquerade.metrics.keys import ATTACKS, LINKED_SETS
from masquerade.pipeline import evaluation, key_attacks

METRICS = discovery.list_names("metrics")
PEOPLE, PICTURES = 30, 3
MEASURED = (
    "dlib_face", "mobilenet_v2", "pixels", "mtcnn", "haar", "age_gender", "attribute_classifier", "expression",
    "ethnicity", "face_mesh",
)  # fmt: skip
"""The judges whose quantities stand for those of all judges."""


def list_new_quantities() -> dict[str, tuple[int, ...]]:
    """The columns of judges that measure what none of `MEASURED` does, such as your own, with their shapes."""
    quantities = {name: discovery.load("judges", name).quantities for name in discovery.list_names("judges")}
    usual = {quantity for name in MEASURED for quantity in quantities[name]}
    return {
        f"{judge}.{quantity}": shape
        for judge in sorted(quantities.keys() - MEASURED)
        for quantity, shape in quantities[judge].items()
        if quantity not in usual
    }


NEW_QUANTITIES = list_new_quantities()
JUDGES = (*MEASURED, *dict.fromkeys(column.split(".")[0] for column in NEW_QUANTITIES))


MESH = np.random.default_rng(9).uniform(0, 64, 936)


def measurements(embeddings, noise, refused=()):
    """Measurements of all judges of sets whose embeddings are given; ``noise`` in [0, 1] is the size of the change."""
    count = len(embeddings)
    draw = np.random.default_rng(3)
    columns = {
        "id": [f"f{row}" for row in range(count)],
        "source_id": [f"f{row}" for row in range(count)],
        "identity": [f"p{row // PICTURES}" for row in range(count)],
        "status": ["refused" if row in refused else "ok" for row in range(count)],
    }
    psnr = np.full(count, np.inf) if noise == 0 else np.full(count, 40.0 - 30.0 * noise)
    numbers = {
        "haar.detected": (draw.random(count) >= noise * 0.9).astype(float),
        "pixels.psnr": psnr,
        "pixels.ssim": np.full(count, 1.0 - noise),
        "pixels.mse": np.full(count, 255.0**2 * noise),
        "pixels.mae": np.full(count, 255.0 * noise),
        "mobilenet_v2.perceptual": np.full(count, noise),
        "age_gender.age": 30.0 + 20.0 * noise * draw.random(count),
        "age_gender.male": np.full(count, 0.8 - 0.5 * noise),
    }
    moved = noise * draw.normal(size=(count, 136))
    vectors = {
        "dlib_face.embedding": embeddings,
        "mobilenet_v2.features": np.hstack([embeddings, embeddings * 2]) + noise,  # the whole set moves
        "dlib_face.box": 30.0 + moved[:, :4],
        "dlib_face.landmarks": 30.0 + moved,
        "mtcnn.points": 30.0 + moved[:, :10],
        "face_mesh.mesh": MESH + np.tile(moved, 7)[:, :936],
        "face_mesh.pose": moved[:, :3],
        "face_mesh.gaze": moved[:, :2],
        **{
            f"{judge}.{judge}": np.eye(5)[np.where(draw.random(count) < noise, 1, 0)]
            for judge in ("expression", "ethnicity")
        },
    }
    numbers |= {column: np.full(count, noise) for column, shape in NEW_QUANTITIES.items() if shape == ()}
    vectors |= {column: np.full((count, *shape), noise) for column, shape in NEW_QUANTITIES.items() if shape}
    turned = np.random.default_rng(6).random((count, len(ATTRIBUTES))) < noise * 0.9
    for place, (name, known) in enumerate(annotations(count).items()):
        numbers[f"attribute_classifier.{name.lower()}"] = np.where(turned[:, place], 1 - known, known) * 0.8 + 0.1
    for row in refused:
        for values in numbers.values():
            values[row] = np.nan
        for values in vectors.values():
            values[row] = np.nan
    return pd.DataFrame({**columns, **numbers, **{name: list(values) for name, values in vectors.items()}})


def annotations(count):
    """Annotations of the originals: every third has an attribute, and every fourth has hair of one color."""
    rows = np.arange(count)
    colors = [name for name in ATTRIBUTES if name.endswith("_Hair") and name != "Wavy_Hair"]
    return {
        name: (rows % 4 == colors.index(name) if name in colors else rows % 3 == 0).astype(float) for name in ATTRIBUTES
    }


def attempts(derived, noise):
    """One further key for each face; the distance from the first grows with ``noise``. Refused faces have none."""
    first = np.stack(derived["dlib_face.embedding"])
    others = unit(first + noise * np.random.default_rng(5).normal(size=first.shape))
    return derived.assign(attempt="key", number=0, **{"dlib_face.embedding": list(others)})


def keys_attacked(original, derived):
    """Attacks that all show the derived face."""
    embeddings, known = (np.stack(faces["dlib_face.embedding"].to_list()) for faces in (derived, original))
    distances = np.linalg.norm(embeddings - known, axis=1)
    near = distances[np.isfinite(distances)] < 0.7
    value = float(near.mean()) if near.size else None
    share = {"value": value, "over": near.size, "of": len(distances), "people": None, "draws": ""}
    linked = key_attacks.measure_linkage(embeddings, derived["identity"].to_numpy(), draws=0)
    facts = {"judge": "dlib_face", "far": 0.01, "threshold": "threshold 0.7", "keys": None, "guesses": 1, "averaged": 1}
    found = {attack: {"person": share, "another": share} for attack in ATTACKS}
    return facts | {"found": found, "linked": dict.fromkeys(LINKED_SETS, linked)}


def predictions(derived):
    """Predictions of a classifier whose errors grow with the change; refused images have no prediction."""
    draw = np.random.default_rng(4)
    kept = 0.5 + 0.5 * derived["pixels.ssim"].to_numpy()
    frames = []
    for labels in ("annotated", "pseudo_a"):
        for attribute in ("Male", "Bangs", "Smiling"):
            label = draw.random(len(derived)) < 0.4
            right = draw.random(len(derived)) < kept
            probability = np.where(np.isfinite(kept), np.where(right == label, 0.9, 0.1), np.nan)
            about = {"id": derived["id"], "labels": labels, "learned_from": 16, "attribute": attribute}
            frames.append(pd.DataFrame({**about, "label": label.astype(float), "probability": probability}))
    return pd.concat(frames, ignore_index=True)


def attacked(original, derived):
    """Answers of attackers who compare embeddings: one row a probe of an attack, as pipeline/informed.py gives them.

    The restoration goes a third of the way back to the original and adds a little noise of its own. Refused faces are
    no probes.
    """
    clear, hidden = (np.stack(frame["dlib_face.embedding"]) for frame in (original, derived))
    kept, people, ids = np.isfinite(hidden).all(axis=1), *(original[name].to_numpy() for name in ("identity", "id"))
    wrong = np.roll(people[kept], PICTURES)  # each image has the name of another person
    restored = unit(hidden + (clear - hidden) / 3 + 0.02 * np.random.default_rng(7).normal(size=clear.shape))
    clear_faces, faces, back = (EmbeddingSet(part[kept], people[kept], ids[kept]) for part in (clear, hidden, restored))
    attacks = [
        ("naive", "naming", False, ("one", "other"), 1, (faces, clear_faces)),
        ("adapted", "naming", False, ("own",), 2, (faces, clear_faces)),
        ("shuffled", "naming", True, ("own",), 1, (EmbeddingSet(hidden[kept], wrong, ids[kept]), clear_faces)),
        ("parrot", "linking", False, ("own",), 1, (faces, faces)),
        ("poisoned", "protecting", False, ("identity", "adaptive"), 1, (clear_faces, clear_faces, faces)),
        ("restoring", "naming", False, ("one", "other"), 1, (back, clear_faces)),
    ]
    frames = []
    for attacker, asks, control, recognizers, trials, shown in attacks:
        if kept.any():
            distances = measure_distances(*shown)
            rows = pd.DataFrame({"id": ids[kept], "identity": people[kept], "status": "ok", "rank": distances.ranks})
            rows = rows.assign(distance=distances.own, strangers=list(distances.strangers), people=PEOPLE)
        else:
            rows = pd.DataFrame(columns=["rank", "distance", "strangers", "people"])
        if attacker == "restoring":
            for prefix, images in (("", restored), ("before_", hidden)):
                mse = ((images - clear)[kept] ** 2).mean(axis=1)
                with np.errstate(divide="ignore"):
                    rows[f"{prefix}psnr"] = -10 * np.log10(mse)
                rows[f"{prefix}ssim"], rows[f"{prefix}similarity"] = 1 - mse, (images * clear)[kept].sum(axis=1)
        missing = pd.DataFrame({"id": ids[~kept], "identity": people[~kept], "status": "refused"})
        rows = pd.concat([rows, missing], ignore_index=True)
        about = {
            "attacker": attacker,
            "asks": asks,
            "control": control,
            "learned": True,
            "threshold": 0.8,
            "comparisons": 500.0,
        }
        frames += [
            rows.assign(**about, recognizer=name, trial=trial, group=group)
            for name, trial, group in product(recognizers, range(trials), ("tested", "held_out"))
        ]
    return pd.concat(frames, ignore_index=True).astype({"rank": float, "distance": float})


def downstream_utility(derived):
    """Results on unprotected images of networks that learned from derived ones; the larger the change, the worse.

    An image whose derived one was refused was not measured.
    """
    kept = derived["pixels.ssim"].to_numpy()
    luck = np.random.default_rng(8).random(len(derived))
    found = np.where(np.isfinite(kept), luck < kept, np.nan)
    about = {"id": derived["id"], "identity": derived["identity"]}
    return pd.DataFrame({**about, "landmark_error": 5 + 20 * (1 - kept) * luck, "found": found, "overlap": 0.9 * kept})


def unit(values):
    return values / np.linalg.norm(values, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def cell():
    """The evidence of a set, made once, from the size of the change (0, 0.2 or 0.9) and the rows of refused faces."""
    draw = np.random.default_rng(0)
    people = np.repeat(draw.normal(size=(PEOPLE, 16)), PICTURES, axis=0)
    unprotected = unit(people + 0.1 * draw.normal(size=people.shape))
    mild = unit(unprotected + 0.15 * draw.normal(size=people.shape))
    embeddings = {0.0: unprotected, 0.2: mild, 0.9: unit(draw.normal(size=people.shape))}
    original = measurements(unprotected.copy(), 0.0)
    strangers = unit(draw.normal(size=(40, 16)))
    known = {f"attribute.{name}": values for name, values in annotations(len(original)).items()}

    @cache
    def make(noise, refused=()):
        derived = measurements(embeddings[noise].copy(), noise, refused)
        return Evidence(
            original.assign(**known), derived, original, JUDGES, target=original, size=64,
            attributes=predictions(derived), recoveries=attempts(derived, noise),
            keys_attacked=keys_attacked(original, derived), attack_results=attacked(original, derived),
            downstream_utility=downstream_utility(derived), distractors={"dlib_face": strangers},
        )  # fmt: skip

    return make


@pytest.fixture(params=METRICS)
def metric(request, tiny):
    return discovery.load("metrics", request.param)(tiny.metrics[request.param])


def compute(metric, evidence):
    return evaluation.evaluate({metric.name: metric}, evidence)[metric.name]


NOT_BRACKETED = {"people_similarity"}
"""It is computed from the set alone, without the originals."""
GROWS = {"identity_distance", "identity_l1", "key_angle", "protection_success_rate", "protection_success_rate_at_far",
         "attack_equal_error_rate", "poisoning_protection_rate", "hifd"}  # fmt: skip
"""Higher is better for privacy, so a larger change has a larger value. HiFD is 0 for originals, which have none."""
FALLS = {"true_acceptance_rate", "re_identification_rate", "rank1_identification_rate", "identity_similarity",
         "key_similarity", "key_attack_rate", "linkage_auc", "attack_held_out_rate", "attack_rank1_rate",
         "attack_rank5_rate", "attack_true_acceptance_rate", "large_gallery_rate", "restored_psnr", "restored_ssim",
         "restored_similarity"}  # fmt: skip
"""Lower is better for privacy, and originals are recognized most."""


def test_controls_bracket_the_methods(metric, cell):
    """A larger change moves the value further from that of the originals, in the metric's direction; twice alike."""
    values = []
    for noise in (0.0, 0.2, 0.9):
        results = compute(metric, cell(noise))
        assert results, "a metric must have values for a set that every judge measured"
        assert results == compute(metric, cell(noise))
        values.append(next(iter(results.values()))["value"])
    first = values[0] if values[0] is not None else math.inf  # PSNR of identical images
    if metric.name in NOT_BRACKETED:
        assert all(-1 <= value <= 1 for value in values)
        return
    grows = metric.name in GROWS or (metric.direction == "lower" and metric.name not in FALLS)
    ordered = (first, *values[1:])
    assert ordered == tuple(sorted(ordered, reverse=not grows)), ordered
    assert ordered[0] != ordered[2]


def test_refused_faces_are_in_the_denominator_and_not_in_the_value(metric, cell):
    whole, cut = compute(metric, cell(0.2)), compute(metric, cell(0.2, (0, 1, 2)))
    assert {judge for judge, value in whole.items() if value["over"]}
    for judge, value in cut.items():
        assert value["of"] == whole[judge]["of"]
        assert value["over"] < whole[judge]["over"] or whole[judge]["over"] == 0  # an attribute without labels


def test_set_of_refused_faces_has_no_value(metric, cell):
    for value in compute(metric, cell(0.2, tuple(range(PEOPLE * PICTURES)))).values():
        assert (value["value"], value["over"]) == (None, 0)


def test_attempts_are_evaluated_like_an_anonymized_set(metric, cell):
    """Recovered images of some faces, two keys each and in any order, are compared with their originals."""
    original, derived, some = cell(0.9).calibration, cell(0.9).derived, cell(0.2).derived.iloc[::-2]
    tried = pd.concat([some.assign(attempt="wrong", number=number) for number in (0, 1)], ignore_index=True)
    whole = Evidence(original, derived, original, JUDGES, target=original, recoveries=tried, size=64)
    results = evaluation.evaluate_attempts({metric.name: metric}, whole)
    assert list(results) == ["anonymized", "wrong"]
    assert all(list(values) == [metric.name] * metric.repeats for values in results.values())
    paired = original.set_index("id").loc[some["source_id"]].reset_index()
    values = compute(metric, Evidence(paired, some.reset_index(drop=True), original, JUDGES, target=original, size=64))
    for judge, value in results["wrong"].get(metric.name, {}).items():
        if not metric.name.startswith("key_"):  # one image of each face has no such value
            few = 0.05 if metric.name.startswith("frechet") else 1e-6  # its covariances divide by N - 1
            assert value["value"] == pytest.approx(values[judge]["value"], rel=few)
            assert value["of"] == 2 * values[judge]["of"]
