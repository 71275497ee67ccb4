"""The judge with recognizer A, which was trained here."""

from masquerade.judges._embedding import EmbeddingJudge


class RecognizerA(EmbeddingJudge):
    """It takes the place of FaceNet trained on CASIA-WebFace; see docs/backbones.md."""

    title = "recognizer A"
    source = "backbones/recognizer_a.py"
    needs = ("recognizer_a",)
