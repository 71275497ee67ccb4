"""weights/: networks are adopted strictly, and refused with a reason."""

import shutil
from pathlib import Path

import pytest
import torch
import yaml

from masquerade.core import discovery, fingerprints
from masquerade.core.errors import BelowFloor, CheckpointError, ParameterError
from masquerade.methods import Resources
from masquerade.methods._disentanglement import training as stage_one
from masquerade.params import loading, overlays
from masquerade.params.paths import Paths
from masquerade.pipeline import pretrained_networks
from masquerade.pipeline.graph import Graph
from masquerade.training import cards, checkpoints, pretrained
from own_weights import adopt_backbone, edit, job_of, tensors_of


def adopt_method(root: Path, name: str) -> Path:
    cls, checkpoint = discovery.load("methods", name), root / Paths("tiny").method.format(method=name, seed=0)
    params, job = loading.load(root, "tiny").methods[name].params, job_of(root, cls, checkpoint)
    pretrained.load_pretrained(name, cls.architecture, params, job.backbones, checkpoint, root)
    return checkpoint


def change_card(root: Path, name: str, **changes) -> None:
    file = root / cards.card_path(name)
    file.write_text(yaml.safe_dump({**overlays.read_yaml(file), **changes}))


class TestRounding:
    def test_buffers_stay_exact(self):
        mean = {"net.mean": torch.tensor([7e4])}
        assert pretrained.round_to_half(mean, ["net.mean"]) == mean

    def test_numbers_that_16_bits_cannot_hold_keep_32(self):
        tensors = {
            "small": torch.full((4,), 3e-7), "large": torch.tensor([1.0, -7e4]), "usual": torch.linspace(0.1, 1, 4),
            "zero": torch.zeros(2),
        }  # fmt: skip
        rounded = pretrained.round_to_half(tensors, [])
        assert {name for name, tensor in rounded.items() if tensor.dtype == torch.float32} == {"small", "large"}


class TestAdoption:
    def test_backbone_has_the_rounded_weights_and_the_figures_of_its_card(self, repository, trained):
        checkpoint, report = adopt_backbone(repository, "generator")
        card = cards.read_card("generator", repository)
        assert report["quality"] == card.quality
        assert (report["published"], report["figures_of"], report["sha256"]) == (
            "weights:generator",
            "tiny",
            card.sha256,
        )
        network = discovery.load("backbones", "generator").load(checkpoint)
        original = discovery.load("backbones", "generator").load(
            trained / "checkpoints/tiny/backbones/generator.safetensors"
        )
        for one, other in zip(network.parameters(), original.parameters(), strict=True):
            assert torch.allclose(one, other, rtol=1e-3, atol=1e-6)
        assert {tensor.dtype for tensor in tensors_of(checkpoint).values()} == {torch.float32}
        assert checkpoints.load_checkpoint(checkpoint)[1][pretrained.PRETRAINED]["name"] == "generator"

    def test_adoption_gives_the_same_bytes_each_time(self, repository):
        first = adopt_backbone(repository, "generator")[0].read_bytes()
        assert adopt_backbone(repository, "generator")[0].read_bytes() == first

    def test_network_belongs_to_the_adopted_backbone(self, repository):
        generator, _ = adopt_backbone(repository, "generator")
        adopt_backbone(repository, "identity")
        inversion, _ = adopt_backbone(repository, "inversion")
        assert checkpoints.load_checkpoint(inversion)[1]["generator"] == fingerprints.md5(generator)

    def test_network_with_another_backbone_than_its_own_is_refused(self, repository, trained):
        path = Paths("tiny").backbone
        adopt_backbone(repository, "identity")
        shutil.copy(trained / path.format(backbone="generator"), repository / path.format(backbone="generator"))
        with pytest.raises(CheckpointError, match="'weights:inversion' belongs to 'weights:generator' with"):
            adopt_backbone(repository, "inversion")

    def test_adopted_method_anonymizes(self, repository):
        identity, _ = adopt_backbone(repository, "identity")
        checkpoint = adopt_method(repository, "identitydp")
        block, cls = loading.load(repository, "tiny").methods["identitydp"], discovery.load("methods", "identitydp")
        resources = Resources(checkpoint=checkpoint, backbones={"identity": identity})
        variant = block.variants["eps_6"]
        assert cls(block.params, variant, resources)

    def test_kin_takes_the_generator_of_an_adopted_method(self, repository):
        adopt_backbone(repository, "identity")
        base, cls = adopt_method(repository, "identitydp"), discovery.load("methods", "identitydp")
        parameters = loading.load(repository, "tiny")
        job = job_of(repository, cls, repository / "kin.safetensors", base)
        identity = discovery.load("backbones", "identity").load(job.backbones["identity"])
        stage_one.train(parameters.methods["identitydp"].params, job, {"identity": identity})
        assert tensors_of(job.checkpoint).keys() == tensors_of(base).keys()
        assert all(torch.equal(tensor, tensors_of(base)[name]) for name, tensor in tensors_of(job.checkpoint).items())

    def test_figure_of_the_card_below_a_floor_stops_the_build(self, repository):
        edit(repository, {"backbones": {"identity": {"recognition": {"floor_auc": 1.0}}}})
        with pytest.raises(BelowFloor, match=r"auc is .*, the floor is 1"):
            adopt_backbone(repository, "identity")
        assert not (repository / Paths("tiny").backbone.format(backbone="identity")).exists()


class TestBadInput:
    def test_other_file_is_refused_with_both_hashes(self, repository):
        path = repository / cards.weights_path("identity")
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")
        stated = cards.read_card("identity", repository).sha256
        with pytest.raises(
            CheckpointError, match=rf"its SHA-256 is \w+, and its card .* states {stated}. Restore both"
        ):
            adopt_backbone(repository, "identity")

    def test_file_that_is_no_weight_file_is_refused(self, repository):
        path = repository / cards.weights_path("identity")
        path.write_bytes(b"no weights" * 10_000)
        change_card(repository, "identity", size=path.stat().st_size, sha256=fingerprints.sha256(path))
        with pytest.raises(CheckpointError, match=r"cannot be read as a weight file .*git checkout -- weights"):
            adopt_backbone(repository, "identity")

    def test_other_widths_are_refused_by_name_with_both_values(self, repository):
        edit(repository, {"backbones": {"identity": {"widths": [8, 8, 8, 8, 16]}}})
        text = (
            r"does not fit the parameters of this scale \(backbones.identity\): widths is \[8, 8, 8, 8, 16\] here, and "
        )
        text += r"\[8, 8, 8, 8, 8\] in the weights. Set these keys"
        with pytest.raises(ParameterError, match=text):
            adopt_backbone(repository, "identity")
        with pytest.raises(ParameterError, match=text):
            Graph(repository, "tiny")

    def test_keys_are_loaded_strictly(self, repository):
        path = repository / cards.weights_path("identity")
        tensors, metadata = pretrained.read_weights(path)
        tensors["network.extra"] = tensors.pop(next(iter(tensors)))
        checkpoints.write_tensors(path, tensors, metadata, [])
        change_card(repository, "identity", size=path.stat().st_size, sha256=fingerprints.sha256(path))
        with pytest.raises(CheckpointError, match=r"does not fit .* is missing; extra is left over"):
            adopt_backbone(repository, "identity")
        assert not (repository / Paths("tiny").backbone.format(backbone="identity")).exists()

    @pytest.mark.parametrize(("path", "text"), [
        (cards.card_path("identity"), r"backbones.identity: .*weights/identity.yaml is missing.*git checkout"),
        (cards.weights_path("identity"), r"weights/identity.safetensors is missing; its card .* is there"),
    ])  # fmt: skip
    def test_missing_file_is_refused_before_anything_runs(self, repository, path, text):
        (repository / path).unlink()
        with pytest.raises(ParameterError, match=text):
            Graph(repository, "tiny")

    def test_damaged_card_names_its_mistakes(self, repository):
        change_card(repository, "identity", hours="long", color="red")
        with pytest.raises(CheckpointError, match=r"identity.yaml is not the card .*hours: .*color: .*Restore both"):
            cards.read_card("identity", repository)

    @pytest.mark.parametrize(
        ("over", "text"),
        [
            (
                {"backbones": {"generator": {"published": ""}}},
                r"belongs to 'weights:generator' and works with no other",
            ),
            (
                {"backbones": {"generator": {"published": "weights:identity"}}},
                r"generator: 'weights:identity' is a netw",
            ),
            (
                {"image": {"size": 128}},
                r"identity: 'weights:identity' was trained on images of 64 pixels, and those of ",
            ),
            ({"seeds": [0, 1]}, r"identitydp: 'weights:identitydp' was trained with seed 0, and this .* with 1"),
        ],
    )
    def test_weights_that_do_not_fit_the_scale_are_refused_by_name(self, repository, over, text):
        edit(repository, over)
        with pytest.raises(ParameterError, match=text):
            pretrained_networks.check_pretrained(loading.load(repository, "tiny"), repository)

    @pytest.mark.parametrize("block", ["backbones.landmarks", "methods.riddle"])
    def test_network_without_a_published_layout_adopts_only_weights(self, repository, block):
        room, name = block.split(".")
        edit(repository, {room: {name: {"published": "riddle.pt"}}})
        with pytest.raises(ParameterError, match=rf"'{block}.published' is 'riddle.pt': .*use 'weights:<name>'"):
            loading.load(repository, "tiny")

    def test_method_with_an_official_layout_adopts_only_its_own_files(self, repository):
        edit(repository, {"methods": {"ciagan": {"published": "asset:ciagan"}}})
        assert loading.load(repository, "tiny").official_role("ciagan") == "ciagan"
        edit(repository, {"methods": {"ciagan": {"published": "asset:dartblur"}}})
        with pytest.raises(ParameterError, match=r"methods.ciagan.published names 'dartblur', which is not defined"):
            loading.load(repository, "tiny")
        edit(repository, {"methods": {"ciagan": {"published": "modelG.pth"}}})
        with pytest.raises(ParameterError, match=r"use 'weights:<name>'"):
            loading.load(repository, "tiny")

    def test_published_ablation_that_is_none_is_refused(self, repository):
        edit(repository, {"methods": {"ifadit": {"published_ablations": {"full": "weights:ifadit.full"}}}})
        with pytest.raises(ParameterError, match=r"published_ablations names 'full', which is not defined"):
            loading.load(repository, "tiny")
