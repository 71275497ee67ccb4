"""Recogniser B, trained here on identities and with a seed that no method sees."""

from masquerade.judges._embedding import EmbeddingJudge


class RecogniserB(EmbeddingJudge):
    """Inception-ResNet (backbones/recogniser_b.py); Euclidean distance of unit embeddings, as FaceNet measures."""

    title = "recogniser B (trained here)"
    source = "backbones/recogniser_b.py"
    needs = ("recogniser_b",)
