"""The recogniser A that was trained here, as a judge."""

from masquerade.judges._embedding import EmbeddingJudge


class RecogniserA(EmbeddingJudge):
    """Stands where FaceNet trained on CASIA-WebFace stands; see docs/backbones.md."""

    title = "recogniser A"
    source = "backbones/recogniser_a.py"
    needs = ("recogniser_a",)
