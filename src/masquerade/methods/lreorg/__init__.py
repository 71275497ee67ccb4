"""LReOrg (anonymous 2024): keywords decide which features of a latent code are hidden and which are kept.

Its parameters are here. The class is in ``method``, the replacements of features are in ``anonymizers`` (all without
torch), the networks (Eq. 1-4) in ``network``, and losses (Eq. 5-10) and training in ``training``. The latent space is
methods/latent/.
"""

from typing import Annotated, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, field_validator, model_validator

from masquerade.core.settings import Decay, Settings, Share, SmallScale
from masquerade.training.settings import Betas, Computed, Updates, Weight

IDENTITY = "identity"
"""k_0: the keyword whose key feature is the identity. It has no contents."""
BLANK = "$"
"""The place of a content in a template."""


class Keyword(Settings):
    """An attribute in words: the sentence for the network, and the sentences of its sub-categories."""

    condition: str
    """The sentence whose text feature conditions the network (section 3.2: the keyword itself)."""
    template: str
    """T_i, a sentence in which $ stands for a content; empty for identity (section 3.4)."""
    contents: list[str]
    """C_i, the two or more contents of the keyword; none for identity (Table 1)."""

    @property
    def sentences(self) -> list[str]:
        """t_ij, one sentence for each content."""
        return [self.template.replace(BLANK, content) for content in self.contents]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.contents and (len(set(self.contents)) < 2 or BLANK not in self.template):
            raise ValueError(f"needs two different contents or more, and a template with {BLANK} in their place")
        return self


Keywords = dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Keyword]


class LossWeights(Settings):
    """The weights of Eq. 5 and 8."""

    swapped_identity: Weight
    """lambda_1, the weight of the loss on the swapped identity, Eq. 6 (24: section 4.1)."""
    perceptual: Weight
    """lambda_2, the weight of the perceptual loss on the rest of the image, Eq. 5 (1.2: section 4.1)."""
    latent: Weight
    """lambda_3 and alpha_3, the weight of the distance of the latent codes, Eq. 7 (3: section 4.1)."""
    information: Weight
    """lambda_4 and alpha_4, the weight of the information loss (10: section 4.1)."""
    kept_identity: Weight
    """alpha_1, the weight of the identity loss when an attribute is swapped and the identity should stay, Eq. 8 (0.2:
    section 4.1)."""
    swapped_attribute: Weight
    """alpha_2, the weight of the loss on the swapped attribute, Eq. 9 (30: section 4.1)."""


class LReOrgSmallScale(SmallScale):
    """How LReOrg differs from the paper at small scales (docs/lreorg.md)."""

    pictures_every: PositiveInt = 1
    """One in this many updates generates images (1: every one, as in the paper). In the others a small network, the
    reader, predicts identity and features from the latent codes."""
    code_batch: PositiveInt = 64
    """Number of pairs in an update without images."""
    reader_steps: NonNegativeInt = 0
    """Number of updates of the reader. It is trained if ``pictures_every`` is more than 1."""
    others: Weight = 0.0
    """Weight of a loss that keeps the attributes of all keywords that are not swapped; 0 leaves it out."""
    clip: PositiveFloat | None = None
    """Largest norm of the gradient of all weights; null sets no limit. Without a limit, some trainings failed on latent
    codes that are far from those of faces."""
    cooldown: Share = 0.0
    """Share of the steps, at the end of the training, over which the learning rates fall to one fiftieth; at 0 they
    stay constant."""

    @model_validator(mode="after")
    def _reader_is_trained(self) -> Self:
        if self.pictures_every > 1 and not self.reader_steps:
            raise ValueError(
                "reader_steps must be 1 or more if pictures_every is more than 1, because the reader must be trained"
            )
        return self


class LReOrgSettings(Updates, Computed):
    """The parameters of LReOrg."""

    sources = {
        "steps": "they swap the identity and a random attribute in turn; the paper gives none",
        "learning_rate": "0.00001: section 4.1",
    }

    keywords: Keywords
    """K, the keywords that the network is trained on (Table 1). Identity must be one of them."""
    blocks: PositiveInt
    """Number of conditional disentanglement blocks (the paper gives none; 16: HiNet, Jing et al. 2021)."""
    hidden: PositiveInt
    """Number of hidden units of a linear block (the paper gives none; the width of W)."""
    growth: PositiveInt
    """Number of channels that each layer of a dense block adds (32: Wang et al. 2018)."""
    limit: PositiveFloat
    """Limit of sigma in Eq. 1-4: a scale factor is at most e to the power of this number (2: HiNet's published
    code)."""
    faces: Annotated[int, Field(ge=2)]
    """Number of faces for training. Their latent codes are sampled once, and pairs of them are swapped (the paper gives
    none)."""
    inverted: Decay
    """Share of these faces that are images of the train split, inverted into W+; the others are sampled from W. The
    paper has both, without a share: "sampled or synthesized", and "train our model on CelebA-HQ" (section 4.1)."""
    losses: LossWeights
    """The weights of the losses."""
    batch: PositiveInt
    """Number of pairs in one update (the paper gives none)."""
    betas: Betas
    """The two decay rates of Adam (0.5, 0.999: section 4.1)."""

    ema: Decay = 0.0
    """Decay per update of the moving average of the weights, which is what the checkpoint holds; at 0 it holds the last
    weights."""
    samples_every: PositiveInt = 5000
    """Number of updates between two sample images."""
    small_scale: LReOrgSmallScale = LReOrgSmallScale()
    """How the training differs from the paper at a small scale."""

    @field_validator("keywords")
    @classmethod
    def _identity_and_another(cls, keywords: dict[str, Keyword]) -> dict[str, Keyword]:
        if IDENTITY not in keywords or keywords[IDENTITY].contents:
            raise ValueError("keywords must have 'identity', without contents, because its training is different")
        bare = [name for name, keyword in keywords.items() if name != IDENTITY and not keyword.contents]
        if bare or len(keywords) < 2:
            raise ValueError(
                "every keyword except 'identity' needs contents, and there must be one or more; without contents: "
                f"{', '.join(bare) or 'all'}"
            )
        return keywords
