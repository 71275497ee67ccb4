"""The recogniser B that was trained here, as a judge."""

from masquerade.judges._embedding import EmbeddingJudge


class RecogniserB(EmbeddingJudge):
    title = "recogniser B"
    source = "backbones/recogniser_b.py"
    needs = ("recogniser_b",)
