"""The knobs of LReOrg: keywords, the network, its losses and optimiser."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from masquerade.core.settings import Settings

Weight = Annotated[float, Field(ge=0)]
IDENTITY = "identity"
"""k_0: the keyword whose key feature is the identity; it has no contents."""
BLANK = "$"


class Keyword(Settings):
    """An attribute by words: what the text encoder reads for it, and its sub-categories as sentences."""

    condition: str
    """The sentence whose feature conditions the network (the keyword itself: section 3.2)."""
    template: str
    """T_i: a sentence with $ where a content stands; '' for identity (section 3.4)."""
    contents: list[str]
    """C_i: the contents, two or more; none for identity (Table 1)."""

    @property
    def sentences(self) -> list[str]:
        """t_ij, one a content."""
        return [self.template.replace(BLANK, content) for content in self.contents]

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.contents and (len(set(self.contents)) < 2 or BLANK not in self.template):
            raise ValueError(f"needs two different contents or more, and a template with {BLANK} in their place")
        return self


Keywords = dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")], Keyword]


class LossSettings(Settings):
    swapped_identity: Weight
    """lambda_1, of the identity that a swap takes along, Eq. 6 (24: section 4.1)."""
    perceptual: Weight
    """lambda_2, of what else the picture shows, Eq. 5 (1.2: section 4.1)."""
    latent: Weight
    """lambda_3 and alpha_3, of the distance of the codes, Eq. 7 (3: section 4.1)."""
    information: Weight
    """lambda_4 and alpha_4, of the information loss (10: section 4.1)."""
    kept_identity: Weight
    """alpha_1, of the identity while an attribute is swapped, Eq. 8 (0.2: section 4.1)."""
    swapped_attribute: Weight
    """alpha_2, of the attribute that a swap takes along, Eq. 9 (30: section 4.1)."""
    others: Weight
    """Of the attributes of the other keywords, which no swap is to change (0: ours, not in the paper)."""
    distribution: Weight
    """Of swapped codes that are unlike drawn ones: their energy distance (0: ours, not in the paper)."""


class ReorganizationSettings(Settings):
    keywords: Keywords
    """K, what the network is trained on (Table 1); identity among them."""
    blocks: Annotated[int, Field(ge=1)]
    """Conditional disentanglement blocks (the paper does not say; 16: HiNet, Jing et al. 2021)."""
    hidden: Annotated[int, Field(ge=1)]
    """Numbers inside a linear block (the paper does not say; the width of W)."""
    growth: Annotated[int, Field(ge=1)]
    """Numbers that a layer of a dense block adds (32: Wang et al. 2018)."""
    limit: Annotated[float, Field(gt=0)]
    """Of sigma, Eq. 1-4: a scale is at most e to the power of it (2: HiNet's published code)."""
    truncation: Annotated[float, Field(gt=0, le=1)]
    """psi of the faces that are drawn for training (the paper does not say)."""
    faces: Annotated[int, Field(ge=2)]
    """Faces drawn for training, once; pairs of them are swapped (the paper does not say)."""
    losses: LossSettings
    """What is weighed how much."""
    steps: Annotated[int, Field(ge=1)]
    """Updates, of the identity and of a random attribute by turns (the paper does not say)."""
    batch: Annotated[int, Field(ge=1)]
    """Pairs of an update (the paper does not say)."""
    pictures_every: Annotated[int, Field(ge=1)]
    """Every how many updates pictures are drawn (1: the paper); in the others what they show is read off the codes."""
    code_batch: Annotated[int, Field(ge=1)]
    """Pairs of an update without pictures."""
    reader_steps: Annotated[int, Field(ge=0)]
    """Updates of the network that reads codes, where ``pictures_every`` is more than 1."""
    optimiser: Literal["adam", "muon"]
    """Adam (section 4.1), or Muon for the matrices and Adam for the rest."""
    learning_rate: Annotated[float, Field(gt=0)]
    """Its learning rate (0.00001: section 4.1)."""
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]]
    """Of Adam (0.5, 0.999: section 4.1)."""
    cooldown: Annotated[float, Field(ge=0, le=1)]
    """Share of the steps, the last ones, over which the learning rate falls to 0 (0: it stays)."""
    ema: Annotated[float, Field(ge=0, lt=1)]
    """Decay a step of the average of the weights that is saved (0: the last weights)."""
    samples_every: Annotated[int, Field(ge=1)]
    """Updates between two pictures of samples."""

    @model_validator(mode="after")
    def _reader_is_trained(self) -> Self:
        if self.pictures_every > 1 and not self.reader_steps:
            raise ValueError("reader_steps must be 1 or more where pictures_every is: codes are read in between")
        return self

    @field_validator("keywords")
    @classmethod
    def _identity_and_another(cls, keywords: dict[str, Keyword]) -> dict[str, Keyword]:
        if IDENTITY not in keywords or keywords[IDENTITY].contents:
            raise ValueError("there must be a keyword 'identity', without contents: it is trained differently")
        bare = [name for name, keyword in keywords.items() if name != IDENTITY and not keyword.contents]
        if bare or len(keywords) < 2:
            raise ValueError(f"an attribute is trained by its contents; without any: {', '.join(bare) or 'all'}")
        return keywords
