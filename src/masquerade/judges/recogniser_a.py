"""The recogniser A that was trained here, as a judge."""

from masquerade.judges._embedding import EmbeddingJudge


class RecogniserA(EmbeddingJudge):
    title = "recogniser A"
    source = "backbones/recogniser_a.py"
    needs = ("recogniser_a",)
