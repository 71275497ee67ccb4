"""The judge with recogniser B, which was trained here."""

from masquerade.judges._embedding import EmbeddingJudge


class RecogniserB(EmbeddingJudge):
    """It takes the place of FaceNet trained on VGGFace2; see docs/backbones.md."""

    title = "recogniser B"
    source = "backbones/recogniser_b.py"
    needs = ("recogniser_b",)
