"""Face recognizers: two that were trained here, and the official networks of many tables on privacy."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from masquerade import assets
from masquerade.core.settings import Settings
from masquerade.judges import Judge
from masquerade.judges._loading import ARCFACE_CROP, MTCNN_CROP, PublishedJudge, TrainedJudge, cut

if TYPE_CHECKING:
    import torch

EMBEDDING = 512


def normalize(vectors: "torch.Tensor") -> "torch.Tensor":
    """Vectors (N, D) at length 1."""
    from torch.nn import functional

    return functional.normalize(vectors)


class EmbeddingJudge(TrainedJudge):
    """``embedding``: unit vectors (512,) of the backbone in ``needs``; compare them by their angle."""

    quantities = {"embedding": (EMBEDDING,)}

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        return {"embedding": self._network(signal)}


class RecognizerA(EmbeddingJudge):
    """It takes the place of FaceNet trained on CASIA-WebFace; see docs/backbones.md."""

    name = "recognizer_a"
    title = "recognizer A"
    source = "backbones/recognition/backbone.py"
    needs = ("recognizer_a",)


class RecognizerB(EmbeddingJudge):
    """It takes the place of FaceNet trained on VGGFace2; see docs/backbones.md."""

    name = "recognizer_b"
    title = "recognizer B"
    source = "backbones/recognition/backbone.py"
    needs = ("recognizer_b",)


class FaceNet(PublishedJudge):
    """``embedding``: unit vectors (512,); compare them by their distance.

    Preprocessing: the crop in which MTCNN detects aligned faces (``MTCNN_CROP``), RGB at 160 x 160, stretched as in
    facenet-pytorch, (x - 127.5) / 128 on 8-bit values. No detector runs, so every face gets a vector.
    """

    packages = ("torch",)
    quantities = {"embedding": (512,)}
    people: ClassVar[int]
    """Number of people in its training set, which are the classes of the last layer of the file."""

    def _build(self, path: Path) -> "torch.nn.Module":
        from masquerade.networks.inception_resnet import InceptionResnetV1
        from masquerade.training import weight_files

        classes = {"logits.": f"the layer of its {self.people} people"}
        return weight_files.load_file(InceptionResnetV1(), path, classes)

    def _prepare(self, images: np.ndarray) -> np.ndarray:
        faces = (cut(images, MTCNN_CROP, 160).astype(np.float32) - 127.5) / 128.0
        return faces.transpose(0, 3, 1, 2)

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        return {"embedding": normalize(self._network(signal))}


class FacenetCasia(FaceNet):
    """Inception-ResNet-v1 of facenet-pytorch, trained on the 10575 people of CASIA-WebFace; LFW 0.9905 (its README).

    Preprocessing and quantities: see `FaceNet`.
    """

    name = "facenet_casia"
    title = "FaceNet (CASIA-WebFace)"
    source = "Schroff et al. 2015, arXiv:1503.03832; facenet-pytorch, release v2.2.9"
    assets = ("facenet_casia",)
    people = 10575


class FacenetVggface2(FaceNet):
    """Inception-ResNet-v1 of facenet-pytorch, trained on the 8631 people of VGGFace2; LFW 0.9965 (its README).

    Preprocessing and quantities: see `FaceNet`.
    """

    name = "facenet_vggface2"
    title = "FaceNet (VGGFace2)"
    source = "Schroff et al. 2015, arXiv:1503.03832; Cao et al. 2018; facenet-pytorch, release v2.2.9"
    assets = ("facenet_vggface2",)
    people = 8631


class Arcface(PublishedJudge):
    """``embedding``: unit vectors (512,); compare them by their angle.

    At paper scale, the losses of the methods use the same network, with the same preprocessing:
    RGB in [-1, 1], FALCO's crop of the image at 256 pixels, averaged to 112 x 112. For methods that were trained with
    it, it is not an independent judge, and their tables state this.
    """

    name = "arcface"
    title = "ArcFace (IR-SE-50)"
    source = "Deng et al. 2019, arXiv:1801.07698; model_ir_se50.pth of InsightFace_Pytorch"
    packages = ("torch",)
    assets = ("ir_se50",)
    shares = ("identity",)
    quantities = {"embedding": (512,)}

    def _build(self, path: Path) -> "torch.nn.Module":
        from masquerade.backbones.recognition import training

        return training.load_arcface(path)

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        return {"embedding": self._network(signal)}


class Adaface(PublishedJudge):
    """``embedding``: unit vectors (512,), compare them by their angle; ``quality``: their length before normalization,
    which grows with the quality of the image.

    Preprocessing: the crop of ArcFace's five points (``ARCFACE_CROP``, which fits aligned faces), 8-bit at 112 x 112,
    BGR in [-1, 1]. The tensors ``head.*`` of the file (the classes and running means of its loss) are not used.
    """

    name = "adaface"
    title = "AdaFace (IR-50, MS1MV2)"
    source = "Kim et al. 2022, arXiv:2204.00964; adaface_ir50_ms1mv2.ckpt of mk-minchul/AdaFace"
    packages = ("torch",)
    assets = ("adaface_ir50",)
    quantities = {"embedding": (512,), "quality": ()}

    def _build(self, path: Path) -> "torch.nn.Module":
        from torch.nn import ModuleDict

        from masquerade.networks.ir_se import AdaFaceIR
        from masquerade.training import weight_files

        network = ModuleDict({"model": AdaFaceIR()})
        return weight_files.load_file(network, path, {"head.": "its classes"}, under="state_dict")["model"]

    def _prepare(self, images: np.ndarray) -> np.ndarray:
        faces = cut(images, ARCFACE_CROP, 112)[..., ::-1].transpose(0, 3, 1, 2)  # BGR
        return faces.astype(np.float32) / 127.5 - 1.0

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        embedding, length = self._network(signal)
        return {"embedding": embedding, "quality": length[:, 0]}


class Faceres(PublishedJudge):
    """``embedding``: unit vectors (1024,); compare them by their angle.

    All numbers of a vector are positive, so faces of different people have a cosine of about 0.4.
    Preprocessing: the crop of ArcFace's five points (``ARCFACE_CROP``, which fits aligned faces), 8-bit at 224 x 224,
    blue first, minus the means (103.939, 116.779, 123.68).
    """

    name = "faceres"
    title = "FaceRes (MobileNet, VGGFace2)"
    source = "Savchenko 2019, PeerJ Computer Science 5:e197; faceres.bin of the npm package @vladmandic/human 3.3.6"
    packages = ("torch",)
    assets = ("faceres",)
    quantities = {"embedding": (1024,)}

    def _build(self, path: Path) -> "torch.nn.Module":
        from masquerade.networks import mobile_embedder

        return mobile_embedder.load(path)

    def _prepare(self, images: np.ndarray) -> np.ndarray:
        from masquerade.networks.mobile_embedder import MEANS, SIDE

        faces = cut(images, ARCFACE_CROP, SIDE)[..., ::-1].astype(np.float32) - np.array(MEANS, dtype=np.float32)
        return faces.transpose(0, 3, 1, 2).copy()

    def _compute(self, signal: "torch.Tensor") -> "dict[str, torch.Tensor]":
        return {"embedding": normalize(self._network(signal))}


class FacePlugin(Judge):
    """``embedding``: unit vectors (512,); compare them by their angle.

    Preprocessing: the crop of ArcFace's five points (``ARCFACE_CROP``, which fits aligned faces), RGB, (x - 127) / 128
    of 8-bit values at 112 x 112. The published program maps three of the five points onto ArcFace's, which shears the
    face: it tells generated people apart less well (docs/evaluators.md).
    """

    name = "faceplugin"
    title = "FacePlugin"
    source = "fr_feature.onnx of the npm package faceplugin-face-recognition-js 0.0.1 of 2026, without a paper"
    engine = "onnx"
    packages = ("onnxruntime",)
    assets = ("faceplugin",)
    quantities = {"embedding": (EMBEDDING,)}

    def __init__(self, params: Settings, backbones: Mapping[str, Path]):
        import onnxruntime

        super().__init__(params, backbones)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        path = assets.check_asset("faceplugin")
        self._session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def measure(self, images: np.ndarray, reference: np.ndarray | None = None) -> dict[str, np.ndarray]:
        signal = (cut(images, ARCFACE_CROP, 112).astype(np.float32) - 127) / 128
        signal = signal.transpose(0, 3, 1, 2).copy()
        vectors = np.concatenate([self._session.run(None, {"input": face[None]})[0] for face in signal])
        return {"embedding": vectors / np.linalg.norm(vectors, axis=1, keepdims=True)}
