"""LReOrg: swap training, the method, and hidden, kept and recovered keywords."""

import json

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from torch.nn import functional

import kit
from masquerade.core import discovery, fingerprints, seeding
from masquerade.core.errors import ParameterError
from masquerade.core.images import FaceArchive, to_uint8
from masquerade.methods import Resources
from masquerade.methods.latent.codes import Table
from masquerade.methods.latent.space import LatentSpace
from masquerade.methods.lreorg import training
from masquerade.methods.lreorg.method import LReOrg
from masquerade.methods.lreorg.network import Vocabulary, train_reader
from masquerade.training import checkpoints

SIZE, STYLE = kit.SIZE, 12
WORDS = ["black", "blond", "hair", "man", "old", "person", "woman", "young"]
KEYWORDS = {
    "identity": {"condition": "person", "template": "", "contents": []},
    "gender": {"condition": "man woman", "template": "a $.", "contents": ["man", "woman"]},
    "age": {"condition": "young old", "template": "a $ person.", "contents": ["young", "old"]},
}
COLOR = {"color": {"condition": "hair", "template": "$ hair", "contents": ["black", "blond"]}}
WEIGHTS = {
    "swapped_identity": 24.0, "perceptual": 1.2, "latent": 3.0, "information": 10.0, "kept_identity": 0.2,
    "swapped_attribute": 30.0,
}  # fmt: skip
KNOBS = {
    "keywords": KEYWORDS, "blocks": 2, "hidden": 8, "growth": 4, "limit": 2.0,
    "faces": 40, "losses": WEIGHTS, "steps": 6, "batch": 4,
    "inverted": 0.0, "learning_rate": 0.01, "betas": [0.5, 0.99], "ema": 0.0, "samples_every": 3,
}  # fmt: skip
SMALL = {"pictures_every": 2, "code_batch": 8, "reader_steps": 20, "others": 1.0, "cooldown": 0.5}
VARIANT = {
    "hide": ["identity"], "keep": ["gender", "age"], "further": COLOR, "identity": "group", "groups": 6, "nearest": 3,
    "farthest": 6, "epsilon": 1.0, "sensitivity": "measured", "sampler": "seeded",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Checkpoints of small networks with random weights, fakes, and an archive of smooth noise."""
    folder = tmp_path_factory.mktemp("lreorg")
    paths = kit.networks(folder, WORDS)
    splits = [{"split": "test" if number < 4 else "train"} for number in range(16)]
    kit.archive(folder / "faces.zip", kit.noise(16, tile=8), rows=splits, size=SIZE)
    with torch.no_grad():
        drawn = discovery.load("backbones", "generator").load(paths["generator"]).map(torch.randn(60, STYLE))
    columns = Table({"codes": drawn, "features": torch.randn(60, 8)})  # features of several contents
    metadata = {"generator": fingerprints.md5(paths["generator"])}
    checkpoints.save_checkpoint(folder / "fakes.safetensors", {"fakes": columns}, metadata)
    return folder


def backbones(folder):
    return job(folder, "").backbones


def job(folder, name, **more):
    return kit.job(folder, name, LReOrg.needs, **more)


def knobs(small=None, **changes):
    losses, small_scale = WEIGHTS | changes.pop("losses", {}), SMALL | (small or {})
    return LReOrg.Params(**{**KNOBS, **changes, "losses": losses, "small_scale": small_scale})


@pytest.fixture(scope="module")
def trained(folder):
    given = job(folder, "trained")
    LReOrg.train(knobs(), given)
    return given.checkpoint


def built(folder, trained, **changes):
    resources = Resources(trained, backbones(folder), None, folder / "fakes.safetensors")
    return LReOrg(knobs(), LReOrg.Variant(**{**VARIANT, **changes}), resources)


@pytest.fixture(scope="module")
def faces(folder):
    return FaceArchive(folder / "faces.zip").load("test")


class TestTraining:
    def test_identity_and_attribute_steps_alternate_and_samples_show_a_swap_of_every_keyword(self, folder):
        curves, pictures = kit.Curve(), {}
        params = knobs({"pictures_every": 3}, steps=24)
        LReOrg.train(params, job(folder, "curves", log=curves, picture=pictures.__setitem__))
        shared = {"latent", "information", "others", "total"}
        assert set(curves[0]) == {f"identity.{name}" for name in shared | {"swapped_identity", "perceptual"}}  # Eq. 5
        attribute = shared | {"kept_identity", "swapped_attribute"}
        assert set(curves[23]) == {f"codes.attribute.{name}" for name in attribute}  # Eq. 8, without pictures
        assert set(curves[20]) == {f"codes.identity.{name}" for name in shared | {"swapped_identity"}}
        assert next(iter(pictures.values())).shape == (6 * SIZE, 5 * SIZE, 3)  # two faces and three keywords

    def test_losses_fall(self, folder):
        curves = kit.Curve()
        weights = {"perceptual": 0.0, "latent": 0.1, "information": 0.1}
        LReOrg.train(knobs({"others": 0.0}, steps=121, losses=weights), job(folder, "falling", log=curves))
        first, last = (curves[step]["identity.swapped_identity"] for step in (0, 120))
        assert last < first - 0.2

    def test_trained_reader_predicts_features_from_codes(self, folder):
        space = LatentSpace(backbones(folder))
        codes = space.generator.map(torch.randn(200, STYLE)).detach()
        identities = functional.normalize(codes @ torch.randn(STYLE, 512))
        features = torch.tanh(codes @ torch.randn(STYLE, 8))
        predicted = train_reader(codes, identities, features, 60, 0)(codes)
        for values, expected in zip(predicted, (identities, features), strict=True):
            assert functional.cosine_similarity(values, expected).mean() > 0.8

    def test_half_of_the_faces_can_be_inverted_photographs(self, folder, caplog):
        params = knobs(steps=4, faces=16, inverted=0.5)
        LReOrg.train(params, job(folder, "inverted"))
        space = LatentSpace(backbones(folder))
        archive, given = FaceArchive(folder / "faces.zip"), job(folder, "inverted")
        codes = training.invert_images(archive, space, 8, given)
        train = space.invert(archive.load("train").images)
        assert len(codes) == 8
        assert all((code == train).all(dim=(1, 2)).any() for code in codes)
        identity = discovery.load("backbones", "identity").load(given.backbones["identity"])
        task = training.SwapTask(params, space, identity, 0, codes)
        assert task.codes.shape == (16, space.generator.layers, STYLE)
        assert torch.equal(task.codes[8:], codes)
        assert (task.codes[:8] == task.codes[:8, :1]).all()  # drawn from W: one style for all layers
        drawn = to_uint8(space.draw(codes).numpy()).astype(int)
        assert np.abs(task.images[8:].astype(int) - drawn).max() <= 1
        assert len(training.invert_images(archive, space, 20, given)) == 12  # all that there are
        assert "ask for 20 photographs, and the group 'train' has 12" in caplog.text

    def test_a_keyword_without_contents_cannot_be_trained(self):
        with pytest.raises(ValidationError, match="without contents: pose"):
            knobs(keywords={**KEYWORDS, "pose": {"condition": "pose", "template": "", "contents": []}})
        with pytest.raises(ValidationError, match="keywords must have 'identity'"):
            knobs(keywords={name: KEYWORDS[name] for name in ("gender", "age")})

    def test_content_probabilities_are_those_of_clip(self, folder):
        space = LatentSpace(backbones(folder))
        words = Vocabulary(space.semantics, knobs().keywords)
        features = torch.randn(5, 8)
        scale = space.semantics.network.logit_scale.exp()
        expected = (scale * functional.normalize(features) @ space.semantics.text(["a man.", "a woman."]).T).softmax(-1)
        torch.testing.assert_close(words.log_probabilities("gender", features).exp(), expected)

    def test_identity_and_maps_come_from_one_pass(self, folder):
        identity = discovery.load("backbones", "identity").load(folder / "identity.safetensors")
        images = torch.rand(2, 3, SIZE, SIZE) * 2 - 1
        vectors, maps = training.encode_identity(identity, images)
        torch.testing.assert_close(vectors, identity(images))
        assert [tuple(part.shape[1:]) for part in maps] == [(8, 32, 32), (8, 16, 16), (8, 8, 8)]
        assert not identity.network.input_layer._forward_hooks


class TestMethod:
    def test_hidden_identity_is_that_of_a_drawn_face(self, folder, trained, faces):
        """Without recovery, the fused key feature is that of a drawn face."""
        method = built(folder, trained, keep=[])
        drawn = method._separate(method._fakes.codes, "identity")[0].numpy()
        real, _ = method._codes.of(faces)
        key, _ = method._separate(real, "identity")
        changed = method._anonymizers["identity"].anonymize(key.numpy(), list(faces.ids), 0)
        assert all((drawn == row).all(1).any() for row in changed[:, 0])

    def test_kept_keyword_has_the_features_of_the_original(self, folder, trained, faces):
        method = built(folder, trained, keep=["age"])
        original, _ = method._codes.of(faces)
        hidden = method._hide(faces, 0)
        kept = method._restore(hidden, faces)
        expected = method._fuse(method._separate(original, "age")[0], method._separate(hidden, "age")[1], "age")
        torch.testing.assert_close(kept, expected)

    def test_order_of_keywords_changes_the_result(self, folder, trained, faces):
        one = built(folder, trained, hide=["gender", "age"], keep=[]).anonymize(faces, 0)
        other = built(folder, trained, hide=["age", "gender"], keep=[]).anonymize(faces, 0)
        assert not np.array_equal(one, other)

    def test_a_new_keyword_needs_no_training(self, folder, trained, faces):
        usual = built(folder, trained).anonymize(faces, 0)
        assert not np.array_equal(built(folder, trained, hide=["identity", "color"]).anonymize(faces, 0), usual)

    def test_saved_features_are_fused_back_in_reverse_order(self, folder, trained, faces):
        method = built(folder, trained, hide=["gender", "age"], keep=[])
        original, _ = method._codes.of(faces)
        saved = method.save(faces, 0, None)
        assert set(saved) == {"code", "gender", "age"}
        torch.testing.assert_close(saved["age"], method._separate(original, "age")[0])
        without_age = method._fuse(saved["age"], method._separate(saved["code"], "age")[1], "age")
        expected = method._fuse(saved["gender"], method._separate(without_age, "gender")[1], "gender")
        np.testing.assert_array_equal(method.recover_saved(saved, None), method._draw_images(expected))

    def test_views_are_other_draws_and_the_steps_of_recovery(self, folder, trained, faces):
        views = built(folder, trained).views(faces)
        assert set(views) == {"draw.1", "draw.2", "draw.3", "plus.gender"}
        seed = seeding.derive_seed(2, "lreorg", "draw")
        np.testing.assert_array_equal(views["draw.2"], built(folder, trained).anonymize(faces, seed))
        assert not np.array_equal(views["draw.1"], views["draw.2"])
        assert built(folder, trained, keep=[]).views(faces) == {}
        shown = built(folder, trained, hide=["gender"], keep=["identity", "age"])
        assert set(shown.views(faces)) == {"plus.identity"}  # only a hidden identity is drawn again

    def test_statement_holds_budget_ranks_and_limits(self, folder, trained):
        statement = built(folder, trained, sampler="opendp").statement()
        assert statement["epsilon"] == 1.0
        assert statement["sensitivity"] == 2.0
        assert statement["ranks"] == "3-6"
        assert "between no others" in statement["guarantee"]
        assert "not differentially private" in statement["guarantee"]
        assert "None" in built(folder, trained).statement()["guarantee"]
        assert "None" in built(folder, trained, hide=["age"], keep=[]).statement()["guarantee"]
        json.dumps(statement)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"hide": ["religion"]}, "no keyword religion. There are: identity, gender, age, color"),
            ({"further": {"hat": {"condition": "hat", "template": "", "contents": []}}, "hide": ["hat"]}, "hat cannot"),
        ],
    )
    def test_wrong_keywords_are_refused_with_a_reason(self, folder, trained, changes, message):
        with pytest.raises(ParameterError, match=message):
            built(folder, trained, **changes)
