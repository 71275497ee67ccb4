"""Recogniser A: a judge, trained on identities that neither the methods nor the other recogniser learn from."""

from masquerade.backbones._inception import InceptionRecogniser


class RecogniserA(InceptionRecogniser):
    """Schroff et al. 2015 (FaceNet); stands where FaceNet trained on CASIA-WebFace stands."""

    title = "recogniser A"
    source = "trained here on its own part of the training identities"
