"""AnonymousNet: which attributes are chosen, how StarGAN learns, and the perturbation."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import binary_cross_entropy_with_logits

import kit
from masquerade.core.annotations import ATTRIBUTES
from masquerade.methods.anonymousnet import training
from masquerade.methods.anonymousnet.method import AnonymousNet
from masquerade.methods.anonymousnet.training import StarGanGenerator
from masquerade.params import loading

ESTIMATED, LABELS = 1, 40  # updates of stage I, and of the critic alone


@pytest.fixture(scope="module")
def settings(root):
    tiny = loading.load(root, "tiny").methods["anonymousnet"].params
    changes = {
        "critic": tiny.critic.model_copy(update={"learning_rate": 0.01}),
        "small_scale": tiny.small_scale.model_copy(update={"label_steps": LABELS}),
    }
    return tiny.model_copy(update={"batch": 16, "estimator": tiny.estimator.model_copy(update={"steps": 1})} | changes)


@pytest.fixture
def task(settings):
    """Half of the images are white and have all attributes; the others are black and have none."""
    has = np.arange(32) % 2 == 0
    pictures = np.where(has[:, None, None, None], 250, 5) * np.ones((32, 16, 16, 3))
    labels = np.repeat(has[:, None], len(ATTRIBUTES), axis=1)
    return training.AnonymousNetTask(settings, pictures.astype(np.uint8), labels, 0)


def test_the_critic_learns_labels_before_the_generator_learns(task):
    drawn = [weight.clone() for weight in task.network.parameters()]
    losses = [task.step(step) for step in range(ESTIMATED, ESTIMATED + LABELS)]
    assert all(set(loss) == {"labels"} for loss in losses)
    assert losses[-1]["labels"] < 0.2 < losses[0]["labels"]
    assert all(torch.equal(*pair) for pair in zip(drawn, task.network.parameters(), strict=True))
    assert set(task.step(ESTIMATED + LABELS)) == {"adversarial", "classification", "cycle", "critic"}
    assert not all(torch.equal(*pair) for pair in zip(drawn, task.network.parameters(), strict=True))


def test_the_losses_of_stage_three_by_hand(task):
    """Choi et al. 2018, Eq. 3, 4 and 7, from the networks before the update."""
    images, own, wanted = task._draw_batch(50, task.settings.critic_updates)
    task._update_critic = lambda *_: torch.zeros(())
    with torch.no_grad():
        drawn = task.network(images, wanted)
        scores, logits = task.critic(drawn)
        back = task.network(drawn, own)
    found = task.step(50)
    assert found["adversarial"] == pytest.approx(-scores.mean().item(), abs=1e-6)
    expected = binary_cross_entropy_with_logits(logits, wanted).item()
    assert found["classification"] == pytest.approx(expected, abs=1e-6)
    assert found["cycle"] == pytest.approx((back - images).abs().mean().item(), abs=1e-6)


def test_a_generator_with_reach_starts_at_the_picture():
    images, labels = torch.rand(2, 3, 16, 16) * 2 - 1, torch.eye(2)
    assert torch.allclose(StarGanGenerator(2, 4, reach=1.0, scaled=True)(images, labels), images, atol=0.01)
    assert not torch.allclose(StarGanGenerator(2, 4)(images, labels), images, atol=0.3)


@pytest.mark.parametrize("closeness", [0.0, 0.4, 1.0])
def test_chosen_attributes_are_as_close_to_the_population_as_asked(closeness):
    known = torch.tensor([[False, False], [True, False], [True, True]])
    method = AnonymousNet.__new__(AnonymousNet)
    method.variant = SimpleNamespace(closeness=closeness)
    method._population = {"labels": known, "counts": torch.tensor([10, 60, 30])}
    own = np.repeat([[False, True]], 3000, axis=0)  # a label that the population lacks
    chosen = method.choose_labels(own, [str(number) for number in range(len(own))], 7)
    shares = [(chosen == label.numpy()).all(axis=1).mean() for label in known]
    kept = (chosen == own).all(axis=1).mean()
    distance = (np.abs(np.array(shares) - [0.1, 0.6, 0.3]).sum() + kept) / 2  # total variation
    assert kept == pytest.approx(closeness, abs=0.03)
    assert distance == pytest.approx(closeness, abs=0.03)
    again = method.choose_labels(own[:9], [str(number) for number in range(9)], 7)
    assert np.array_equal(again, chosen[:9])


def test_the_perturbation_moves_identities_and_stays_within_its_limit(settings):
    identity = kit.Identity(grid=16)
    pictures = np.random.default_rng(0).integers(60, 190, (24, 16, 16, 3)).astype(np.uint8)
    knobs = settings.model_copy(update={"perturbation": 0.1, "perturbation_steps": 20})
    change = training.search_perturbation(identity, pictures, knobs, 0)
    assert change.abs().max() <= 0.1 + 1e-6
    images = torch.from_numpy(training.to_float(pictures))
    with torch.no_grad():
        own = identity(images)
        signs = torch.from_numpy(np.random.default_rng(1).choice([-0.1, 0.1], change.shape)).float()
        moved, random = (((identity((images + by).clamp(-1, 1)) * own).sum(dim=1)).mean() for by in (change, signs))
    assert moved < random - 0.1
