"""The geometry of drawn faces: head.npz, persons, pose, landmarks and what is refused."""

import dataclasses
import hashlib
import re
from types import SimpleNamespace

import numpy as np
import pytest

from drawnpeople.kernels import EMPTY, raster
from drawnpeople.measures import measure
from drawnpeople.sampling import sample_person
from drawnpeople.seeding import generator
from drawnpeople.shape import Body, Head, share_of_head
from drawnpeople.shot import Conditions, sample_shot
from drawnpeople.template import EYE, FILE, LASH, SKIN, TEETH, template

LEFT_EYE, RIGHT_EYE = slice(36, 42), slice(42, 48)
STUDIO = Conditions(yaw=9.0, pitch=4.5, roll=2.0, jitter=0.0, light=0.25, noise=0.0, blur=0.0, occlusion=0.0)
N = 256


def person(number: int = 0, **changes):
    return dataclasses.replace(sample_person(generator(3, "head", number)), **changes)


def plain(number: int = 0, **changes):
    """A picture of a face without expression that looks at us, with the given changes."""
    still = {"yaw": 0.0, "pitch": 0.0, "roll": 0.0, "shift": np.zeros(2), "zoom": 1.0, "distance": 1.5, "actions": {}}
    return dataclasses.replace(
        sample_shot(generator(4, "head", number), person(number), STUDIO), **{**still, **changes}
    )


def points(number: int = 0, **changes) -> np.ndarray:
    return Head(Body(person(number)), plain(number, **changes), N).landmarks()


def materials(head: Head) -> np.ndarray:
    """The material that each sample shows, (N, N); -1 where there is no head."""
    base = template()
    ids, depth = np.full((N, N), -1, np.int32), np.full((N, N), EMPTY, np.float32)
    solid = np.ascontiguousarray(base.triangles[: base.solid])
    raster(head.camera.project(head.points), solid, 0, ids, np.zeros((N, N, 3), np.float32), depth)
    return np.where(ids >= 0, base.material[ids], -1)


def test_file_has_the_hash_and_the_counts_that_its_card_tells():
    card, base = FILE.with_suffix(".md").read_text(), template()
    assert hashlib.sha256(FILE.read_bytes()).hexdigest() in card
    assert FILE.stat().st_size < 8e6
    told = re.search(r"([\d,]+) vertices, ([\d,]+) triangles, (\d+) blend shapes", card)
    assert told
    shown = [int(count.replace(",", "")) for count in told.groups()]
    assert shown == [len(base.vertices), len(base.triangles), len(base.names)]


def test_template_is_one_symmetric_head_that_looks_to_minus_y():
    base = template()
    flipped = base.vertices[base.mirror] * np.array([-1, 1, 1], np.float32)
    np.testing.assert_allclose(flipped, base.vertices, atol=1e-6)
    assert base.eyes[0, 0] > 0.025 > -0.025 > base.eyes[1, 0]
    assert base.vertices[base.landmarks[30], 1] < base.eyes[0, 1] < base.vertices[base.landmarks[0], 1]
    assert (base.material[: base.solid] != LASH).all()
    assert (base.material[base.solid :] == LASH).all()
    assert len(base.lower_teeth) == len(base.teeth) / 2
    assert 0 <= base.occlusion.min() <= base.occlusion.max() <= 1
    np.testing.assert_allclose(np.linalg.norm(base.normals[np.unique(base.triangles)], axis=1), 1, atol=1e-5)


def test_sparse_shapes_equal_dense_ones_and_come_in_pairs():
    base = template()
    weights = generator(0, "weights").normal(size=len(base.names)).astype(np.float32)
    dense = base.vertices + np.tensordot(weights, base.shapes, axes=(0, 0))
    sums = np.zeros_like(base.vertices)
    np.add.at(sums, base.moved, base.moves * np.repeat(weights, np.diff(base.starts))[:, None])
    np.testing.assert_allclose(base.vertices + sums, dense, atol=1e-5)
    local = [name for name in base.names if name.startswith("local_change:")]
    assert len(local) == 2 * len(base.local_names) == 2 * len(person().local)
    assert [name.split(":")[1] for name in local[::2]] == list(base.local_names)


def test_distances_are_zero_on_the_skin_and_change_sign_there():
    base = template()
    for number in base.landmarks[[8, 27, 30, 17]]:
        outside, inside = (base.vertices[number] + step * base.normals[number] for step in (0.015, -0.015))
        for place, sign in ((outside, 1), (inside, -1)):
            cell = np.rint((place - np.array([-0.24, -0.22, 0.40])) / 0.005).astype(int)
            assert np.sign(base.distance[tuple(cell)]) == sign


def test_same_person_and_shot_give_the_same_bytes():
    def drawn():
        head = Head(Body(person(1)), plain(1, yaw=12.0, pitch=-5.0, actions={"mouthSmileLeft": 0.7}), N)
        return head.points.tobytes() + head.normals.tobytes() + head.landmarks().tobytes()

    assert drawn() == drawn()


def test_people_differ_and_their_eyes_stay_in_place():
    bodies = [Body(person(number)) for number in range(12)]
    assert len({body.neutral.tobytes() for body in bodies}) == len(bodies)
    base = template()
    for body in bodies:
        middle = body.neutral[np.concatenate([base.left_eye, base.right_eye])].mean(0)
        np.testing.assert_allclose(middle, base.eyes.mean(0), atol=0.008)
        assert abs(middle[0]) < 0.001


def test_faces_are_not_crooked():
    base = template()
    for number in range(40):
        marks = Body(person(number)).neutral[base.landmarks]
        middle = marks[[36, 45], 0].mean()
        assert np.abs(marks[[30, 33, 51, 57, 8], 0] - middle).max() < 0.003


@pytest.mark.parametrize("pose", [{}, {"yaw": 25.0}, {"yaw": -25.0, "pitch": 10.0}, {"pitch": -12.0}])
def test_landmarks_have_the_order_of_ibug(pose):
    for number in range(6):
        marks = points(number, **pose)
        back = -0.02 * N if pose else -0.01 * N  # an ear or a jaw can lie behind the near cheek
        assert (np.diff(marks[:17, 0]) > back).all()
        assert (np.diff(marks[17:27, 0]) > 0).all()
        assert (np.diff(marks[27:31, 1]) > 0).all()
        assert marks[36, 0] < marks[39, 0] < marks[42, 0] < marks[45, 0]
        assert marks[37, 1] < marks[41, 1]
        assert marks[44, 1] < marks[46, 1]
        assert marks[48, 0] < marks[51, 0] < marks[54, 0]
        assert marks[51, 1] < marks[57, 1]
        assert marks[8, 1] >= marks[:, 1].max() - 3


def test_contour_points_lie_on_the_silhouette_of_the_half_that_is_turned_away():
    base, moved = template(), 0.0
    for number in range(4):
        for yaw in (-35.0, 35.0):
            head = Head(Body(person(number)), plain(number, yaw=yaw), N)
            marks = head.landmarks()
            far = range(1, 5) if yaw < 0 else range(12, 16)
            for k in far:
                row = round(float(marks[k, 1]))
                columns = np.flatnonzero(materials(head)[row] >= 0)
                edge = columns[0] if yaw < 0 else columns[-1]
                assert abs(marks[k, 0] - edge) < 0.02 * N
            fixed = head.camera.project(head.points[base.landmarks[list(far)]])[:, :2]
            moved = max(moved, float(np.abs(fixed - marks[list(far)]).max()))
    assert moved > 0.02 * N


def test_crop_is_that_of_ffhq():
    """Of an upright face: the side is the larger of 4 eye distances and 3.6 eye-mouth distances, 0.1 below the eyes."""
    for number in range(6):
        marks = points(number).astype(np.float64)
        left, right = marks[LEFT_EYE].mean(0), marks[RIGHT_EYE].mean(0)
        eyes, mouth = (left + right) / 2, (marks[48] + marks[54]) / 2
        side = max(4.0 * np.hypot(*(right - left)), 3.6 * np.hypot(*(mouth - eyes)))
        assert side == pytest.approx(N, rel=2e-3)
        np.testing.assert_allclose(eyes + 0.1 * (mouth - eyes), [(N - 1) / 2, (N - 1) / 2], atol=0.2)


def test_crop_moves_and_grows_as_the_shot_tells():
    still, moved, wide = points(2), points(2, shift=np.array([0.1, -0.05])), points(2, zoom=1.25)
    np.testing.assert_allclose(moved, still + N * np.array([-0.1, 0.05]), atol=0.05)
    middle = (N - 1) / 2
    np.testing.assert_allclose((wide - middle) * 1.25, still - middle, atol=0.05)


def test_positive_angles_look_right_up_and_lean_right():
    def tip_from_eyes(**pose):
        marks = points(6, **pose)
        return marks[30] - (marks[LEFT_EYE].mean(0) + marks[RIGHT_EYE].mean(0)) / 2, marks

    straight, _ = tip_from_eyes()
    assert tip_from_eyes(yaw=20.0)[0][0] > straight[0] + 6 > tip_from_eyes(yaw=-20.0)[0][0] + 6
    assert tip_from_eyes(pitch=12.0)[0][1] < straight[1] < tip_from_eyes(pitch=-12.0)[0][1]
    leaning = tip_from_eyes(roll=10.0)[1]
    assert leaning[45, 1] > leaning[36, 1] + 6  # the eye on the picture's right is the lower one


def test_camera_finds_the_place_that_it_projects():
    camera = Head(Body(person(0)), plain(0, roll=20.0, shift=np.array([0.02, 0.01])), N).camera
    places = generator(0, "places").uniform(-0.1, 0.1, (50, 3)).astype(np.float32) + np.array([0, 0, 0.7], np.float32)
    x, y, depth = camera.project(places).T
    np.testing.assert_allclose(camera.place(x, y, depth), places, atol=1e-5)


def test_chest_turns_less_than_the_head():
    base = template()
    share = share_of_head(base.vertices)
    assert share[base.landmarks].min() == 1
    assert share[base.vertices[:, 2] < 0.52].max() == 0
    body = Body(person(0))
    turned, still = (Head(body, plain(0, yaw=yaw), N).points for yaw in (30.0, 0.0))
    far = np.abs(base.vertices[:, 0]) > 0.05
    head, chest = (np.abs(turned - still)[far & mask].max() for mask in (share == 1, share == 0))
    assert head > 0.02
    assert chest > 0.005


def test_strands_follow_the_shape_and_their_roots_the_expression():
    base, body = template(), Body(person(2))
    head = Head(body, plain(2, actions={"browInnerUp": 1.0}), N)
    number = int(base.landmarks[21])
    triangle = int(np.flatnonzero((base.triangles == number).any(1))[0])
    share = (base.triangles[triangle] == number).astype(np.float32)[None]
    strand = base.vertices[number] + np.array([[[0, 0, 0], [0, -0.001, 0.002]]], np.float32)
    on_skin = head.carry(strand, skin=(np.array([triangle]), share))
    np.testing.assert_allclose(on_skin[0, 0], head.points[number], atol=1e-6)
    assert np.linalg.norm(head.carry(strand)[0, 0] - body.neutral[number]) < 0.004


def test_expression_moves_the_mouth():
    def corners_and_gap(**actions):
        marks = points(7, actions=actions)
        return marks[[51, 57], 1].mean() - marks[[48, 54], 1].mean(), marks[66, 1] - marks[62, 1]

    assert corners_and_gap(mouthSmile=1.0)[0] > corners_and_gap()[0] + 2
    assert corners_and_gap(jawOpen=0.6)[1] > corners_and_gap()[1] + 6


def test_a_blink_closes_the_eyes_of_everybody():
    for number in range(10):
        body = Body(person(number))
        shut = materials(Head(body, plain(number, actions={"eyeBlinkLeft": 1.0, "eyeBlinkRight": 1.0}), N))
        open_ = materials(Head(body, plain(number), N))
        assert (open_ == EYE).sum() > 100
        assert (shut == EYE).sum() < 0.03 * (open_ == EYE).sum()


def test_teeth_show_only_between_the_lips():
    laugh = {"mouthSmile": 0.95, "jawOpen": 0.1, "mouthUpperUp": 0.9, "mouthLowerDown": 0.7}
    for number in range(10):
        body = Body(person(number))
        assert (materials(Head(body, plain(number), N)) == TEETH).sum() <= 8
        head = Head(body, plain(number, actions=laugh), N)
        rows, columns = np.nonzero(materials(head) == TEETH)
        lips = head.landmarks()[48:60]
        assert len(rows) > 100
        assert lips[:, 0].min() < columns.min() <= columns.max() < lips[:, 0].max()
        assert lips[:, 1].min() < rows.min() <= rows.max() < lips[:, 1].max()


def test_cloth_is_thicker_than_skin():
    base, body = template(), Body(person(0))
    bare, dressed = (Head(body, plain(0), N, clothed).expressed for clothed in (None, 0.57 - base.vertices[:, 2]))
    thick = ((dressed - bare) * base.normals).sum(1)
    low, high = base.vertices[:, 2] < 0.55, base.vertices[:, 2] > 0.60
    assert thick[low & np.isin(np.arange(len(thick)), base.triangles[base.material == SKIN])].min() > 0.005
    assert np.abs(thick[high]).max() == 0


def test_measures_do_not_depend_on_the_size_of_the_head():
    base, body = template(), Body(person(3))
    for name, value in measure(body.neutral * np.float32(1.2), base).items():
        assert value == pytest.approx(body.measured[name], abs=2e-3), name


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ("nose-scale-horiz-incr", "nose_width"), ("mouth-scale-horiz-incr", "mouth_width"),
        ("mouth-scale-vert-incr", "lips_height"), ("chin-width-incr", "chin_width"),
        ("nose-scale-depth-incr", "nose_tip"),
        ("head-fat-incr", "jaw_width"), ("neck-double-incr", "double_chin"), ("chin-height-incr", "face_length"),
    ],
)  # fmt: skip
def test_measures_follow_the_local_changes(change, name):
    base = template()
    amounts = np.zeros(len(base.local_names))
    still = Body(person(0, local=amounts)).measured[name]
    amounts[base.local_names.index(change)] = 0.8
    assert Body(person(0, local=amounts)).measured[name] > still + 0.01


def test_a_heavy_person_has_a_heavy_face():
    thin, heavy = (Body(person(0, weight=weight)).measured for weight in (0.1, 0.9))
    for name in ("jaw_width", "fullness", "double_chin"):
        assert heavy[name] > thin[name] + 0.01, name


@pytest.mark.parametrize(
    ("of", "change", "text"),
    [
        (person, {"age": 5.0}, "age is 5; allowed are values from 10 to 90"),
        (person, {"muscle": -0.1}, "muscle is -0.1"),
        (person, {"weight": 1.5}, "weight is 1.5; allowed are values from 0 to 1"),
        (person, {"ancestry": np.array([0.5, 0.6, 0.2])}, "ancestry is .* sum to 1"),
        (person, {"local": np.zeros(3)}, "local has 3 amounts; allowed are 139"),
        (person, {"local": np.full(139, 2.0)}, "local change .* is 2; allowed are values from -1 to 1"),
        (plain, {"yaw": 75.0}, "yaw is 75; allowed are values from -60 to 60"),
        (plain, {"pitch": -50.0}, "pitch is -50"),
        (plain, {"roll": 90.0}, "roll is 90"),
        (plain, {"zoom": 0.1}, "zoom is 0.1"),
        (plain, {"distance": float("nan")}, "distance is nan"),
        (plain, {"actions": {"mouthSmile": 1.4}}, "facial action mouthSmile is 1.4; allowed are values from 0 to 1"),
        (plain, {"actions": {"wink": 1.0}}, "there is no facial action wink; there are .*eyeBlinkLeft"),
    ],
)
def test_person_or_shot_outside_its_range_is_refused_by_name(of, change, text):
    with pytest.raises(ValueError, match=text):
        Head(Body(person(0, **(change if of is person else {}))), plain(0, **(change if of is plain else {})), N)


def test_derivation_keeps_what_acts_on_the_head():
    from drawnpeople.derivation import is_needed, sparse

    assert is_needed("race:asian-male-young")
    assert is_needed("local_change:l-ear-lobe-incr")
    assert not is_needed("race:asian-male-baby")
    assert not is_needed("local_change:l-hand-scale-incr")
    shapes = np.zeros((2, 4, 3), np.float32)
    shapes[0, 2], shapes[1, 3] = 0.001, -0.002
    packed = SimpleNamespace(**sparse(shapes))
    assert packed.count.tolist() == [1, 1]
    assert packed.gap.tolist() == [2, 3]
    assert packed.steps[:, 0].tolist() == [200, 200, 200]
