"""One update of each phase of iFADIT's training (section 3.5)."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from masquerade import seeding
from masquerade.identity_flow import losses
from masquerade.identity_flow.network import Disentangler, Transform, drawn_secrets
from masquerade.identity_flow.refinement import refine, rounded
from masquerade.identity_flow.settings import IdentityFlowSettings, ImageWeights
from masquerade.identity_flow.world import Batch, Known, World
from masquerade.optimisers import Optimisers, cooled


class Phase:
    """What all phases share. The batch of a step depends on the seed and the number of the step in its phase."""

    name: str
    steps: int
    modules: dict[str, nn.Module]
    optimisers: Optimisers

    def __init__(self, settings: IdentityFlowSettings, world: World, known: Known, seed: int):
        self.settings, self.world, self.known, self.seed = settings, world, known, seed

    def step(self, step: int) -> dict[str, float]:
        raise NotImplementedError

    def rate(self, step: int) -> float:
        """The share of the largest learning rate."""
        return cooled(step, self.steps, self.settings.cooldown)


class PicturePhase(Phase):
    """A phase that draws pictures with a disentangler."""

    def __init__(self, settings: IdentityFlowSettings, world: World, known: Known, seed: int,
                 disentangler: Disentangler):  # fmt: skip
        super().__init__(settings, world, known, seed)
        self.disentangler = disentangler

    def draw(self, identity: Tensor, attributes: Tensor) -> Tensor:
        """R of Eq. 1: the picture of an identity and attributes."""
        return self.world.generator.synthesize(self.disentangler.codes(identity, attributes))

    def shown(self, made: Tensor, background: Tensor, mask: Tensor | None) -> Tensor:
        """A changed face as the losses see it."""
        return rounded(refine(made, background, mask)) if self.settings.refined else made

    def reconstruction(self, made: Tensor, batch: Batch) -> Tensor:
        """L_P1, Eq. 14, of reconstructions X~."""
        asked = self.settings.phase_one
        quality = losses.visual_quality(made, batch.images, asked.structure, asked.pixels)  # Eq. 12
        return asked.quality * quality + self.semantics(made, batch.identity, batch.points)

    def semantics(self, made: Tensor, identity: Tensor, points: Tensor) -> Tensor:
        """L_Sem, Eq. 13."""
        return losses.distance(self.world.identity(made), identity) + losses.distance(self.world.points(made), points)

    def learn_to_take_apart(self, learns: bool) -> None:
        """Let E_Attr and M learn or not. An encoder that starts as another was left keeps that one's statistics."""
        self.disentangler.requires_grad_(learns)
        self.disentangler.train(learns and self.settings.encoder.start == "identity")


class PhaseOne(PicturePhase):
    """E_Attr and M learn to reconstruct: section 3.5.1."""

    name = "phase_one"

    def __init__(self, *given):
        super().__init__(*given)
        asked = self.settings.phase_one
        self.steps = asked.steps
        self.modules = {"disentangler": self.disentangler}
        self.optimisers = Optimisers(
            self.modules, asked.learning_rate, self.settings.betas, (4,) if asked.optimiser == "muon" else ()
        )

    def step(self, step: int) -> dict[str, float]:
        self.learn_to_take_apart(True)
        asked = self.settings.phase_one
        draw = seeding.generator(self.seed, "phase one", step)
        batch = self.known.batch(draw.integers(0, len(self.known), asked.batch))
        others = round(asked.swapped * asked.batch)  # the first of the batch get another's identity
        identity = batch.identity.clone()
        identity[:others] = self.known.identity[torch.from_numpy(draw.integers(0, len(self.known), others))].to(
            identity
        )
        attributes = self.disentangler.attributes(batch.images)
        made = self.draw(identity, attributes)
        values = {}
        if others < asked.batch:
            values["reconstruction"] = self.reconstruction(made[others:], _of(batch, slice(others, None)))
        if others:
            part = _of(batch, slice(0, others))
            shown = self.shown(made[:others], part.images, part.mask)
            values["swapped"] = self.semantics(shown, identity[:others], part.points)
            if asked.cycle:
                # The picture is given, not learnt from here: nothing of the original may hide in it for this purpose.
                again = self.draw(part.identity, self.disentangler.attributes(shown.detach()))
                values["cycle"] = self.reconstruction(again, part)
        shares = {"reconstruction": 1 - others / asked.batch, "swapped": others / asked.batch,
                  "cycle": asked.cycle * others / asked.batch}  # fmt: skip
        total = sum(shares[name] * value for name, value in values.items())
        self.optimisers.descend(total, self.rate(step))
        return {f"phase_one/{name}": value.item() for name, value in (values | {"total": total}).items()}


class PhaseTwo(PicturePhase):
    """T and C learn to change an identity and to bring it back: section 3.5.2. All else is frozen.

    With ``joint`` E_Attr and M learn as well, by L_P1 + L_P2: Table 5, w/o DPT.
    """

    name = "phase_two"

    def __init__(self, settings: IdentityFlowSettings, world: World, known: Known, seed: int,
                 disentangler: Disentangler, transform: Transform, joint: bool):  # fmt: skip
        super().__init__(settings, world, known, seed, disentangler)
        asked = settings.phase_two
        self.transform, self.joint = transform, joint
        self.steps = asked.alone if joint else asked.steps
        self.modules = {"transform": transform}
        learning = self.modules | ({"disentangler": disentangler} if joint else {})
        kernels = (4,) if joint and settings.phase_one.optimiser == "muon" else ()
        self.optimisers = Optimisers(learning, asked.learning_rate, settings.betas, kernels)
        self.lpips = None
        if settings.image_loss and (asked.recovered.lpips or asked.altered.lpips):
            from masquerade.backbones._inversion import perceptual

            self.lpips = perceptual(world.device, "methods.ifadit.params.phase_two.recovered.lpips and altered.lpips")

    def step(self, step: int) -> dict[str, float]:
        self.learn_to_take_apart(self.joint)
        draw = seeding.generator(self.seed, "phase two", step)
        count = self.settings.phase_two.batch
        batch = self.known.batch(pairs(draw, len(self.known), count))
        secrets = drawn_secrets(self.world.generator, draw, count)
        attributes = self.disentangler.attributes(batch.images)
        values = self.losses(batch, *secrets, attributes)
        if self.joint:
            values["reconstruction"] = self.reconstruction(self.draw(batch.identity, attributes), batch)
        weights = {"compensation_distance": self.settings.phase_two.compensation}
        total = sum(weights.get(name, 1.0) * value for name, value in values.items())  # Eq. 22
        self.optimisers.descend(total, self.rate(step))
        return {f"phase_two/{name}": value.item() for name, value in (values | {"total": total}).items()}

    def losses(self, batch: Batch, first: Tensor, second: Tensor, attributes: Tensor) -> dict[str, Tensor]:
        """The terms of L_P2, Eq. 22, of a batch under two secrets."""
        settings, world, transform = self.settings, self.world, self.transform
        mask = batch.mask
        twice = _twice(batch)
        hidden = torch.cat([transform(batch.identity, first), transform(batch.identity, second)])
        anonymized = self.draw(hidden, torch.cat([attributes, attributes]))  # Eq. 9
        anonymized = self.shown(anonymized, twice.images, twice.mask)
        seen = world.identity(anonymized)
        under = seen.chunk(2)
        values = {"anonymity": losses.anonymity(seen, twice.identity)}
        if settings.diversity_loss:
            values["diversity"] = losses.diversity(*under)
        # Eq. 10, from the picture under the first secret, with that secret and with the other one
        corrected = transform.compensation(seen)
        mine = corrected[: len(first)]
        back = torch.cat([transform.inverse(mine, first), transform.inverse(mine, second)])
        public = anonymized[: len(first)]
        again = self.disentangler.attributes(public)
        recovered = self.draw(back, torch.cat([again, again]))
        recovered = self.shown(recovered, torch.cat([public, public]), None if mask is None else twice.mask)
        values["recovery"] = losses.recovery(*world.identity(recovered).chunk(2), batch.identity)
        if settings.compensation and settings.phase_two.compensation:
            values["compensation_distance"] = losses.compensation(corrected, hidden)
        if settings.image_loss:
            right, wrong = recovered.chunk(2)
            asked = settings.phase_two
            values["image"] = self.image_loss(right, batch, asked.recovered) + self.image_loss(
                torch.cat([anonymized, wrong]), _joined(twice, batch), asked.altered
            )
        return values

    def image_loss(self, made: Tensor, batch: Batch, weights: ImageWeights) -> Tensor:
        """L_Img, Eq. 20, of any drawn pictures with the weights of Eq. 21."""
        value = weights.pixels * (made - batch.images).abs().mean()
        if weights.lpips:
            value = value + weights.lpips * self.lpips(made, batch.images).mean()
        if weights.landmarks:
            value = value + weights.landmarks * losses.distance(self.world.points(made), batch.points)
        if weights.parsing:
            with torch.no_grad():
                wanted = self.world.parsing(batch.images)
            value = value + weights.parsing * (self.world.parsing(made) - wanted).square().mean()
        return value


class Training:
    """Phases one after the other, as one task of the training loop."""

    def __init__(self, phases: list[Phase]):
        self.phases = phases
        self.steps = sum(phase.steps for phase in phases)
        self.modules: dict[str, nn.Module] = {}
        for phase in phases:
            self.modules |= phase.modules

    @property
    def optimisers(self) -> Mapping[str, torch.optim.Optimizer]:
        return {
            f"{phase.name}/{name}": optimiser
            for phase in self.phases
            for name, optimiser in phase.optimisers.named.items()
        }

    def kind(self, step: int) -> str:
        return self._at(step)[0].name

    def step(self, step: int) -> dict[str, float]:
        phase, step = self._at(step)
        return phase.step(step)

    def _at(self, step: int) -> tuple[Phase, int]:
        """The phase of a step, and the number of the step in it."""
        for phase in self.phases:
            if step < phase.steps:
                return phase, step
            step -= phase.steps
        raise IndexError("no phase is left")


def pairs(draw: np.random.Generator, known: int, count: int) -> np.ndarray:
    """Rows of a batch; 2 p and 2 p + 1 are two pictures, X_i and X_j of Eq. 17, which share their secrets."""
    first = draw.integers(0, known, count // 2)
    second = (first + draw.integers(1, known, len(first))) % known  # never the same picture
    return np.stack([first, second], axis=1).reshape(-1)


def _of(batch: Batch, rows: slice) -> Batch:
    return Batch(batch.images[rows], batch.identity[rows], batch.points[rows],
                 None if batch.mask is None else batch.mask[rows])  # fmt: skip


def _joined(first: Batch, second: Batch) -> Batch:
    mask = None if first.mask is None else torch.cat([first.mask, second.mask])
    parts = ((first.images, second.images), (first.identity, second.identity), (first.points, second.points))
    return Batch(*map(torch.cat, parts), mask)


def _twice(batch: Batch) -> Batch:
    return _joined(batch, batch)
