"""The judge with recogniser A, which was trained here."""

from masquerade.judges._embedding import EmbeddingJudge


class RecogniserA(EmbeddingJudge):
    """It takes the place of FaceNet trained on CASIA-WebFace; see docs/backbones.md."""

    title = "recogniser A"
    source = "backbones/recogniser_a.py"
    needs = ("recogniser_a",)
