"""weights/: networks are exported with 16 bits and a card, adopted strictly, and refused with a reason."""

import json
import re
import shutil
from pathlib import Path

import pytest
import torch
import yaml
from safetensors import safe_open

import command_line
from masquerade import faces
from masquerade.core import discovery, fingerprints
from masquerade.core.errors import BelowFloor, CheckpointError, MasqueradeError, ParameterError
from masquerade.lineage import provenance
from masquerade.methods import Resources
from masquerade.methods._disentanglement import training as stage_one
from masquerade.params import loading, overlays, yaml_files
from masquerade.params.paths import Paths
from masquerade.pipeline import adopted_networks, method_builder, method_files, weights_export
from masquerade.pipeline.graph import Graph
from masquerade.training import adoption, cards, checkpoints, half_precision
from masquerade.training.job import TrainingJob

ROOT = Path(__file__).parents[2]
BACKBONES, METHODS = ("generator", "identity", "inversion"), ("identitydp",)
ADOPTED = {
    "backbones": {name: {"published": f"weights:{name}"} for name in BACKBONES},
    "methods": {name: {"published": f"weights:{name}"} for name in METHODS},
}


def job_of(root: Path, cls: type, checkpoint: Path, base: Path | None = None) -> TrainingJob:
    paths = Paths("tiny")
    return TrainingJob(
        faces=root / paths.faces.format(dataset="synthetic_hq"),
        backbones={name: root / paths.backbone.format(backbone=name) for name in cls.needs},
        checkpoint=checkpoint, state=root / "state.pt", seed=0, threads=1, log=lambda *_: None,
        picture=lambda *_: None, base=base, people=cls.people,
    )  # fmt: skip


def record(root: Path, *outputs: str) -> None:
    """The circumstances of a job, as its program writes them."""
    hashes = {path: fingerprints.md5(root / path) for path in outputs}
    content = {"outputs": hashes, "commit": "c" * 40, "seconds": 5400.0, "machine": provenance.machine()}
    file = root / provenance.path_of(outputs[0])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


def parameters_into(root: Path) -> None:
    shutil.copy(ROOT / "params.yaml", root)
    shutil.copytree(ROOT / "scales", root / "scales")


@pytest.fixture(scope="session")
def trained(once) -> Path:
    """A repository in which some networks of the scale tiny were trained and exported."""

    def build(root: Path) -> None:
        parameters_into(root)
        parameters, paths = loading.load(root, "tiny"), Paths("tiny")
        archive = root / paths.faces.format(dataset="synthetic_hq")
        archive.parent.mkdir(parents=True)
        dataset = discovery.load("faces", "synthetic_hq")(parameters.datasets["synthetic_hq"])
        faces.build(dataset, archive, parameters.image.size, 0, parameters.people.model_dump())
        for name in BACKBONES:
            backbone = discovery.load("backbones", name)(parameters.backbones[name])
            outputs = paths.backbone.format(backbone=name), paths.backbone_quality.format(backbone=name)
            backbone.build(job_of(root, type(backbone), root / outputs[0]), root / outputs[1])
            record(root, *outputs)
        for name in METHODS:
            cls, output = discovery.load("methods", name), paths.method.format(method=name, seed=0)
            cls.train(parameters.methods[name].params, job_of(root, cls, root / output))
            record(root, output)
        weights_export.export(root, "tiny", [*BACKBONES, *METHODS])

    return once("trained_networks", build)


@pytest.fixture
def repository(trained, tmp_path, monkeypatch) -> Path:
    """A repository that has the weights, adopts them at the scale tiny, and has built nothing but faces."""
    root = tmp_path / "repository"
    root.mkdir()
    parameters_into(root)
    shutil.copytree(trained / "weights", root / "weights")
    shutil.copytree(trained / "data", root / "data")
    (root / "reference").symlink_to(ROOT / "reference")
    edit(root, ADOPTED)
    monkeypatch.chdir(root)
    return root


def edit(root: Path, over: dict) -> None:
    """Put an overlay on scales/tiny.yaml."""
    file = root / "scales/tiny.yaml"
    file.write_text(yaml.safe_dump(overlays.overlay(yaml_files.read(file), over)))


def adopt_backbone(root: Path, name: str) -> tuple[Path, dict]:
    """The checkpoint and the report of a backbone that the rule of the graph adopts."""
    backbone = discovery.load("backbones", name)(loading.load(root, "tiny").backbones[name])
    checkpoint = root / Paths("tiny").backbone.format(backbone=name)
    report = checkpoint.with_suffix(".json")
    backbone.build(job_of(root, type(backbone), checkpoint), report)
    return checkpoint, json.loads(report.read_text())


def adopt_method(root: Path, name: str) -> Path:
    cls, checkpoint = discovery.load("methods", name), root / Paths("tiny").method.format(method=name, seed=0)
    params, job = loading.load(root, "tiny").methods[name].params, job_of(root, cls, checkpoint)
    adoption.adopt(name, cls.architecture, params, job.backbones, checkpoint, root)
    return checkpoint


def change_card(root: Path, name: str, **changes) -> None:
    file = root / cards.card_path(name)
    file.write_text(yaml.safe_dump({**yaml_files.read(file), **changes}))


def tensors_of(path: Path) -> dict[str, torch.Tensor]:
    with safe_open(path, framework="pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict


class TestExport:
    def test_parameters_have_16_bits_and_buffers_are_exact(self, trained):
        before = tensors_of(trained / "checkpoints/tiny/backbones/identity.safetensors")
        after = tensors_of(trained / "weights/identity.safetensors")
        buffers = checkpoints.buffers_of(trained / "weights/identity.safetensors")
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
        card = cards.checked("inversion", trained)
        parameters = loading.load(trained, "tiny")
        assert (card.block, card.scale, card.seed, card.hours) == ("backbones.inversion", "tiny", 0, 1.5)
        assert card.commit == "c" * 40
        assert card.data.group == "backbones"
        assert "no photographs" in card.data.people
        assert card.parameters["backbones.inversion"]["widths"] == list(parameters.backbones["inversion"].widths)
        assert card.parameters["people"] == parameters.people.model_dump()
        assert card.belongs_to == {"generator": cards.read("generator", trained).sha256}
        report = json.loads((trained / "checkpoints/tiny/backbones/inversion.json").read_text())
        assert card.quality == report["quality"]
        assert card.sha256 == fingerprints.sha256(trained / "weights/inversion.safetensors")

    def test_people_who_are_only_tested_are_in_no_card(self, trained):
        block = cards.read("identity", trained).parameters["datasets.synthetic_hq"]
        assert set(block["identities"]) == set(block["pictures_per_identity"]) == {"train", "validation"}

    def test_the_same_build_gives_the_same_bytes(self, trained, tmp_path):
        root = tmp_path / "again"
        shutil.copytree(trained, root)
        shutil.rmtree(root / "weights")
        weights_export.export(root, "tiny", ["generator"])
        for path in (cards.weights_path("generator"), cards.card_path("generator")):
            assert (root / path).read_bytes() == (trained / path).read_bytes()

    def test_loss_of_quality_is_measured_on_the_rounded_weights(self, trained):
        exported = [
            weights_export.Exported(one, cards.read(one.name, trained), 0.0)
            for one in weights_export.networks(loading.load(trained, "tiny"))
            if one.name == "identity"
        ]
        losses = list(weights_export.rounding_losses(exported, loading.load(trained, "tiny"), trained))
        assert {name for name, *_ in losses} == {"identity"}
        assert {figure: before for _, figure, before, _ in losses} == exported[0].card.quality
        assert all(abs(after - before) <= 0.2 for _, figure, before, after in losses if figure == "auc")

    def test_unknown_network_gives_the_nearest(self, trained):
        with pytest.raises(MasqueradeError, match=r"no network 'generatorr'. Did you mean 'generator'"):
            weights_export.export(trained, "tiny", ["generatorr"])

    def test_network_that_is_not_built_is_refused_with_the_command(self, trained):
        with pytest.raises(MasqueradeError, match=r"1 of 1 .* not built .*riddle.*snakemake all --config scale=tiny"):
            weights_export.export(trained, "tiny", ["riddle"])

    def test_checkpoint_without_a_record_is_refused(self, trained, tmp_path):
        root = tmp_path / "unrecorded"
        shutil.copytree(trained, root)
        (root / provenance.path_of("checkpoints/tiny/backbones/identity.safetensors")).unlink()
        with pytest.raises(MasqueradeError, match=r"has no record of its training .*\(`dvc pull` does\), or build"):
            weights_export.export(root, "tiny", ["identity"])

    def test_network_without_the_backbone_that_it_belongs_to_is_refused(self, trained, tmp_path):
        root = tmp_path / "alone"
        shutil.copytree(trained, root)
        (root / cards.card_path("generator")).unlink()
        with pytest.raises(MasqueradeError, match=r"Export both: `masquerade weights export generator inversion`"):
            weights_export.export(root, "tiny", ["inversion"])

    def test_adopted_checkpoint_is_not_exported_again(self, repository):
        checkpoint, _ = adopt_backbone(repository, "identity")
        record(repository, str(checkpoint.relative_to(repository)))
        with pytest.raises(MasqueradeError, match=r"was not trained at scale tiny: it was adopted"):
            weights_export.export(repository, "tiny", ["identity"])

    def test_files_together_have_a_limit(self, trained, tmp_path, monkeypatch):
        root = tmp_path / "large"
        shutil.copytree(trained, root)
        shutil.rmtree(root / "weights")
        monkeypatch.setattr(cards, "LIMIT", 100_000)
        with pytest.raises(MasqueradeError, match=r"would have .* MB together.*The largest: inversion"):
            weights_export.export(root, "tiny", [*BACKBONES, *METHODS])
        assert not (root / "weights").exists()


class TestRounding:
    def test_value_beyond_16_bits_is_refused_by_name(self):
        with pytest.raises(
            CheckpointError, match=r"a.pt: net.weight holds 70000, and a 16-bit float holds at most 65504"
        ):
            half_precision.rounded({"net.weight": torch.tensor([1.0, -7e4])}, [], Path("a.pt"))

    def test_value_that_is_no_number_is_refused(self):
        with pytest.raises(CheckpointError, match=r"net.weight holds values that are not numbers"):
            half_precision.rounded({"net.weight": torch.tensor([float("nan")])}, [], Path("a.pt"))

    def test_buffer_may_hold_any_number(self):
        mean = {"net.mean": torch.tensor([7e4])}
        assert half_precision.rounded(mean, ["net.mean"], Path("a.pt")) == mean

    def test_numbers_that_are_too_small_for_16_bits_keep_32(self):
        tensors = {"small": torch.full((4,), 3e-7), "usual": torch.linspace(0.1, 1, 4), "zero": torch.zeros(2)}
        kinds = {name: tensor.dtype for name, tensor in half_precision.rounded(tensors, [], Path()).items()}
        assert kinds == {"small": torch.float32, "usual": torch.float16, "zero": torch.float16}


class TestAdoption:
    def test_backbone_has_the_rounded_weights_and_the_figures_of_its_card(self, repository, trained):
        checkpoint, report = adopt_backbone(repository, "generator")
        card = cards.read("generator", repository)
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
        assert checkpoints.load_checkpoint(checkpoint)[1][adoption.ADOPTED]["name"] == "generator"

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
        with pytest.raises(
            CheckpointError, match=r"belongs to the network of weights/generator.safetensors .*Adopt both"
        ):
            adopt_backbone(repository, "inversion")

    def test_adopted_method_anonymizes(self, repository):
        identity, _ = adopt_backbone(repository, "identity")
        checkpoint = adopt_method(repository, "identitydp")
        block, cls = loading.load(repository, "tiny").methods["identitydp"], discovery.load("methods", "identitydp")
        resources = Resources(checkpoint=checkpoint, backbones={"identity": identity})
        variant = block.variants["eps_6"]
        assert method_builder.build(cls, block.params.model_dump(mode="json"), None, variant, resources)

    def test_kin_takes_the_generator_of_an_adopted_method(self, repository):
        adopt_backbone(repository, "identity")
        base, cls = adopt_method(repository, "identitydp"), discovery.load("methods", "identitydp")
        parameters = loading.load(repository, "tiny")
        job = job_of(repository, cls, repository / "kin.safetensors", base)
        identity = discovery.load("backbones", "identity").load(job.backbones["identity"])
        stage_one.train(parameters.methods["identitydp"].params, job, identity)
        assert tensors_of(job.checkpoint).keys() == tensors_of(base).keys()
        assert all(torch.equal(tensor, tensors_of(base)[name]) for name, tensor in tensors_of(job.checkpoint).items())

    def test_figure_of_the_card_below_a_floor_stops_the_build(self, repository):
        edit(repository, {"backbones": {"identity": {"recognition": {"floor_auc": 1.0}}}})
        with pytest.raises(BelowFloor, match=r"auc is .*, the floor is 1"):
            adopt_backbone(repository, "identity")
        assert not (repository / Paths("tiny").backbone.format(backbone="identity")).exists()


class TestBadInput:
    def test_cut_file_is_refused_with_what_to_do(self, repository):
        path = repository / cards.weights_path("identity")
        path.write_bytes(path.read_bytes()[:1000])
        with pytest.raises(
            CheckpointError, match=r"is cut: it has 1000 bytes, and its card .* states \d+. Restore both"
        ):
            adopt_backbone(repository, "identity")

    def test_other_file_is_refused_with_both_hashes(self, repository):
        path = repository / cards.weights_path("identity")
        path.write_bytes(path.read_bytes()[:-1] + b"\x01")
        stated = cards.read("identity", repository).sha256
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

    def test_printed_edit_makes_the_weights_fit(self, repository):
        edit(repository, {"backbones": {"identity": {"published": "", "widths": [8, 8, 8, 8, 16]}}})
        edit(repository, {"methods": {"identitydp": {"published": "", "params": {"encoder_widths": [4, 4, 4, 4, 8]}}}})
        tree = adopted_networks.edit(loading.load(repository, "tiny"), repository)
        assert tree["backbones"]["identity"] == {"published": "weights:identity", "widths": [8, 8, 8, 8, 8]}
        assert tree["backbones"]["generator"] == {"published": "weights:generator"}
        assert tree["methods"]["identitydp"]["params"] == {"encoder_widths": [4, 4, 4, 4, 4]}
        edit(repository, tree)
        adopted_networks.check(loading.load(repository, "tiny"), repository)

    def test_keys_are_loaded_strictly(self, repository):
        path = repository / cards.weights_path("identity")
        tensors, facts = half_precision.read(path)
        tensors["network.extra"] = tensors.pop(next(iter(tensors)))
        checkpoints.write(path, tensors, facts, [])
        change_card(repository, "identity", size=path.stat().st_size, sha256=fingerprints.sha256(path))
        with pytest.raises(CheckpointError, match=r"does not fit .* is missing; extra is left over"):
            adopt_backbone(repository, "identity")
        assert not (repository / Paths("tiny").backbone.format(backbone="identity")).exists()

    def test_missing_card_is_refused_before_anything_runs(self, repository):
        (repository / cards.card_path("identity")).unlink()
        with pytest.raises(
            ParameterError, match=r"backbones.identity: .*weights/identity.yaml is missing.*git checkout"
        ):
            Graph(repository, "tiny")

    def test_missing_file_is_refused_before_anything_runs(self, repository):
        (repository / cards.weights_path("identity")).unlink()
        with pytest.raises(ParameterError, match=r"weights/identity.safetensors is missing; its card .* is there"):
            Graph(repository, "tiny")

    def test_damaged_card_names_its_mistakes(self, repository):
        change_card(repository, "identity", hours="long", colour="red")
        with pytest.raises(CheckpointError, match=r"identity.yaml is not the card .*hours: .*colour: .*Restore both"):
            cards.read("identity", repository)

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
                r"identity: 'weights:identity' was trained on pictures of 64 pixels, and those of ",
            ),
            ({"seeds": [0, 1]}, r"identitydp: 'weights:identitydp' was trained with seed 0, and this .* with 1"),
        ],
    )
    def test_weights_that_do_not_fit_the_scale_are_refused_by_name(self, repository, over, text):
        edit(repository, over)
        with pytest.raises(ParameterError, match=text):
            adopted_networks.check(loading.load(repository, "tiny"), repository)

    @pytest.mark.parametrize("block", ["backbones.landmarks", "methods.riddle"])
    def test_network_without_a_published_layout_adopts_only_weights(self, repository, block):
        room, name = block.split(".")
        edit(repository, {room: {name: {"published": "riddle.pt"}}})
        with pytest.raises(ParameterError, match=rf"'{block}.published' is 'riddle.pt': .*use 'weights:<name>'"):
            loading.load(repository, "tiny")

    def test_published_ablation_that_is_none_is_refused(self, repository):
        edit(repository, {"methods": {"ifadit": {"published_ablations": {"full": "weights:ifadit.full"}}}})
        with pytest.raises(ParameterError, match=r"published_ablations names 'full', which is not defined"):
            loading.load(repository, "tiny")


class TestGraph:
    def test_weight_file_and_card_are_inputs_of_the_job_that_adopts(self, repository):
        graph = Graph(repository, "tiny")
        wildcards = type("Wildcards", (), {"method": "identitydp", "seed": "0"})
        assert graph.weights(wildcards) == ["weights/identitydp.safetensors", "weights/identitydp.yaml"]
        assert graph.published("identity") == ["weights/identity.safetensors", "weights/identity.yaml"]
        assert graph.published("semantics") == []

    def test_ablation_is_trained_unless_it_names_weights(self, repository):
        edit(repository, {"methods": {"ifadit": {"published": "weights:ifadit"}}})
        parameters = loading.load(repository, "tiny")
        assert parameters.weights("ifadit") == "ifadit"
        assert parameters.weights("ifadit", "without_div") == ""
        named = {"published_ablations": {"without_div": "weights:ifadit.without_div"}}
        edit(repository, {"methods": {"ifadit": named}})
        assert loading.load(repository, "tiny").weights("ifadit", "without_div") == "ifadit.without_div"

    def test_every_network_that_trains_declares_its_architecture(self, tiny):
        for network in weights_export.networks(tiny):
            params = tiny.tree[network.room][network.module]
            block = params if network.room == "backbones" else params["params"]
            missing = [key for key in network.cls.architecture if overlays.at(block, key) is overlays.MISSING]
            assert network.cls.architecture, network.name
            assert missing == [], network.name


class TestCommandLine:
    def test_method_works_without_a_build(self, repository):
        sentences: list[str] = []
        parameters = loading.load(repository, "tiny")
        resources = method_files.resources(repository, parameters, "identitydp", "eps_6", sentences.append)
        assert resources.checkpoint == repository / ".masquerade/adopted/tiny/methods/identitydp/0.safetensors"
        block, cls = parameters.methods["identitydp"], discovery.load("methods", "identitydp")
        knobs = block.params.model_dump(mode="json")
        assert method_builder.build(cls, knobs, None, block.variants["eps_6"], resources)
        assert len(sentences) == 1
        assert re.search(
            r"those of weights/ are used: identity, identitydp\. .*procedural people.*no photogr", sentences[0]
        )
        assert not (repository / "checkpoints").exists()

    def test_build_comes_before_weights(self, repository):
        identity, _ = adopt_backbone(repository, "identity")
        parameters, sentences = loading.load(repository, "tiny"), []
        resources = method_files.resources(repository, parameters, "identitydp", "eps_6", sentences.append)
        assert resources.backbones == {"identity": identity}
        assert "are used: identitydp." in sentences[0]

    def test_missing_weight_is_refused_with_what_to_do(self, repository):
        (repository / cards.card_path("identity")).unlink()
        parameters = loading.load(repository, "tiny")
        with pytest.raises(ParameterError, match=r"identity.yaml is missing.*git checkout -- weights.*make reproduce"):
            method_files.resources(repository, parameters, "identitydp", "eps_6")

    def test_method_that_adopts_nothing_needs_a_build(self, repository):
        parameters = loading.load(repository, "tiny")
        with pytest.raises(
            CheckpointError, match=r"fit needs checkpoints/tiny/methods/fit/0.safetensors.*make reproduce"
        ):
            method_files.resources(repository, parameters, "fit", "default")

    def test_photographs_are_anonymized_without_a_build(self, repository, tmp_path, capsys):
        pictures = tmp_path / "photographs"
        pictures.mkdir()
        command_line.portrait().save(pictures / "eileen.png")
        options = ("--scale", "tiny", "--keep-recognisable")
        status = command_line.anonymize(repository, pictures, tmp_path / "out", *options, method="identitydp")
        assert status == 0, capsys.readouterr()
        assert "procedural people, drawn by a program; no photographs" in capsys.readouterr().err
        assert command_line.report(tmp_path / "out")["eileen.png"]["status"] == "ok"


class TestDrift:
    def test_every_card_has_the_parameters_of_the_repository(self):
        problems = []
        for name in cards.names(ROOT):
            card = cards.read(name, ROOT)
            problems += weights_export.drift(card, loading.load(ROOT, card.scale))
        assert problems == [], "\n".join(problems)

    def test_card_of_the_same_parameters_has_no_drift(self, trained):
        assert weights_export.drift(cards.read("inversion", trained), loading.load(trained, "tiny")) == []

    def test_changed_parameter_is_named_with_card_key_and_both_values(self, repository):
        edit(repository, {"backbones": {"generator": {"published": ""}}, "datasets": {"synthetic_hq": {"yaw": 12.0}}})
        edit(repository, {"backbones": {"generator": {"reconstruction": {"steps": 9}}}})
        assert weights_export.drift(cards.read("generator", repository), loading.load(repository, "tiny")) == [
            f"weights/generator.yaml: {key} was {there} in the training, and scale tiny has {here} now."
            for key, there, here in (
                ("backbones.generator.reconstruction.steps", 2, 9),
                ("datasets.synthetic_hq.yaw", 9.0, 12.0),
            )
        ]

    def test_new_and_removed_parameters_are_drift(self):
        before, now = {"a": {"x": 1, "gone": 2}}, {"a": {"x": 1, "new": 3}}
        assert list(cards.differences(before, now)) == [("a.gone", 2, None), ("a.new", None, 3)]
        assert list(cards.differences({"a": [1, 2]}, {"a": (1, 2)})) == []


class TestFolder:
    def test_every_file_has_its_card_and_the_bytes_that_the_card_states(self):
        folder = ROOT / cards.FOLDER
        assert sorted(path.stem for path in folder.glob("*.safetensors")) == cards.names(ROOT)
        assert all(cards.checked(name, ROOT) for name in cards.names(ROOT))
        extra = {path.name for path in folder.iterdir()} - {"README.md"}
        assert {name for name in extra if not name.endswith((".safetensors", ".yaml"))} == set()

    def test_files_have_at_most_60_megabytes_together(self):
        assert cards.LIMIT == 60_000_000
        assert sum(path.stat().st_size for path in (ROOT / cards.FOLDER).iterdir()) <= cards.LIMIT

    def test_readme_says_how_the_files_are_made_and_under_which_licence(self):
        text = (ROOT / cards.FOLDER / "README.md").read_text()
        for words in ("snakemake all --config scale=evening", "masquerade weights export", "Apache-2.0"):
            assert words in text
