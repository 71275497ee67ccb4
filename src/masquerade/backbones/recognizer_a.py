"""Recognizer A: it only judges. Neither methods nor other networks are trained on its identities."""

from masquerade.backbones.recognition.base import InceptionRecognizer


class RecognizerA(InceptionRecognizer):
    """Schroff et al. 2015 (FaceNet). It takes the place of FaceNet trained on CASIA-WebFace."""

    title = "recognizer A"
    source = "trained here on its own part of the judges' people"
