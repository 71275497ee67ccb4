"""The two stages of CLIP2Protect on one face (Shamshad et al. 2023, section 3)."""

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from masquerade.core import execution
from masquerade.methods.clip2protect.settings import CLIP2ProtectSettings, CLIP2ProtectVariant
from masquerade.methods.latent.space import LatentSpace
from masquerade.networks.inputs import differentiated
from masquerade.networks.stylegan2 import PUBLISHED_LAYERS


class Search:
    """The frozen networks, and the texts as directions in the space of the text-image model."""

    def __init__(self, space: LatentSpace, identity: Any, params: CLIP2ProtectSettings, variant: CLIP2ProtectVariant):
        self.space, self.params, self.variant = space, params, variant
        self.identity = differentiated(identity).to(space.device)
        differentiated(space.semantics.network.visual)
        self.first = round(params.first_layer * space.generator.layers / PUBLISHED_LAYERS)
        with torch.no_grad():
            wanted, source = (
                space.semantics.text([template.replace("$", text) for template in params.templates])
                for text in (variant.prompt, params.source)
            )
        self.wanted, self.source = wanted, source

    def protected(self, image: np.ndarray, code: Tensor, target: np.ndarray) -> np.ndarray:
        """A picture (3, S, S), its W+ (L, D) and the picture of the target -> the protected picture, in [-1, 1]."""
        where = self.space.device
        clear, goal = (torch.from_numpy(picture)[None].to(where) for picture in (image, target))
        start = code[None].to(where)
        generator = self._tuned(clear, start)
        return self._searched(generator, clear, start, goal)[0].clamp(-1, 1).cpu().numpy()

    def _tuned(self, clear: Tensor, start: Tensor) -> Any:
        """Stage 1: a generator of this face, trained to draw it from its code (pivotal tuning, Roich et al. 2022)."""
        generator = copy.deepcopy(self.space.generator).requires_grad_(True)
        optimiser = torch.optim.Adam(generator.parameters(), lr=self.params.tuning_rate)
        for _ in execution.rounds(self.params.tuning_steps):
            error = generator.synthesize(start) - clear
            edges = torch.stack([error.diff(dim=along).abs().mean() for along in (2, 3)]).sum()
            optimiser.zero_grad(set_to_none=True)
            (error.abs().mean() + edges).backward()
            optimiser.step()
        return generator.requires_grad_(False)

    def _searched(self, generator: Any, clear: Tensor, start: Tensor, goal: Tensor) -> Tensor:
        """Stage 2: the picture after the search of the fine layers of the code."""
        params, semantics = self.params, self.space.semantics
        with torch.no_grad():
            own, wanted = self.identity(clear), self.identity(goal)
            described = normalize(semantics.cls(clear), dim=-1)
        fine = start[:, self.first :].clone().requires_grad_(True)
        optimiser = torch.optim.Adam([fine], lr=params.search_rate)
        for _ in execution.rounds(params.search_steps):
            made = generator.synthesize(torch.cat([start[:, : self.first], fine], dim=1))
            loss = params.adversarial * self._identity_loss(self.identity(made), own, wanted)
            loss = loss + params.text * self._text_loss(normalize(semantics.cls(made), dim=-1), described)
            loss = loss + params.latent * (fine - start[:, self.first :]).square().sum()
            (fine.grad,) = torch.autograd.grad(loss, fine)
            optimiser.step()
        with torch.no_grad():
            return generator.synthesize(torch.cat([start[:, : self.first], fine], dim=1))

    def _identity_loss(self, made: Tensor, own: Tensor, wanted: Tensor) -> Tensor:
        """1 - cos to the target; to dodge, minus 1 - cos to the person, too. Unit vectors (1, D)."""
        loss = 1 - (made * wanted).sum()
        return loss - (1 - (made * own).sum()) if self.variant.goal == "dodge" else loss

    def _text_loss(self, made: Tensor, described: Tensor) -> Tensor:
        """InfoNCE of directions: that of the picture towards that of the text, away from that of the source text.

        Positives: from the source text to the prompt, and from the picture to the prompt; negatives: from the picture
        to the source text, one a template.
        """
        query = normalize(made - described, dim=-1, eps=1e-6)
        positives = torch.cat(
            [(self.wanted - self.source).mean(dim=0, keepdim=True), (self.wanted - described).mean(dim=0, keepdim=True)]
        )
        negatives = self.source - described
        near, far = (
            (query @ normalize(of, dim=-1).T / self.params.temperature).squeeze(0) for of in (positives, negatives)
        )
        return (torch.logsumexp(torch.cat([near[:, None], far.expand(len(near), -1)], dim=1), dim=1) - near).mean()
