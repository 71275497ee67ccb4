"""The inpainters: regions, guides, errors, published sizes, and a frozen generator in place of their networks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import kit
from masquerade.core.errors import ParameterError
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.methods._inpainting import region
from masquerade.methods._inpainting.training import People, Scenes, compute_differences, jitter_boxes
from masquerade.methods.anonymousnet.training import StarGanCritic, StarGanGenerator
from masquerade.methods.ciagan.training import CiaganCritic, CiaganGenerator, choose_people
from masquerade.methods.dartblur.training import DartBlurUNet
from masquerade.methods.deepprivacy import DeepPrivacySettings
from masquerade.methods.deepprivacy.training import DeepPrivacyTask, InpaintingUNet, pose_maps
from masquerade.methods.deepprivacy2.training import DeepPrivacy2Task, StyleUNet
from masquerade.methods.fit.training import IdentityTransformer, PasswordClassifier
from masquerade.methods.riddle.network import LatentEncryptor
from masquerade.networks.grid_detector import build_targets
from masquerade.params import loading

CIAGAN = ([32, 64, 128, 256, 256], [256, 128, 64, 32, 16], 1200, [256] * 4 + [512] * 3)
"""The published sizes of CIAGAN's generator."""


PEOPLE = People(kit.noise(4), np.repeat(kit.landmarks(32), 4, axis=0), ["a", "b", "c", "d"])


def parameters(build) -> int:
    with torch.device("meta"):
        return sum(weight.numel() for weight in build().parameters())


@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda: InpaintingUNet([128, 256, 512, 512, 512, 512]), 46_924_931),  # README of the code: "46 million"
        (lambda: InpaintingUNet([64, 128, 256, 256, 256, 256]), 11_743_811),  # "12 million": the same
        (lambda: StyleUNet(256, 8, 64, 8, 512), 43_131_523),
        (lambda: StyleUNet(128, 8, 128, 4, 512), 42_569_987),
        # 11.79 million in convolutions and layers, and 10,432 in norms
        (lambda: CiaganGenerator(*CIAGAN), 11_801_123),
        (lambda: CiaganCritic([64, 128, 256, 512, 512], 1024, 128), 18_233_409),
        (lambda: DartBlurUNet([32, 64, 128, 256, 512]), 12_653_187),
        (lambda: StarGanGenerator(5), 8_430_528),
        (lambda: StarGanCritic(128, 5), 44_762_048),
        (lambda: IdentityTransformer(16, 64, 2, 9, reach=0.0), 11_384_451),
        (lambda: PasswordClassifier(16, 4, 64, 5, last_stride=4, first_norm=False), 6_988_672),
        (lambda: LatentEncryptor(14), 11_834_368),
    ],
    ids=["deepprivacy large", "deepprivacy", "deepprivacy2 256", "deepprivacy2 128", "ciagan", "ciagan critic",
         "dartblur", "stargan", "stargan critic", "fit", "fit classifier", "riddle"],
)  # fmt: skip
def test_network_has_as_many_parameters_as_the_published_one(build, count):
    assert parameters(build) == count


def test_seven_keypoints_are_where_the_landmarks_are_and_shoulders_are_unknown():
    points = region.select_keypoints(kit.landmarks(), 64)[0]
    assert points[1, 0] > points[2, 0], "the left eye of the person is on the right"
    assert points[3, 0] > points[4, 0], "and so is the left ear"
    np.testing.assert_allclose(points[1], (0.6 + 0.5 / 64, 0.45 + 0.5 / 64), atol=1e-6)
    assert (points[5:] == region.OUTSIDE).all()


@given(st.integers(2, 6), st.floats(-0.5, 1.5), st.floats(-0.5, 1.5))
@settings(max_examples=60, deadline=None)
def test_pose_map_has_one_pixel_for_a_keypoint_inside_and_none_outside(power, x, y):
    size = 2**power
    made = pose_maps(torch.tensor([[[x, y]]], dtype=torch.float64), size)[0, 0]
    inside = 0 <= x < 1 and 0 <= y < 1
    assert made.sum() == inside
    if inside:
        assert made[int(y * size), int(x * size)] == 1


def test_masks_of_boxes_are_the_boxes():
    mask = region.draw_masks(np.array([[1, 2, 4, 6]]), 8)[0]
    rows, columns = np.nonzero(mask)
    assert mask.sum() == 12
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (2, 5, 1, 3)


def test_polygon_lies_between_brows_and_jaw():
    mask = region.draw_polygon_masks(kit.landmarks(), 64)[0]
    rows, _ = np.nonzero(mask)
    assert mask[40, 32]
    assert rows.min() == pytest.approx(0.4 * 64, abs=1)
    assert rows.max() == pytest.approx(48, abs=1)


def test_outlines_are_lines_of_jaw_nose_and_mouth_alone():
    picture = region.draw_outlines(kit.landmarks(), 64)[0, 0]
    assert set(np.unique(picture)) == {0.0, 1.0}
    assert picture[48, 32] == 0, "the chin"
    assert picture[round(0.45 * 64), round(0.4 * 64)] == 1, "no eye"


def test_boxes_are_jittered_by_at_most_their_share_and_stay_in_the_picture():
    corners = np.tile([[10, 12, 50, 60]], (200, 1))
    moved = jitter_boxes(corners, 0.1, 64, np.random.default_rng(0))
    assert np.abs(moved - corners).max(axis=0).tolist() <= [5, 6, 5, 6]
    assert moved.min() >= 0
    assert moved.max() <= 64
    assert len(np.unique(moved, axis=0)) > 20


def scenes(drawn: float = 0.5) -> tuple[Scenes, torch.Tensor]:
    mask = torch.zeros(2, 1, 4, 4)
    mask[:, :, 1:3, 1:3] = 1
    made = Scenes(torch.zeros(2, 3, 4, 4), mask, torch.zeros(2, 0), torch.zeros(2, 1), np.arange(2))
    return made, made.paste(torch.full((2, 3, 4, 4), drawn))


def test_errors_are_means_over_the_drawn_pixels_and_their_edges():
    made, pasted = scenes(0.5)
    values = compute_differences(pasted, made, torch.tensor([True, True]))
    assert values["reconstruction"].item() == pytest.approx(0.5)
    # down: 6 pairs have a drawn pixel, 4 of them change by 0.5; the same across
    assert values["edges"].item() == pytest.approx(0.5 * 4 / 6)


def test_texture_is_compared_whatever_its_place():
    """Points at other pixels have the same texture in the middle; a flat image has none."""
    mask = torch.zeros(1, 1, 32, 32)
    mask[..., 12:20, 12:20] = 1
    dots = torch.zeros(1, 3, 32, 32)
    dots[..., 2::7, 2::7] = 1
    made = Scenes(dots, mask, torch.zeros(1, 0), torch.zeros(1, 1), np.arange(1))
    wanted = torch.tensor([True])
    moved, flat = (compute_differences(each, made, wanted)["texture"].item() for each in (dots.roll(3, 3), dots * 0))
    assert moved == pytest.approx(0, abs=1e-6)
    assert flat == pytest.approx(8 / 49, rel=1e-3), "of 49 pixels one has the magnitude 4 and four have 1"


def test_the_critic_learns_and_counts_from_its_step_on(root):
    tree = loading.load(root, "tiny").methods["deepprivacy"].params.model_dump()
    small_scale = {"small_scale": {"critic_from": 1, "penalty_every": 2}}
    task = DeepPrivacyTask(DeepPrivacySettings(**tree | small_scale), PEOPLE, seed=0)
    assert [task.penalizes(step) for step in range(4)] == [True, False, True, False]
    before = [weight.clone() for weight in task.critic.parameters()]
    for step in range(2):
        values = task.step(step)
        changed = any(not torch.equal(a, b) for a, b in zip(before, task.critic.parameters(), strict=True))
        assert changed == ("critic" in values) == ("adversarial" in values) == (step == 1)


def test_the_penalty_of_deepprivacy2_is_the_slope_of_the_picture_alone(root, monkeypatch):
    """Not of the hidden image that the critic sees beside it: scores with a slope of 2 and 5 cost R1 of 2."""
    task = DeepPrivacy2Task(loading.load(root, "tiny").methods["deepprivacy2"].params, PEOPLE, seed=0)
    weights, every = task.settings.losses, task.settings.r1_every
    monkeypatch.setattr(task, "scores", lambda images, made: (2 * images + 5 * made.hidden).sum(dim=(1, 2, 3)))
    made, pasted = scenes(0.5)
    plain, penalized = (task.critic_loss(made, pasted, step).item() for step in (1, 0))
    assert penalized - plain == pytest.approx(weights.r1 / 2 * every * 4 * 3 * 4 * 4)


def test_people_without_landmarks_get_no_label_of_ciagan(tmp_path):
    with ArchiveWriter(tmp_path / "faces.zip", {"dataset": "made up"}) as out:
        for number in range(4):
            row = {"id": f"{number}", "identity": f"person{number}", "split": "train"}
            row["landmarks"] = kit.landmarks(32)[0].ravel() if number < 3 else None
            out.add(np.zeros((32, 32, 3), np.uint8), row)
    archive = FaceArchive(tmp_path / "faces.zip")
    assert sorted(choose_people(archive, "train", 3)) == ["person0", "person1", "person2"]
    with pytest.raises(ParameterError, match=r"labels is 4, .* has 3 people with known landmarks"):
        choose_people(archive, "train", 4)


def test_pictures_that_are_not_wanted_are_not_compared():
    made, pasted = scenes(0.5)
    pasted[1] += 7
    values = compute_differences(pasted, made, torch.tensor([True, False]))
    assert values["reconstruction"].item() == pytest.approx(0.5)
    assert compute_differences(pasted, made, torch.tensor([False, False]))["reconstruction"].item() == 0


def test_grid_target_says_where_the_center_of_the_box_is():
    target = build_targets(torch.tensor([[16.0, 32.0, 48.0, 64.0]]), 64, 4)[0]
    assert target[0].nonzero().tolist() == [[3, 2]]
    np.testing.assert_allclose(target[1:, 3, 2], [0, 0, 0.5, 0.5])
    assert target[1:].isnan().sum() == 4 * 15


def test_style_of_the_mean_ignores_the_random_numbers():
    torch.manual_seed(0)
    network = StyleUNet(16, 8, 4, 2, 8).eval()
    hidden, mask, guide = torch.zeros(1, 3, 16, 16), torch.ones(1, 1, 16, 16), torch.zeros(1, 0)
    with torch.inference_mode():
        made = [network(hidden, mask, guide, torch.randn(1, 8)) for _ in range(2)]
        network.truncation = 0.0
        mean = [network(hidden, mask, guide, torch.randn(1, 8)) for _ in range(2)]
    assert not torch.equal(*made)
    assert torch.equal(*mean)
