"""The validated parameters of one scale."""

from collections.abc import Iterable, Mapping
from typing import Any

from masquerade.core import discovery, weight_names
from masquerade.core.errors import ParameterError
from masquerade.core.settings import Settings
from masquerade.params import sharing
from masquerade.params.blocks import Common
from masquerade.params.overlays import MISSING, find_value, overlay


class Parameters:
    """Validated parameters of one scale; every key of params.yaml is an attribute.

    ``typed`` holds them as `Settings`, ``tree`` as plain JSON values without the keys that are null. The blocks of the
    rooms (datasets, backbones, judges, metrics, methods, attackers) are mappings that hold only the modules in use.
    """

    def __init__(self, typed: Common):
        self.typed = typed
        self.tree: dict[str, Any] = typed.model_dump(mode="json", exclude_none=True)
        self.datasets: dict[str, Settings] = self._select_used("datasets")
        self.backbones: dict[str, Settings] = self._select_used("backbones")
        self.judges: dict[str, Settings] = self._select_used("judges")
        self.metrics: dict[str, Settings] = self._select_used("metrics")
        self.methods: dict[str, Any] = self._select_used("methods")
        self.attackers: dict[str, Settings] = self._select_used("attackers")

        self.private = sharing.list_private_datasets(self.share_originals, self.matrix.train_on, self.matrix.evaluate)
        """The datasets whose faces stay on this machine (`sharing.is_private`)."""
        used = self.datasets.keys() & {self.matrix.train_on, *self.matrix.evaluate}
        self.terms = self.list_terms(used, self.backbones)
        """The terms of use of this scale's images and networks."""
        if self.terms:
            self.tree["caution"] = f"{typed.caution.strip()} Its images and networks: {self.terms}.".strip()
        self.latent_stand_ins: dict[str, str] = {
            name: words
            for name, block in self.methods.items()
            if (words := discovery.load("methods", name).latent_stand_in(block.params))
        }
        """Method that does not run as published at this scale -> what runs in its place (`Method.latent_stand_in`)."""

    @property
    def caution(self) -> str:
        """The caution that every table of this scale prints, with the terms of its data and networks."""
        return self.tree["caution"]

    def list_terms(self, datasets: Iterable[str], backbones: Iterable[str]) -> str:
        """The terms of use of whatever is made with these datasets and networks, in words; '' for none."""
        terms = [discovery.load("faces", name).terms for name in sorted(datasets)]
        terms += [discovery.load("backbones", name)(self.backbones[name]).terms for name in sorted(backbones)]
        return "; ".join(dict.fromkeys(filter(None, terms)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.typed, name)

    def _select_used(self, room: str) -> dict[str, Any]:
        block = getattr(self.typed, room)
        return {name: getattr(block, name) for name in type(block).model_fields if getattr(block, name) is not None}

    def slice(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """Dotted key, such as ``methods.falco.params`` -> its value. A key that ends in ``?`` may be missing.

        ``latent_stand_ins`` follows from the parameters and is a key, too. Raises ParameterError for any other key that
        is missing.
        """
        optional = {key.removesuffix("?"): key.endswith("?") for key in keys}
        tree = self.tree | {"latent_stand_ins": self.latent_stand_ins}
        values = {key: find_value(tree, key) for key in optional}
        for key, value in values.items():
            if value is MISSING and not optional[key]:
                raise ParameterError(f"params.yaml has no '{key}' at scale {self.scale}.")
        return {key: value for key, value in values.items() if value is not MISSING}

    def weights_name(self, method: str, variant: str = "") -> str:
        """The name of the weights that replace the training of a method, or of an ablation; '' if it trains."""
        block = self.methods[method]
        if variant in self.ablations(method):
            return weight_names.parse_weights_name((block.published_ablations or {}).get(variant, ""))
        return weight_names.parse_weights_name(getattr(block, "published", ""))

    def needs(self, method: str) -> tuple[str, ...]:
        """The backbones that a method loads."""
        return discovery.load("methods", method).list_backbones(self.methods[method].params)

    def trains(self, method: str) -> bool:
        """Whether a method has a checkpoint of its own, which is trained or adopted."""
        return discovery.load("methods", method).capabilities.trains

    def uses_latent_codes(self, method: str) -> bool:
        """Whether a method works on the latent codes of the faces."""
        return discovery.load("methods", method).capabilities.latents and "inversion" in self.needs(method)

    def official_role(self, method: str) -> str:
        """The role of the official weight file that replaces the training of a method; '' if there is none."""
        return weight_names.parse_asset_role(getattr(self.methods[method], "published", ""))

    def ablations(self, method: str) -> dict[str, dict[str, Any]]:
        """Variant -> the parameters in which its training differs from that of the method's other variants."""
        return getattr(self.methods[method], "ablations", None) or {}

    def training_params(self, method: str, variant: str = "") -> Settings:
        """The Params of a method's training. ``variant``: one of its ablations; any other variant changes nothing."""
        params, ablation = self.tree["methods"][method]["params"], self.ablations(method).get(variant)
        return build_training_params(discovery.load("methods", method), params, ablation)


def build_training_params(cls: type, params: Mapping[str, Any], ablation: Mapping[str, Any] | None = None) -> Settings:
    """The Params of the method ``cls``: its ``params`` with those of an ``ablation`` on top.

    Raises pydantic's ValidationError.
    """
    return cls.Params(**overlay(params, ablation or {}))
