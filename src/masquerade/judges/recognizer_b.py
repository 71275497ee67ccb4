"""The judge with recognizer B, which was trained here."""

from masquerade.judges._embedding import EmbeddingJudge


class RecognizerB(EmbeddingJudge):
    """It takes the place of FaceNet trained on VGGFace2; see docs/backbones.md."""

    title = "recognizer B"
    source = "backbones/recognizer_b.py"
    needs = ("recognizer_b",)
