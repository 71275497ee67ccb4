"""FaceNet trained on VGGFace2: one of the two recognizers in many tables on privacy."""

from masquerade.judges._published import FaceNet


class FacenetVggface2(FaceNet):
    """Inception-ResNet-v1 of facenet-pytorch, trained on the 8631 people of VGGFace2; LFW 0.9965 (its README).

    Preprocessing and quantities: see `FaceNet`.
    """

    title = "FaceNet (VGGFace2)"
    source = "Schroff et al. 2015, arXiv:1503.03832; Cao et al. 2018; facenet-pytorch, release v2.2.9"
    assets = ("facenet_vggface2",)
    people = 8631
