"""The contract of every attacker: its answers and, if it learns, its training, on drawn faces at the tests' scale."""

import contextlib
import json
from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch

import accelerator
import kit
from masquerade.attackers import Attacker, _recognition
from masquerade.core import discovery
from masquerade.core.images import FaceArchive, to_float
from masquerade.params.paths import Paths
from masquerade.params.slices import Slice
from masquerade.pipeline import anonymization, informed
from masquerade.training import loop

ATTACKERS = discovery.list_names("attackers")
LEARNERS = [name for name in ATTACKERS if discovery.load("attackers", name).learns]
RESTORERS = [name for name in ATTACKERS if discovery.load("attackers", name).restores]
METHODS = "gaussian_blur", "cao21", "fawkes"
"""A method of each kind: one without keys, one with keys, and one that poisons."""
SEED = 3
REPORT = "report.json"
RESUMED = [*((name, 0.0) for name in LEARNERS), ("adapted", 0.01), ("restoring", 0.01)]
"""Every training, and some with Muon for the kernels: attacker and ``kernel_rate``."""


def method_of(name):
    """The first of METHODS that the attacker attacks."""
    applies, classes = discovery.load("attackers", name).applies, {m: discovery.load("methods", m) for m in METHODS}
    return next(each for each, cls in classes.items() if applies(cls.capabilities, cls.needs))


def refusing(rows):
    """Rows of an index in which the first face of each split is refused, so that its person has one image left."""
    first = ~rows["split"].duplicated()
    return rows.assign(
        status=rows["status"].mask(first, "refused"), reason=rows["reason"].mask(first, "this test refuses it")
    )


class Bench:
    """The anonymized images of METHODS and the checkpoints of the attackers, each made once."""

    def __init__(self, workshop):
        self.workshop, self.originals, self.parameters = workshop, workshop.archive, workshop.parameters

    def own(self, method, keys):
        """The images that an attacker anonymizes."""

        def fill(folder):
            made = self.workshop.method(method, observe=False)
            people = self.parameters.informed
            self._anonymize(
                folder, made, *informed.select_keyed_images(self.originals, made, people, SEED, keys == "shared")
            )

        return FaceArchive(self.workshop.once(f"own images {method} {keys}", fill) / "faces.zip")

    def tested(self, method):
        def fill(folder):
            rows = self.originals.select("test", status=None)
            self._anonymize(folder, self.workshop.method(method, observe=False), rows, None)

        return FaceArchive(self.workshop.once(f"tested images {method}", fill) / "faces.zip")

    def _anonymize(self, folder, made, rows, keys):
        plan = anonymization.Plan("variant", SEED, 4)
        anonymization.anonymize(self.originals, folder / "faces.zip", made, refusing(rows), plan, keys)

    def training_set(self, method, keys):
        return informed.read_training_set(self.originals, self.own(method, keys), self.parameters.informed)

    def scenes(self, name):
        """The images that the attacker ``name`` attacks."""
        method, keys = method_of(name), discovery.load("attackers", name).keys
        tested = self.own(method, keys) if keys == "shared" else self.tested(method)
        own = self.own(method, keys)
        return {keys: informed.make_scene(self.originals, tested, own, self.training_set(method, keys))}

    def backbones(self, name):
        needs = discovery.load("attackers", name).needs(self.parameters.attackers[name])
        return {need: self.workshop.backbone(need) for need in needs}

    def train(self, name, method, folder, log=lambda step, losses: None, **knobs):
        """Train the attacker ``name`` in ``folder``; returns the checkpoint and the figures."""
        cls = discovery.load("attackers", name)
        backbones = self.backbones(name)
        cell = {"dataset": "dataset", "method": method, "variant": "variant", "seed": SEED}
        path = (folder / Paths("tiny").attacker.format(attacker=name, trial=0, **cell)).parent
        path.mkdir(parents=True, exist_ok=True)
        job = kit.job(path, "0", backbones, faces=self.originals.path, log=log, people="attackers")
        params = self.parameters.attackers[name].model_copy(update=knobs)
        figures = cls(params, backbones).train(self.training_set(method, cls.keys), job)
        return job.checkpoint, figures

    def trained(self, name, method):
        """The checkpoint, the figures, and the ids of the images that the training read."""
        self.own(method, discovery.load("attackers", name).keys)
        self.backbones(name)

        def fill(folder):
            with self.workshop.noted_reading() as read:
                _, figures = self.train(name, method, folder)
            (folder / REPORT).write_text(json.dumps([figures, sorted(read)]))

        folder = self.workshop.once(f"attacker {name} of {method}", fill)
        (checkpoint,) = folder.rglob("0.safetensors")
        return checkpoint, *json.loads((folder / REPORT).read_text())

    def attacks(self, name, checkpoint=None):
        """The attacker as `informed.attacks` makes it. ``checkpoint``: instead of that of its training."""
        cls = discovery.load("attackers", name)
        learner = name if cls.learns else cls.trained_as
        trained = [checkpoint or self.trained(learner, method_of(name))[0]] if learner else []
        backbones = self.backbones(name)
        params = Slice.of(self.parameters, [f"attackers.{name}"])
        return informed.build_attackers([name], params, backbones, trained)

    def attack(self, name):
        judges = self.parameters.informed.judges
        backbones = {judge: self.workshop.backbone(judge) for judge in judges}
        params = Slice.of(self.parameters, [f"judges.{judge}" for judge in judges])
        clear = informed.build_recognizers(judges, params, backbones)
        return informed.run_attacks(self.attacks(name), self.scenes(name), clear, self.parameters.informed.far)


def of_group(answers, group):
    return answers[answers["group"] == group].reset_index(drop=True)


@pytest.fixture(scope="module")
def bench(workshop):
    return Bench(workshop)


@pytest.fixture(scope="module")
def answers(bench):
    """Attacker -> its answers about tested people."""
    return cache(lambda name: of_group(bench.attack(name), "tested"))


@pytest.mark.parametrize("name", ATTACKERS)
def test_declared_attributes_agree(name):
    cls = discovery.load("attackers", name)
    own = {name for name in ("train", "restore", "recognizers") if getattr(cls, name) is not getattr(Attacker, name)}
    assert cls.learns == ("train" in own)
    assert cls.restores == ("restore" in own)
    assert not (cls.restores and "recognizers" in own), "naive recognizers see the restored images"
    assert cls.learns or not cls.repeated
    if cls.trained_as:
        assert not cls.learns
        assert discovery.load("attackers", cls.trained_as).learns
        assert discovery.load("attackers", cls.trained_as).keys == cls.keys
    if cls.learns or cls.trained_as:
        assert cls.restores or "recognizers" in own, "what it learned must be used"


@pytest.mark.parametrize("name", ATTACKERS)
def test_every_recognizer_answers_every_picture(bench, answers, name):
    cls, test = discovery.load("attackers", name), bench.originals.select("test")
    (attack,), people = bench.attacks(name), test["identity"].nunique()
    own, clear = list(attack.attacker.recognizers()), bench.parameters.informed.judges
    recognizers = [*own, *clear] if cls.beside_clear or not own else own
    assert answers(name)["recognizer"].unique().tolist() == recognizers
    assert (answers(name)["attacker"] == name).all()
    refused, one_left = test["id"].tolist()[:2]  # the first image is refused, the second is of the same person
    for (_, trial), rows in answers(name).groupby(["recognizer", "trial"]):
        assert trial == 0 or cls.control
        assert sorted(rows["id"]) == sorted(test["id"])  # each once
        assert rows.set_index("id")["identity"].to_dict() == test.set_index("id")["identity"].to_dict()
        rows = rows.set_index("id")
        assert rows["status"].to_dict() == {each: "refused" if each == refused else "ok" for each in test["id"]}
        assert np.isnan(rows.loc[refused, ["rank", "distance", "people"]].astype(float)).all()
        usable = rows.drop(index=refused)
        assert (usable["people"] == people).all()
        ranks = usable["rank"].dropna()
        assert ranks.between(1, people).all()
        assert (ranks % 1 == 0).all()
        assert (np.isfinite(usable["distance"]) == usable["rank"].notna()).all()
        assert {len(strangers) for strangers in usable["strangers"]} == {people - 1}
        if not cls.control:  # dealt names give other people one image
            unanswered = (
                [] if cls.asks == "naming" else [one_left]
            )  # unprotected images are there, whatever was refused
            assert usable.index[usable["rank"].isna()].tolist() == unanswered
            assert all(np.isfinite(strangers).all() for strangers in usable["strangers"])
        restored = ["psnr", "ssim", "similarity", "before_psnr", "before_ssim", "before_similarity"]
        assert (set(restored) <= set(rows)) == cls.restores
        if cls.restores:
            assert usable[restored].notna().all(axis=None)
            assert usable["similarity"].between(-1.001, 1.001).all()


@pytest.mark.parametrize("name", ATTACKERS)
def test_attack_gives_the_same_answers_twice(bench, answers, name):
    again = bench.attack(name)
    pd.testing.assert_frame_equal(of_group(again, "tested"), answers(name))
    held_out = bench.training_set(method_of(name), discovery.load("attackers", name).keys).held_out
    for _, rows in of_group(again, "held_out").groupby(["recognizer", "trial"]):
        assert rows["id"].tolist() == held_out.ids.tolist()
        assert rows["identity"].tolist() == held_out.people.tolist()
        assert rows["rank"].dropna().between(1, len(set(held_out.people))).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_training_reads_the_people_of_the_attackers_alone(bench, name):
    _, _, read = bench.trained(name, method_of(name))
    own = bench.originals.select("attackers")
    assert set(read) <= set(own["id"])
    # one image is refused, and its person has too few left
    assert own[own["id"].isin(read)]["identity"].nunique() == own["identity"].nunique() - 1


@pytest.mark.parametrize("value", [0.0, np.nan])
@pytest.mark.parametrize("name", LEARNERS)
def test_training_that_destroys_the_network_leaves_the_start(bench, tmp_path, monkeypatch, name, value):
    """A failed training must not look like privacy: the attack goes on untrained, and its answers say so."""
    method, cls = method_of(name), discovery.load("attackers", name)
    bench.trained(name, method)  # so that the images and backbones exist before trainings are replaced

    @torch.no_grad()
    def destroy(task, *_, **__):
        for module in task.modules.values():
            for weights in module.parameters():
                weights.fill_(value)

    monkeypatch.setattr(loop, "fit", destroy)
    checkpoint, figures = bench.train(name, method, tmp_path)
    assert figures["learned"] == 0
    (attack,) = bench.attacks(name, checkpoint)
    assert not attack.learned
    images = to_float(bench.training_set(method, cls.keys).learn.anonymized)
    if cls.restores:
        assert np.array_equal(attack.attacker.restore(images), images)
    else:
        ((backbone, path),) = bench.backbones(name).items()
        start = _recognition.load_clear(backbone, path)
        (own,) = attack.attacker.recognizers().values()
        assert np.array_equal(own(images), start(images))


@pytest.mark.parametrize("name", LEARNERS)
def test_training_differentiates_what_a_gpu_computes_alike_each_time(bench, tmp_path, name):
    with accelerator.differentiated() as nodes:
        bench.train(name, method_of(name), tmp_path, steps=2)
    refused = nodes & accelerator.NONDETERMINISTIC
    assert nodes
    assert not refused


@pytest.mark.parametrize(("name", "kernel_rate"), RESUMED)
def test_interrupted_training_ends_with_the_same_bytes(bench, tmp_path, monkeypatch, name, kernel_rate):
    method, knobs = method_of(name), {"steps": 4, "kernel_rate": kernel_rate}
    bench.trained(name, method)  # so that no other training is interrupted
    monkeypatch.setenv("MASQUERADE_SAVE_EVERY_SECONDS", "0")
    monkeypatch.setattr(loop, "LOG_EVERY", 1)
    whole, figures = bench.train(name, method, tmp_path / "whole", **knobs)
    steps, stops, cut = [], [None, 2, 1], None

    def log(step, losses):
        steps.append(step)
        if step == stops[-1]:
            stops.pop()
            raise KeyboardInterrupt

    while cut is None:
        with contextlib.suppress(KeyboardInterrupt):
            cut, resumed = bench.train(name, method, tmp_path / "cut", log, **knobs)
    assert steps == [0, 1, 1, 2, 2, 3]
    assert resumed == figures
    assert cut.read_bytes() == whole.read_bytes()
    # the checkpoint is the start if the training did not help, but the last state has the trained networks
    for expected, trained in zip(last_weights(whole), last_weights(cut), strict=True):
        assert torch.equal(expected, trained)


def last_weights(checkpoint):
    state = torch.load(checkpoint.with_suffix(".state"), weights_only=True)
    return [weights for module in state["modules"].values() for weights in module.values()]


@pytest.mark.parametrize("name", RESTORERS)
def test_restored_picture_is_valid_and_does_not_depend_on_its_batch(bench, name):
    (attack,) = bench.attacks(name)
    (scene,) = bench.scenes(name).values()
    attack.attacker.study(scene.training_set)
    images = to_float(scene.tested.anonymized)
    before = images.copy()
    restored = attack.attacker.restore(images)
    assert np.array_equal(images, before), "the input is changed"
    assert (restored.dtype, restored.shape) == (np.float32, images.shape)
    assert np.abs(restored).max() <= 1 + 1e-6
    rows = [3, 1]
    np.testing.assert_allclose(attack.attacker.restore(images[rows]), restored[rows], atol=2e-5)


@pytest.mark.parametrize("name", ["naive", "interpolation"])
def test_pictures_that_were_all_refused_have_a_row_each(bench, tmp_path, name):
    rows = bench.originals.select("test").assign(status="refused", reason="this test refuses all")
    method = bench.workshop.method("gaussian_blur", observe=False)
    anonymization.anonymize(bench.originals, tmp_path / "faces.zip", method, rows, anonymization.Plan("v", SEED, 4))
    training_set = bench.training_set("gaussian_blur", "per_image")
    tested, own = FaceArchive(tmp_path / "faces.zip"), bench.own("gaussian_blur", "per_image")
    scenes = {"per_image": informed.make_scene(bench.originals, tested, own, training_set)}
    pixels = {"pixels": lambda images: images.reshape(len(images), -1)}
    answers = of_group(informed.run_attacks(bench.attacks(name), scenes, pixels, far=0.2), "tested")
    assert answers["id"].tolist() == rows["id"].tolist()
    assert (answers["status"] == "refused").all()
    assert answers[["rank", "distance", "people"]].isna().all(axis=None)
    assert informed.draw_samples(bench.attacks(name), scenes) == {}
