"""Tests of the text-image model: features, losses, vocabulary, quality figures and official weight files."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import kit
from masquerade.backbones.semantics import SemanticsSmallScale as SmallScale
from masquerade.backbones.semantics import network as semantics
from masquerade.backbones.semantics import quality
from masquerade.backbones.semantics import training as trains
from masquerade.core import discovery
from masquerade.core.errors import ArchiveError, CheckpointError, ParameterError
from masquerade.core.images import FaceArchive, to_uint8

SMALL = {
    "published": "", "image_size": 32, "patch": 16, "width": 16, "layers": 2, "heads": 2, "embedding": 8,
    "activation": "quick_gelu", "small_scale": {"position_std": 0.25},
    "text": {"vocabulary": "captions", "context": 12, "width": 8, "layers": 1, "heads": 2},
    "steps": 6, "batch": 8, "learning_rate": 0.005,
    "warmup": 2, "betas": (0.9, 0.98), "epsilon": 1e-6,
    "weight_decay": 0.1, "temperature": 0.07, "floor_zero_shot": 0.0, "floor_retrieval": 0.0, "floor_neighbor": 0.0,
}  # fmt: skip


def backbone(**changes):
    cls = discovery.load("backbones", "semantics")
    small = {key: changes.pop(key) for key in SmallScale.model_fields if key in changes}
    return cls(cls.Params(**{**SMALL, "small_scale": {**SMALL["small_scale"], **small}, **changes}))


def encoder(words=("red", "blue"), normalization=semantics.OURS, **changes):
    torch.manual_seed(0)
    metadata = semantics.describe_architecture(backbone(**changes).params, words) | normalization
    return semantics.SemanticEncoder(semantics.build(metadata), metadata).eval()


def test_features_are_those_of_open_clips_own_forward():
    model = encoder()
    pictures = torch.rand(3, 3, 32, 32) * 2 - 1
    last = []
    model.network.visual.transformer.register_forward_hook(lambda module, inputs, output: last.append(output))
    with torch.no_grad():
        expected = model.network.encode_image(pictures)
        tokens = last[0]
        cls, both_tokens = model.both(pictures)
    assert tokens.shape == (3, 1 + 4, 16)
    assert torch.allclose(cls, expected, atol=1e-6)
    assert torch.allclose(model.cls(pictures), expected, atol=1e-6)
    assert torch.allclose(both_tokens, tokens, atol=1e-6)
    assert torch.allclose(model.tokens(pictures), tokens, atol=1e-6)
    normed = model.network.visual.ln_post(tokens[:, 0]) @ model.network.visual.proj
    assert torch.allclose(cls, normed, atol=1e-6)


def test_activation_is_the_one_that_the_parameters_name():
    block = encoder(activation="quick_gelu").network.visual.transformer.resblocks[0].mlp.gelu
    assert block(torch.tensor(2.0)).item() == pytest.approx(2 / (1 + math.exp(-1.702 * 2)))
    block = encoder(activation="gelu").network.visual.transformer.resblocks[0].mlp.gelu
    assert block(torch.tensor(2.0)).item() == pytest.approx(2 * 0.5 * (1 + math.erf(2 / math.sqrt(2))))


def test_pictures_are_brought_to_the_range_and_size_of_the_network():
    gray = torch.zeros(1, 3, 20, 20)  # 0 of [-1, 1] is 0.5 of [0, 1]
    clips = encoder(normalization=semantics.CLIPS).prepared(gray)
    assert clips.shape == (1, 3, 32, 32)
    assert clips[0, :, 5, 5].tolist() == pytest.approx(
        [(0.5 - 0.48145466) / 0.26862954, (0.5 - 0.4578275) / 0.26130258, (0.5 - 0.40821073) / 0.27577711], abs=1e-5
    )
    edges = torch.tensor([-1.0, 1.0]).view(1, 1, 1, 2).expand(1, 3, 32, 2).repeat_interleave(16, 3)
    assert torch.allclose(encoder().prepared(edges), edges, atol=1e-6)


def test_contrastive_loss_is_that_of_figure_3_of_clip():
    """Cosines worked out by hand: rows (1, 0) and (0.6, 0.8) against columns (1, 0) and (0, 1); scale 2."""
    pictures, sentences = torch.tensor([[3.0, 0.0], [0.6, 0.8]]), torch.tensor([[1.0, 0.0], [0.0, 5.0]])
    loss, logits = trains.compute_contrastive_loss(pictures, sentences, torch.tensor(2.0))
    assert logits.tolist() == [pytest.approx([2.0, 0.0]), pytest.approx([1.2, 1.6])]
    by_rows = -(math.log(math.exp(2) / (math.exp(2) + 1)) + math.log(math.exp(1.6) / (math.exp(1.2) + math.exp(1.6))))
    by_columns = -(
        math.log(math.exp(2) / (math.exp(2) + math.exp(1.2))) + math.log(math.exp(1.6) / (1 + math.exp(1.6)))
    )
    assert loss.item() == pytest.approx((by_rows / 2 + by_columns / 2) / 2, abs=1e-6)


def test_words_are_numbered_and_unknown_ones_are_logged(caplog):
    words = semantics.Words(["a", "chin-length", "man"], context=6)
    rows = words(["A man, chin-length.", "a zebra", "man man man man man man"])
    assert rows.tolist() == [[5, 2, 4, 3, 6, 0], [5, 2, 1, 6, 0, 0], [5, 4, 4, 4, 4, 6]]
    assert "holds the words zebra:" in caplog.text


@pytest.mark.parametrize("vocabulary", ["captions", "clip"])
def test_sentences_without_their_padding_are_read_as_by_open_clip(vocabulary):
    text = {"vocabulary": vocabulary, "context": 12, "width": 8, "layers": 2, "heads": 2}
    model = encoder(["a", "man", "woman", "with"], text=text)
    ids = model.tokenizer(["A man.", "A woman with a man with a woman."])
    with torch.no_grad():
        assert torch.allclose(semantics.encode_sentences(model.network, ids), model.network.encode_text(ids), atol=1e-6)


def test_stem_gives_the_patches_of_the_single_convolution():
    model = encoder(stem=[3, 4, 5, 6])
    assert model.network.visual.conv1(torch.zeros(2, 3, 32, 32)).shape == (2, 16, 2, 2)
    assert model.tokens(torch.zeros(2, 3, 32, 32)).shape == (2, 5, 16)
    with pytest.raises(ParameterError, match="a stem of 2 convolutions makes patches of 4 pixels, and patch is 16"):
        semantics.describe_architecture(backbone(stem=[3, 4]).params)


def test_initial_weights_have_the_given_deviation_and_gain():
    given, visual = encoder().network.visual, encoder().network.visual
    trains.initialize(visual, 2.0, 3.0)
    old, new = given.transformer.resblocks[1].attn.in_proj_weight, visual.transformer.resblocks[1].attn.in_proj_weight
    assert torch.equal(new[:32], 3 * old[:32])
    assert torch.equal(new[32:], old[32:])
    assert visual.positional_embedding.std().item() == pytest.approx(2.0, rel=0.3)


def test_word_losses_are_two_cross_entropies():
    """One image, two words that half of the captions hold, cosines of 1 and 0 at scale 2, a read-out of 0."""
    losses = trains.WordLosses(torch.tensor([0.5, 0.5]), numbers=4)
    losses.log_scale.data.fill_(math.log(2.0))
    loss = losses(
        torch.tensor([[3.0, 0.0]]),
        torch.ones(1, 2, 2),
        torch.tensor([[0.5, 0.0], [0.0, 1.0]]),
        torch.tensor([[1.0, 0]]),
    )
    by_class_feature = math.log(1 + math.exp(-2.0)) + math.log(2.0)
    assert loss.item() == pytest.approx(by_class_feature + 2 * math.log(2.0), abs=1e-6)
    usual = trains.WordLosses(torch.tensor([0.25, 1.0]), numbers=4)
    assert torch.sigmoid(usual.bias).tolist() == pytest.approx([0.25, 0.99])
    assert trains.mark_words(["a man", "a hat"], ["hat", "man"]).tolist() == [[0, 1], [1, 0]]


def test_mirrored_picture_gets_the_mirrored_caption():
    assert trains.mirror_caption("A man, looking to the left.") == "A man, looking to the right."
    assert trains.mirror_caption("bright hair, looking to the right") == "bright hair, looking to the left"
    pictures = torch.arange(2 * 4 * 4 * 3, dtype=torch.uint8).view(2, 4, 4, 3)

    class Centered:
        def integers(self, low, high, count):
            return np.zeros(count, int)

    plain, turned = trains.augment(pictures, torch.tensor([False, True]), Centered())
    assert torch.equal(plain, pictures[0].permute(2, 0, 1) / 127.5 - 1)
    assert torch.equal(turned, pictures[1].permute(2, 0, 1).flip(-1) / 127.5 - 1)


def test_sizes_that_do_not_divide_are_refused():
    with pytest.raises(ParameterError, match="image_size by patch must divide without rest; 33 / 16"):
        semantics.describe_architecture(backbone(image_size=33).params)


class Reader:
    """A stand-in for a text encoder: each of a few words is a direction of its own."""

    def __init__(self, *words):
        self.words = words

    def text(self, sentences):
        rows = [[float(word in sentence) for word in self.words] + [0.1] for sentence in sentences]
        return torch.nn.functional.normalize(torch.tensor(rows), dim=-1)


def test_zero_shot_predicts_attributes_from_sentences():
    truth = np.array([True, True, False, False])
    pictures = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])  # three look smiling, two are
    scores = quality.measure_zero_shot(Reader("smiling"), pictures, {"Smiling": truth, "Chubby": truth})
    assert scores["zero_shot.Smiling"] == pytest.approx((1.0 + 0.5) / 2)
    assert scores["zero_shot"] == scores["zero_shot.Smiling"]
    assert scores["zero_shot_attributes"] == 1  # no sentence holds the word chubby


def test_every_prompt_is_in_the_words_of_the_captions():
    """The two sides of an attribute have no sentence in common, and captions of drawn people hold all their words."""
    from drawnpeople import attributes, sampling, shot
    from masquerade.core.seeding import make_generator

    said = set()
    for number in range(1500):
        person = sampling.sample_person(make_generator(8, number))
        text = attributes.caption(person, shot.sample_shot(make_generator(9, number), person, shot.STUDIO))
        said |= set(semantics.split_words(text))
    for name, (place, yes, no) in quality.PROMPTS.items():
        assert name in attributes.NAMES
        assert place in quality.PLAIN
        assert not set(yes) & set(no)
        for word in semantics.split_words(" ".join(yes + no)):
            assert word in said, f"{name}: no caption says {word}"


def test_retrieval_ranks_the_different_captions():
    captions = ["red", "red", "blue", "green"]
    pictures = torch.tensor([[1.0, 0.0, 0.2, 0.0], [0.3, 0.5, 0.0, 0.0], [0.0, 0.9, 0.0, 0.0], [0.1, 0.0, 1.0, 0.0]])
    scores = quality.measure_retrieval(Reader("red", "blue", "green"), pictures, captions)
    assert scores == {"retrieval_1": 0.75, "retrieval_5": 1.0, "retrieval_captions": 3.0}


def test_neighbor_is_of_another_person():
    features = torch.tensor([[0.0], [0.1], [1.0], [1.2]])
    glasses = np.array([True, True, True, False])
    scores = quality.measure_neighbor(features, ["a", "a", "b", "b"], {"Eyeglasses": glasses})
    # nearest of others: a's -> 1.0 (glasses), b's -> 0.1 (glasses): glasses are predicted for everybody
    assert scores["neighbor"] == pytest.approx((1.0 + 0.0) / 2)


def test_rare_attributes_are_left_out():
    rows = pd.DataFrame({"attribute.Male": [True] * 5 + [False] * 5, "attribute.Bald": [True] * 4 + [False] * 6,
                         "attribute.age": [30.0] * 10})  # fmt: skip
    assert list(quality.read_attributes(rows)) == ["Male"]


@pytest.fixture
def archive(tmp_path):
    """Red images with captions of men, blue images with captions of women."""
    draw, pictures, rows = np.random.default_rng(0), [], []
    for number in range(40):
        red = number % 2 == 0
        pictures.append(np.array([200, 40, 40] if red else [40, 40, 200]) + draw.normal(0, 12, (32, 32, 3)))
        caption = f"A {'man' if red else 'woman'}, looking to the {'left' if number % 3 else 'right'}."
        rows.append({"caption": caption, "attribute.Male": red})
    return kit.archive(tmp_path / "faces.zip", pictures, train=24, rows=rows)


@pytest.mark.parametrize("changes", [{}, {"word_weight": 3.0, "stem": [4, 4, 8, 8]}])
def test_training_learns_the_captions(archive, tmp_path, changes):
    trained, job = backbone(steps=100, learning_rate=0.01, **changes), kit.job(tmp_path)
    trained.train(job)
    figures = trained.quality(job)
    assert figures["zero_shot.Male"] == figures["zero_shot"] == 1.0
    assert figures["neighbor"] == 1.0
    assert figures["retrieval_5"] == 1.0  # there are four captions
    assert trained.load(job.checkpoint).image_size == 32


def test_faces_without_captions_are_judged_without_retrieval_unless_it_has_a_floor(archive, tmp_path):
    known = FaceArchive(archive)
    pictures, rows = to_uint8(known.load().images), known.index.drop(columns="caption").to_dict("records")
    without = replace(kit.job(tmp_path), faces=kit.archive(tmp_path / "photographs.zip", pictures, rows=rows))
    backbone().train(kit.job(tmp_path))
    figures = backbone().quality(without)
    assert {"neighbor", "zero_shot"} < figures.keys()
    assert "retrieval_5" not in figures
    with pytest.raises(ParameterError, match=r"floor for retrieval_5.*no captions"):
        backbone(floor_retrieval=0.5).quality(without)


def test_faces_without_captions_are_refused(tmp_path):
    kit.archive(tmp_path / "faces.zip", kit.noise(4))
    with pytest.raises(ArchiveError, match="needs a caption of every image"):
        backbone().train(kit.job(tmp_path))


CLIP_TEXT = {"vocabulary": "clip", "context": 77, "width": 8, "layers": 1, "heads": 2}


def official(tmp_path, change=lambda state: state, wrap=lambda state: state, text=CLIP_TEXT):
    """Adopt a small file in CLIP's official layout. Returns the backbone, its job and the weights."""
    torch.manual_seed(1)
    adopting = backbone(text=text)
    state = semantics.build(semantics.describe_architecture(adopting.params)).state_dict()
    torch.save(wrap(change({key: value.half() for key, value in state.items()})), tmp_path / "official.pt")
    job = kit.job(tmp_path)
    adopting.convert_official(tmp_path / "official.pt", job)
    return adopting, job, state


def test_openais_state_dict_is_adopted(tmp_path):
    numbers = {"input_resolution": torch.tensor(32), "context_length": torch.tensor(77), "vocab_size": torch.tensor(9)}
    adopting, job, state = official(tmp_path, change=lambda weights: weights | numbers)
    model = adopting.load(job.checkpoint)
    kept = model.network.state_dict()
    assert kept.keys() == state.keys()
    assert all(torch.equal(kept[key], value.half().float()) for key, value in state.items())
    assert model.mean.flatten().tolist() == pytest.approx(semantics.CLIPS["mean"])
    features = model.text(["a photo of a face", "an entirely unheard-of sentence"])
    assert torch.allclose(features.norm(dim=1), torch.ones(2), atol=1e-5)


def farl_heads(weights):
    heads = {
        "visual.mask_token": torch.zeros(16), "visual.ln_lm.weight": torch.ones(16),
        "visual.lm_head.weight": torch.zeros(5, 16),
        "visual.lm_transformer.resblocks.0.ln_1.weight": torch.ones(16),
    }  # fmt: skip
    return weights | heads


def test_farls_file_is_adopted_without_its_masked_image_heads(tmp_path):
    adopting, job, state = official(tmp_path, farl_heads, lambda weights: {"state_dict": weights, "epoch": 64})
    assert adopting.load(job.checkpoint).network.state_dict().keys() == state.keys()


def test_file_without_a_text_encoder_gives_image_features_only(archive, tmp_path):
    def pictures_only(weights):
        return {key: value for key, value in farl_heads(weights).items() if key.startswith("visual.")}

    adopting, job, _ = official(tmp_path, pictures_only, lambda weights: {"state_dict": weights})
    model = adopting.load(job.checkpoint)
    assert model.cls(torch.zeros(1, 3, 32, 32)).shape == (1, 8)
    with pytest.raises(CheckpointError, match="holds the image encoder only"):
        model.text(["a man"])
    assert set(adopting.quality(job)) == {"neighbor"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: {k: v for k, v in state.items() if k != "visual.proj"}, "visual.proj is missing"),
        (lambda state: {"weights": torch.zeros(3)}, "is no CLIP"),
    ],
)
def test_file_of_another_layout_is_refused(tmp_path, change, message):
    with pytest.raises(CheckpointError, match=message):
        official(tmp_path, change)
    assert not kit.job(tmp_path).checkpoint.exists()


def test_published_file_for_a_vocabulary_of_captions_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"set text.vocabulary to clip"):
        official(tmp_path, text=SMALL["text"])
