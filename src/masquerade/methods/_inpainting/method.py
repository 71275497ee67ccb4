"""The base of the classes of the inpainters. It imports no torch."""

from typing import TYPE_CHECKING, Any

from masquerade.methods import Method, Resources

if TYPE_CHECKING:
    from torch import nn


class InpaintingMethod(Method):
    """The base of the inpainters, whose network draws the hidden region."""

    def __init__(self, params: Any, variant: Any, resources: Resources):
        from masquerade.methods._inpainting.drawing import Drawing

        super().__init__(params, variant, resources)
        self._drawing = Drawing(self.build_network(), params.size, self.checkpoint)

    def build_network(self) -> "nn.Module":
        """The untrained network, for the checkpoint."""
        raise NotImplementedError
