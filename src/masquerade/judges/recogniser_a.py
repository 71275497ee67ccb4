"""Recogniser A, trained here on identities and with a seed that no method sees."""

from masquerade.judges._embedding import EmbeddingJudge


class RecogniserA(EmbeddingJudge):
    """Inception-ResNet (backbones/recogniser_a.py); Euclidean distance of unit embeddings, as FaceNet measures."""

    title = "recogniser A (trained here)"
    source = "backbones/recogniser_a.py"
    needs = ("recogniser_a",)
