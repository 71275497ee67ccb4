"""Recogniser B: it only judges. Neither methods nor other networks are trained on its identities."""

from masquerade.backbones.recognition.inception import InceptionRecogniser


class RecogniserB(InceptionRecogniser):
    """Schroff et al. 2015 (FaceNet). It takes the place of FaceNet trained on VGGFace2."""

    title = "recogniser B"
    source = "trained here on its own part of the judges' people"
