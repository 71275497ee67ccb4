"""The classifier of attributes, trained on real annotated faces. It only judges."""

from types import ModuleType

from masquerade.backbones import TrainedBackbone
from masquerade.backbones.attribute_classifier import AttributeClassifierSettings


class AttributeClassifier(TrainedBackbone):
    """The "pre-trained classifiers" of LReOrg (section 4.1), which gives no details. Ours is a VGG (Simonyan and
    Zisserman 2015) with strides instead of max pooling (Springenberg et al. 2015).

    It is one network with one logit for each of `ATTRIBUTES`. It is trained on the annotations of the judges' people,
    on real images only, and without the text-image model with which LReOrg is trained.
    """

    title = "classifier of attributes (VGG)"
    source = "trained here on the annotations of the judges' people"

    architecture = ("input_size", "widths", "units")
    Params = AttributeClassifierSettings
    params: AttributeClassifierSettings
    people = "judges"

    @staticmethod
    def training() -> ModuleType:
        from masquerade.backbones.attribute_classifier import training

        return training

    def floors(self) -> dict[str, float]:
        return {"balanced_accuracy": self.params.floor_balanced_accuracy}
