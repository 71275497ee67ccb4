"""Recogniser A: it only judges. Neither methods nor other networks are trained on its identities."""

from masquerade.backbones.recognition.inception import InceptionRecogniser


class RecogniserA(InceptionRecogniser):
    """Schroff et al. 2015 (FaceNet). It takes the place of FaceNet trained on CASIA-WebFace."""

    title = "recogniser A"
    source = "trained here on its own part of the judges' people"
