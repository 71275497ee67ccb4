"""FaceNet trained on CASIA-WebFace: one of the two recognizers in many tables on privacy."""

from masquerade.judges._published import FaceNet


class FacenetCasia(FaceNet):
    """Inception-ResNet-v1 of facenet-pytorch, trained on the 10575 people of CASIA-WebFace; LFW 0.9905 (its README).

    Preprocessing and quantities: see `FaceNet`.
    """

    title = "FaceNet (CASIA-WebFace)"
    source = "Schroff et al. 2015, arXiv:1503.03832; facenet-pytorch, release v2.2.9"
    assets = ("facenet_casia",)
    people = 10575
