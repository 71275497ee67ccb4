"""One update of each phase of iFADIT's training (section 3.5)."""

from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from masquerade.core import seeding
from masquerade.methods.ifadit import losses
from masquerade.methods.ifadit.frozen import Batch, FrozenNetworks, TrainingPictures
from masquerade.methods.ifadit.network import Disentangler, Transform, drawn_secrets
from masquerade.methods.ifadit.refinement import refine, rounded
from masquerade.methods.ifadit.settings import IfaditSettings, ImageWeights
from masquerade.training.optimizers import Optimizers, cooldown_share


class Phase:
    """The base class of the phases. The batch of a step depends only on the seed and its number in the phase."""

    name: str
    steps: int
    modules: dict[str, nn.Module]
    optimizers: dict[str, Optimizers]

    def __init__(self, settings: IfaditSettings, networks: FrozenNetworks, known: TrainingPictures, seed: int):
        self.settings, self.networks, self.known, self.seed = settings, networks, known, seed

    def step(self, step: int) -> dict[str, float]:
        """One update. Returns the losses by name."""
        raise NotImplementedError

    def rate(self, step: int) -> float:
        """The learning rate of a step, as a share of the largest one."""
        return cooldown_share(step, self.steps, self.settings.cooldown)


class PicturePhase(Phase):
    """A phase that draws pictures with a disentangler."""

    def __init__(self, settings: IfaditSettings, networks: FrozenNetworks, known: TrainingPictures, seed: int,
                 disentangler: Disentangler):  # fmt: skip
        super().__init__(settings, networks, known, seed)
        self.disentangler = disentangler

    def draw(self, identity: Tensor, attributes: Tensor) -> Tensor:
        """R of Eq. 1: the picture of an identity and attributes."""
        return self.networks.generator.synthesize(self.disentangler.codes(identity, attributes))

    def refined(self, made: Tensor, background: Tensor, mask: Tensor | None) -> Tensor:
        """A changed face for the losses: with the background refined and rounded to 8 bits, if the settings say so."""
        if not self.settings.refined:
            return made
        assert mask is not None
        return rounded(refine(made, background, mask))

    def reconstruction(self, made: Tensor, batch: Batch) -> Tensor:
        """L_P1, Eq. 14, of reconstructions X~."""
        chosen = self.settings.phase_one
        quality = losses.visual_quality(made, batch.images, chosen.structure, chosen.pixels)  # Eq. 12
        return chosen.quality * quality + self.semantics(made, batch.identity, batch.points)

    def semantics(self, made: Tensor, identity: Tensor, points: Tensor) -> Tensor:
        """L_Sem, Eq. 13."""
        return losses.distance(self.networks.identity(made), identity) + losses.distance(
            self.networks.points(made), points
        )

    def train_disentangler(self, learns: bool) -> None:
        """Train E_Attr and M, or freeze them. An encoder that starts from the inversion keeps its statistics."""
        self.disentangler.requires_grad_(learns)
        self.disentangler.train(learns and self.settings.encoder.start == "identity")


class PhaseOne(PicturePhase):
    """E_Attr and M learn to reconstruct: section 3.5.1."""

    name = "phase_one"

    def __init__(self, *given):
        super().__init__(*given)
        chosen = self.settings.phase_one
        self.steps = chosen.steps
        self.modules = {"disentangler": self.disentangler}
        kernels = (4,) if chosen.optimizer == "muon" else ()
        self.optimizers = {"all": Optimizers(self.modules, chosen.learning_rate, self.settings.betas, kernels)}

    def step(self, step: int) -> dict[str, float]:
        self.train_disentangler(True)
        chosen = self.settings.phase_one
        draw = seeding.make_generator(self.seed, "phase one", step)
        batch = self.known.batch(draw.integers(0, len(self.known), chosen.batch))
        others = round(chosen.swapped * chosen.batch)  # the first pictures of the batch take another identity
        identity = batch.identity.clone()
        identity[:others] = self.known.identity[torch.from_numpy(draw.integers(0, len(self.known), others))].to(
            identity
        )
        attributes = self.disentangler.attributes(batch.images)
        made = self.draw(identity, attributes)
        values = {}
        if others < chosen.batch:
            values["reconstruction"] = self.reconstruction(made[others:], _of(batch, slice(others, None)))
        if others:
            part = _of(batch, slice(0, others))
            swapped = self.refined(made[:others], part.images, part.mask)
            values["swapped"] = self.semantics(swapped, identity[:others], part.points)
            if chosen.cycle:
                # Without the gradient of the picture, or the network could hide the original in it.
                again = self.draw(part.identity, self.disentangler.attributes(swapped.detach()))
                values["cycle"] = self.reconstruction(again, part)
        shares = {"reconstruction": 1 - others / chosen.batch, "swapped": others / chosen.batch,
                  "cycle": chosen.cycle * others / chosen.batch}  # fmt: skip
        total = cast("Tensor", sum(shares[name] * value for name, value in values.items()))
        self.optimizers["all"].descend(total, self.rate(step))
        return {f"phase_one/{name}": value.item() for name, value in (values | {"total": total}).items()}


class PhaseTwo(PicturePhase):
    """T and C learn to change an identity and to recover it: section 3.5.2. All other networks are frozen.

    With ``joint`` E_Attr and M learn too, by L_P1 + L_P2: Table 5, w/o DPT.
    """

    name = "phase_two"

    def __init__(self, settings: IfaditSettings, networks: FrozenNetworks, known: TrainingPictures, seed: int,
                 disentangler: Disentangler, transform: Transform, joint: bool):  # fmt: skip
        super().__init__(settings, networks, known, seed, disentangler)
        chosen = settings.phase_two
        self.transform, self.joint = transform, joint
        self.steps = chosen.alone if joint else chosen.steps
        self.modules = {"transform": transform}
        learning = self.modules | ({"disentangler": disentangler} if joint else {})
        kernels = (4,) if joint and settings.phase_one.optimizer == "muon" else ()
        self.optimizers = {"all": Optimizers(learning, chosen.learning_rate, settings.betas, kernels)}
        self.lpips = None
        if settings.image_loss and (chosen.recovered.lpips or chosen.altered.lpips):
            from masquerade.backbones.inversion.training import perceptual

            self.lpips = perceptual(
                networks.device, "methods.ifadit.params.phase_two.recovered.lpips and altered.lpips"
            )

    def step(self, step: int) -> dict[str, float]:
        self.train_disentangler(self.joint)
        draw = seeding.make_generator(self.seed, "phase two", step)
        count = self.settings.phase_two.batch
        batch = self.known.batch(pairs(draw, len(self.known), count))
        secrets = drawn_secrets(self.networks.generator, draw, count)
        attributes = self.disentangler.attributes(batch.images)
        values = self.losses(batch, *secrets, attributes)
        if self.joint:
            values["reconstruction"] = self.reconstruction(self.draw(batch.identity, attributes), batch)
        weights = {"compensation_distance": self.settings.phase_two.compensation}
        total = cast("Tensor", sum(weights.get(name, 1.0) * value for name, value in values.items()))  # Eq. 22
        self.optimizers["all"].descend(total, self.rate(step))
        return {f"phase_two/{name}": value.item() for name, value in (values | {"total": total}).items()}

    def losses(self, batch: Batch, first: Tensor, second: Tensor, attributes: Tensor) -> dict[str, Tensor]:
        """The terms of L_P2, Eq. 22, of a batch under two secrets."""
        settings, networks, transform = self.settings, self.networks, self.transform
        mask = batch.mask
        twice = _twice(batch)
        hidden = torch.cat([transform(batch.identity, first), transform(batch.identity, second)])
        anonymized = self.draw(hidden, torch.cat([attributes, attributes]))  # Eq. 9
        anonymized = self.refined(anonymized, twice.images, twice.mask)
        vectors = networks.identity(anonymized)
        by_secret = vectors.chunk(2)
        values = {"anonymity": losses.anonymity(vectors, twice.identity)}
        if settings.diversity_loss:
            values["diversity"] = losses.diversity(*by_secret)
        # Eq. 10: from the picture under the first secret, with that secret and with the other one
        corrected = transform.compensation(vectors)
        under_first = corrected[: len(first)]
        back = torch.cat([transform.inverse(under_first, first), transform.inverse(under_first, second)])
        public = anonymized[: len(first)]
        again = self.disentangler.attributes(public)
        recovered = self.draw(back, torch.cat([again, again]))
        recovered = self.refined(recovered, torch.cat([public, public]), None if mask is None else twice.mask)
        right_again, wrong_again = networks.identity(recovered).chunk(2)
        values["recovery"] = losses.recovery(right_again, wrong_again, batch.identity)
        if settings.compensation and settings.phase_two.compensation:
            values["compensation_distance"] = losses.compensation(corrected, hidden)
        if settings.image_loss:
            right, wrong = recovered.chunk(2)
            values["image"] = self.all_images(anonymized, right, wrong, batch)
        return values

    def all_images(self, anonymized: Tensor, right: Tensor, wrong: Tensor, batch: Batch) -> Tensor:
        """L_Img, Eq. 20, of faces anonymized (2 N, ...), recovered with the right secret, and with a wrong one."""
        chosen, twice = self.settings.phase_two, _twice(batch)
        value = self.image_loss(right, batch, chosen.recovered)
        if chosen.image_terms == "pooled":
            return value + self.image_loss(torch.cat([anonymized, wrong]), _joined(twice, batch), chosen.altered)
        value = value + self.image_loss(anonymized, twice, chosen.altered)
        return value + self.image_loss(wrong, batch, chosen.altered)

    def image_loss(self, made: Tensor, batch: Batch, weights: ImageWeights) -> Tensor:
        """L_Img, Eq. 20, of drawn pictures, with the weights of Eq. 21."""
        value = weights.pixels * (made - batch.images).abs().mean()
        if weights.lpips:
            assert self.lpips is not None
            value = value + weights.lpips * self.lpips(made, batch.images).mean()
        if weights.landmarks:
            value = value + weights.landmarks * losses.distance(self.networks.points(made), batch.points)
        if weights.parsing:
            with torch.no_grad():
                target = self.networks.parsing(batch.images)
            norm = self.settings.phase_two.parsing_norm
            value = value + weights.parsing * losses.parsing(self.networks.parsing(made), target, norm)
        return value


def pairs(draw: np.random.Generator, known: int, count: int) -> np.ndarray:
    """Rows of a batch, int (count,): 2 p and 2 p + 1 are two pictures, X_i and X_j of Eq. 17, with the same secrets."""
    first = draw.integers(0, known, count // 2)
    second = (first + draw.integers(1, known, len(first))) % known  # never the same picture
    return np.stack([first, second], axis=1).reshape(-1)


def _of(batch: Batch, rows: slice) -> Batch:
    return Batch(batch.images[rows], batch.identity[rows], batch.points[rows],
                 None if batch.mask is None else batch.mask[rows])  # fmt: skip


def _joined(first: Batch, second: Batch) -> Batch:
    return Batch(
        torch.cat([first.images, second.images]),
        torch.cat([first.identity, second.identity]),
        torch.cat([first.points, second.points]),
        None if first.mask is None or second.mask is None else torch.cat([first.mask, second.mask]),
    )


def _twice(batch: Batch) -> Batch:
    return _joined(batch, batch)
