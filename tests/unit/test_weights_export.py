"""weights/: networks are exported with 16 bits and a card; their commands and their folder."""

import json
import re
import shutil
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch

import command_line
from masquerade.core import discovery, fingerprints
from masquerade.core.errors import CheckpointError, MasqueradeError, ParameterError
from masquerade.judges import Judge
from masquerade.lineage import provenance
from masquerade.methods.latent import SetOfFakes, fakes
from masquerade.methods.latent.space import LatentSpace
from masquerade.params import loading, overlays
from masquerade.params.paths import Paths
from masquerade.pipeline import distractors, method_files, pretrained_networks, weights_export
from masquerade.pipeline.graph import Graph
from masquerade.training import cards, checkpoints, pretrained
from own_weights import (
    BACKBONES,
    METHODS,
    ROOT,
    adopt_backbone,
    edit,
    job_of,
    record,
    tensors_of,
)

IDENTITY = "checkpoints/tiny/backbones/identity.safetensors"


class TestExport:
    def test_parameters_have_16_bits_and_buffers_are_exact(self, trained):
        before = tensors_of(trained / IDENTITY)
        after = tensors_of(trained / "weights/identity.safetensors")
        buffers = checkpoints.list_buffers(trained / "weights/identity.safetensors")
        assert any("running_var" in name for name in buffers)
        assert any("num_batches_tracked" in name for name in buffers)
        assert before.keys() == after.keys()
        for name, tensor in before.items():
            if name in buffers:
                assert torch.equal(after[name], tensor)
                assert after[name].dtype == tensor.dtype
            else:
                assert torch.equal(after[name].float(), tensor.half().float())
        assert sum(tensor.dtype == torch.float16 for tensor in after.values()) > len(after) / 3

    def test_card_states_origin_parameters_and_hash(self, trained):
        card = cards.check_bytes("inversion", trained)
        parameters = loading.load(trained, "tiny")
        assert (card.block, card.scale, card.seed, card.hours) == ("backbones.inversion", "tiny", 0, 1.5)
        assert card.commit == "c" * 40
        assert card.data.group == "backbones"
        assert "no photographs" in card.data.people
        assert card.parameters["backbones.inversion"]["widths"] == list(parameters.backbones["inversion"].widths)
        assert card.parameters["people"] == parameters.people.model_dump()
        assert card.belongs_to == {"generator": cards.read_card("generator", trained).sha256}
        report = json.loads((trained / "checkpoints/tiny/backbones/inversion.json").read_text())
        assert card.quality == report["quality"]
        assert card.sha256 == fingerprints.sha256(trained / "weights/inversion.safetensors")

    def test_people_who_are_only_tested_are_in_no_card(self, trained):
        block = cards.read_card("identity", trained).parameters["datasets.synthetic_hq"]
        assert set(block["identities"]) == set(block["pictures_per_identity"]) == {"train", "validation"}

    def test_the_same_build_gives_the_same_bytes(self, trained, copied):
        shutil.rmtree(copied / "weights")
        weights_export.export(copied, "tiny", ["generator"])
        for path in (cards.weights_path("generator"), cards.card_path("generator")):
            assert (copied / path).read_bytes() == (trained / path).read_bytes()

    @pytest.mark.parametrize(("missing", "name", "message"), [
        (None, "generatorr", "no network 'generatorr'. Did you mean 'generator'"),
        (None, "riddle", "1 of 1 .* not built .*riddle.*snakemake all --config scale=tiny"),
        (provenance.circumstances_path(IDENTITY), "identity", r"no record of its training .*`dvc pull` does"),
        (cards.card_path("generator"), "inversion", "export both: `masquerade weights export generator inversion`"),
    ])  # fmt: skip
    def test_network_that_cannot_be_exported_is_refused_with_what_to_do(self, copied, missing, name, message):
        if missing:
            (copied / missing).unlink()
        with pytest.raises(MasqueradeError, match=message):
            weights_export.export(copied, "tiny", [name])

    def test_adopted_checkpoint_is_not_exported_again(self, repository):
        checkpoint, _ = adopt_backbone(repository, "identity")
        record(repository, str(checkpoint.relative_to(repository)))
        with pytest.raises(MasqueradeError, match=r"not trained at scale tiny: its weights are from weights:identity"):
            weights_export.export(repository, "tiny", ["identity"])

    def test_network_of_an_official_file_is_not_exported(self, copied):
        """Its license, its people and its training are not those that a card would state."""
        checkpoint = "checkpoints/tiny/methods/identitydp/0.safetensors"
        metadata = checkpoints.load_checkpoint(copied / checkpoint)[1]
        metadata |= {pretrained.PRETRAINED: {"name": "asset:ciagan", "sha256": "0" * 64}}
        checkpoints.write_tensors(copied / checkpoint, tensors_of(copied / checkpoint), metadata, [])
        record(copied, checkpoint)
        with pytest.raises(
            MasqueradeError, match=r"weights are from asset:ciagan, .* set methods.identitydp.published to"
        ):
            weights_export.export(copied, "tiny", ["identitydp"])

    def test_files_together_have_a_limit(self, copied, monkeypatch):
        shutil.rmtree(copied / "weights")
        monkeypatch.setattr(cards, "LIMIT", 100_000)
        with pytest.raises(MasqueradeError, match=r"would have .* MB together.*the largest, inversion"):
            weights_export.export(copied, "tiny", [*BACKBONES, *METHODS])
        assert not (copied / "weights").exists()


class TestGraph:
    def test_weight_file_and_card_are_inputs_of_the_job_that_adopts(self, repository):
        graph = Graph(repository, "tiny")
        wildcards = type("Wildcards", (), {"method": "identitydp", "seed": "0"})
        assert graph.methods.weights(wildcards) == ["weights/identitydp.safetensors", "weights/identitydp.yaml"]
        assert graph.backbones.published("identity") == ["weights/identity.safetensors", "weights/identity.yaml"]
        assert graph.backbones.published("semantics") == []

    def test_ablation_is_trained_unless_it_names_weights(self, repository):
        edit(repository, {"methods": {"ifadit": {"published": "weights:ifadit"}}})
        parameters = loading.load(repository, "tiny")
        assert parameters.weights_name("ifadit") == "ifadit"
        assert parameters.weights_name("ifadit", "without_div") == ""
        named = {"published_ablations": {"without_div": "weights:ifadit.without_div"}}
        edit(repository, {"methods": {"ifadit": named}})
        assert loading.load(repository, "tiny").weights_name("ifadit", "without_div") == "ifadit.without_div"

    def test_every_network_that_trains_declares_its_architecture(self, tiny):
        for network in pretrained_networks.list_networks(tiny):
            params = overlays.find_value(tiny.typed.model_dump(mode="json"), network.block)
            block = params["params"] if network.room == "methods" else params
            missing = [key for key in network.cls.architecture if overlays.find_value(block, key) is overlays.MISSING]
            assert network.cls.architecture, network.name
            assert missing == [], network.name


class TestCommandLine:
    def test_method_works_without_a_build(self, repository):
        sentences: list[str] = []
        parameters = loading.load(repository, "tiny")
        resources = method_files.find_resources(repository, parameters, "identitydp", "eps_6", sentences.append)
        assert resources.checkpoint == repository / ".masquerade/adopted/tiny/methods/identitydp/0.safetensors"
        block, cls = parameters.methods["identitydp"], discovery.load("methods", "identitydp")
        assert cls(block.params, block.variants["eps_6"], resources)
        assert len(sentences) == 1
        assert re.search(
            r"those of weights/ are used: identity, identitydp\. .*procedural people.*no photogr", sentences[0]
        )
        assert not (repository / "checkpoints").exists()

    def test_build_comes_before_weights(self, repository):
        identity, _ = adopt_backbone(repository, "identity")
        parameters, sentences = loading.load(repository, "tiny"), []
        resources = method_files.find_resources(repository, parameters, "identitydp", "eps_6", sentences.append)
        assert resources.backbones == {"identity": identity}
        assert "are used: identitydp." in sentences[0]

    def test_method_that_adopts_nothing_needs_a_build(self, repository):
        parameters = loading.load(repository, "tiny")
        with pytest.raises(
            CheckpointError, match=r"fit needs checkpoints/tiny/methods/fit/0.safetensors.*make reproduce"
        ):
            method_files.find_resources(repository, parameters, "fit", "default")

    def test_photographs_are_anonymized_without_a_build(self, repository, tmp_path, capsys):
        pictures = tmp_path / "photographs"
        pictures.mkdir()
        command_line.portrait().save(pictures / "eileen.png")
        options = ("--scale", "tiny", "--keep-recognizable")
        status = command_line.anonymize(repository, pictures, tmp_path / "out", *options, method="identitydp")
        assert status == 0, capsys.readouterr()
        assert "procedural people, drawn by a program; no photographs" in capsys.readouterr().err
        assert command_line.report(tmp_path / "out")["eileen.png"]["status"] == "ok"


def test_images_that_a_generator_draws_are_called_photographs_in_no_card():
    drawn = [
        cards.read_card(name, ROOT).data.people
        for name in cards.list_names(ROOT)
        if cards.read_card(name, ROOT).data.dataset == "generated_hq"
    ]
    assert drawn
    assert all("a published generator draws" in people and people.endswith("no photographs") for people in drawn)
    assert set(drawn) == {weights_export.describe_people(loading.load(ROOT, "photo_evening"))}


class TestDrift:
    def test_every_card_has_the_parameters_of_the_repository(self):
        problems = []
        for name in cards.list_names(ROOT):
            card = cards.read_card(name, ROOT)
            problems += weights_export.find_drift(card, loading.load(ROOT, card.scale))
        assert problems == [], "\n".join(problems)

    def test_changed_parameter_is_named_with_card_key_and_both_values(self, repository):
        edit(
            repository,
            {"backbones": {"generator": {"published": ""}}, "datasets": {"synthetic_hq": {"supersampling": 3}}},
        )
        edit(repository, {"backbones": {"generator": {"small_scale": {"reconstruction": {"steps": 9}}}}})
        assert weights_export.find_drift(
            cards.read_card("generator", repository), loading.load(repository, "tiny")
        ) == [
            f"weights/generator.yaml: {key} was {there} in the training, and scale tiny has {here} now."
            for key, there, here in (
                ("backbones.generator.small_scale.reconstruction.steps", 2, 9),
                ("datasets.synthetic_hq.supersampling", 1, 3),
            )
        ]

    def test_new_and_removed_parameters_are_drift(self):
        before, now = {"a": {"x": 1, "gone": 2}}, {"a": {"x": 1, "new": 3}}
        assert list(cards.find_differences(before, now)) == [("a.gone", 2, None), ("a.new", None, 3)]
        assert list(cards.find_differences({"a": [1, 2]}, {"a": (1, 2)})) == []


class TestFolder:
    def test_every_file_has_its_card_and_the_bytes_that_the_card_states(self):
        folder = ROOT / cards.FOLDER
        weights = {path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.safetensors")}
        assert sorted(weights) == cards.list_names(ROOT)
        assert all(cards.check_bytes(name, ROOT) for name in cards.list_names(ROOT))
        suffixes = {path.suffix for path in folder.rglob("*") if path.is_file() and path.name != "README.md"}
        assert suffixes <= {".safetensors", ".yaml"}

    def test_files_have_at_most_150_megabytes_together_and_40_each(self):
        sizes = [path.stat().st_size for path in (ROOT / cards.FOLDER).rglob("*.safetensors")]
        assert sum(sizes) <= cards.LIMIT
        assert max(sizes) <= cards.LARGEST


class TestFakes:
    """The set of fakes is exported and adopted as networks are."""

    @pytest.fixture
    def drawn(self, copied):
        """The repository with a semantics network, and fakes that were drawn and exported with it."""
        parameters, paths = loading.load(copied, "tiny"), Paths("tiny")
        backbone = discovery.load("backbones", "semantics")(parameters.backbones["semantics"])
        outputs = paths.backbone.format(backbone="semantics"), paths.backbone_quality.format(backbone="semantics")
        backbone.build(job_of(copied, type(backbone), copied / outputs[0]), copied / outputs[1])
        record(copied, *outputs)
        space = LatentSpace({name: copied / paths.backbone.format(backbone=name) for name in SetOfFakes.needs})
        fakes.write_fakes(
            space, copied / paths.fakes, parameters.fakes.count, parameters.fakes.psi, parameters.data_seed
        )
        record(copied, paths.fakes)
        weights_export.export(copied, "tiny", ["semantics", "fakes"])
        return copied

    def test_they_come_back_with_16_bits_for_their_generator_and_semantics_alone(self, drawn, tmp_path):
        parameters, before = loading.load(drawn, "tiny"), tensors_of(drawn / Paths("tiny").fakes)
        settings = parameters.fakes.model_copy(update={"published": "weights:fakes"})
        card = cards.check_bytes("fakes", drawn)
        assert card.belongs_to == {name: cards.read_card(name, drawn).sha256 for name in SetOfFakes.needs}
        assert card.size < 0.6 * (drawn / Paths("tiny").fakes).stat().st_size
        assert weights_export.find_drift(card, parameters) == []
        adopted = {name: tmp_path / f"{name}.safetensors" for name in SetOfFakes.needs}
        for name, checkpoint in adopted.items():
            cls = discovery.load("backbones", name)
            pretrained.load_pretrained(name, cls.architecture, parameters.backbones[name], {}, checkpoint, drawn)
        fakes.adopt(settings, adopted, tmp_path / "fakes.safetensors", drawn)
        after = fakes.load_fakes(tmp_path / "fakes.safetensors", LatentSpace(adopted))
        assert torch.equal(after.codes, before["fakes.codes"].half().float())
        assert torch.equal(after.features, before["fakes.features"].half().float())
        for name in SetOfFakes.needs:
            others = adopted | {name: drawn / Paths("tiny").backbone.format(backbone=name)}
            with pytest.raises(CheckpointError, match=f"belongs to 'weights:{name}'"):
                fakes.adopt(settings, others, tmp_path / "others.safetensors", drawn)

    def test_another_count_or_truncation_is_refused_while_the_graph_is_planned(self, drawn):
        edit(drawn, {"fakes": {"published": "weights:fakes", "psi": 0.5}})
        with pytest.raises(ParameterError, match=r"fakes.*psi is 0\.5 here, and 0\.7 in the weights"):
            pretrained_networks.check_pretrained(loading.load(drawn, "tiny"), drawn)


class TestDistractors:
    """The embeddings of drawn faces are exported and adopted as networks are."""

    @pytest.fixture
    def drawn(self, trained):
        """The repository with embeddings that were computed and exported with its generator."""
        parameters, paths = loading.load(trained, "tiny"), Paths("tiny")
        colors = SimpleNamespace(measure=lambda images: {"embedding": images.mean(axis=(2, 3))})
        generator = trained / paths.backbone.format(backbone="generator")
        distractors.write_distractors(
            {"generator": generator}, {"recognizer_a": cast(Judge, colors)}, trained / paths.distractors,
            parameters.distractors, parameters.data_seed,
        )  # fmt: skip
        record(trained, paths.distractors)
        weights_export.export(trained, "tiny", ["distractors"])
        return trained

    def test_they_come_back_with_16_bits_for_their_generator_alone(self, drawn, tmp_path):
        parameters, paths = loading.load(drawn, "tiny"), Paths("tiny")
        before = distractors.read_distractors(drawn / paths.distractors)["recognizer_a"]
        settings = parameters.distractors.model_copy(update={"published": "weights:distractors"})
        card = cards.check_bytes("distractors", drawn)
        assert card.belongs_to == {"generator": cards.read_card("generator", drawn).sha256}
        assert weights_export.find_drift(card, parameters) == []
        generator, adopted = tmp_path / "generator.safetensors", tmp_path / "distractors.safetensors"
        architecture = discovery.load("backbones", "generator").architecture
        pretrained.load_pretrained("generator", architecture, parameters.backbones["generator"], {}, generator, drawn)
        distractors.adopt(settings, {"generator": generator}, adopted, drawn)
        after = distractors.read_distractors(adopted)["recognizer_a"]
        assert before.shape == (settings.count, 3)
        assert np.array_equal(after, before.astype(np.float16))
        another = {"generator": drawn / paths.backbone.format(backbone="generator")}
        with pytest.raises(CheckpointError, match="belongs to 'weights:generator'"):
            distractors.adopt(settings, another, tmp_path / "others.safetensors", drawn)
        more = settings.model_copy(update={"count": settings.count + 1})
        with pytest.raises(ParameterError, match="count is 25 here, and 24 in the weights"):
            distractors.adopt(more, {"generator": generator}, tmp_path / "more.safetensors", drawn)
