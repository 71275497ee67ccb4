"""The recogniser B that was trained here, as a judge."""

from masquerade.judges._embedding import EmbeddingJudge


class RecogniserB(EmbeddingJudge):
    """Stands where FaceNet trained on VGGFace2 stands; see docs/backbones.md."""

    title = "recogniser B"
    source = "backbones/recogniser_b.py"
    needs = ("recogniser_b",)
