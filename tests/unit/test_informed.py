"""The protocol of informed attackers: numbers of a cell, seeds, and which files and trainings a cell needs."""

from types import SimpleNamespace

import pytest

from masquerade.core.errors import ParameterError
from masquerade.params import matrix
from masquerade.params.paths import Paths
from masquerade.params.protocols import AttackedPeople, InformedSettings
from masquerade.params.slices import Slice, list_protocol_keys
from masquerade.pipeline import informed
from masquerade.pipeline.rule_inputs import AttackerInputs

PLAIN, KEYED, POISONING = ("original", "control"), ("cao21", "d_9"), ("fawkes", "default")
DATASET = "synthetic_hq"


def cell(pair, seed=0):
    return SimpleNamespace(dataset=DATASET, method=pair[0], variant=pair[1], seed=seed)


@pytest.fixture(scope="module")
def inputs(tiny):
    return AttackerInputs(tiny, matrix.plan_cells(tiny, as_if_placed=True), Paths("tiny"))


def test_cell_has_its_own_numbers_of_people_and_pictures(tiny):
    keys = [key.format(method="fawkes", variant="default") for key in list_protocol_keys("informed")]
    values = Slice.of(tiny, keys).values
    shared = Slice(values).settings("informed", InformedSettings, "fawkes", "default")
    assert (shared.people, shared.pictures, shared.held_out) == (0, 0, tiny.informed.held_out)
    own = Slice(values | {"informed.overrides.fawkes.default": {"people": 7}})
    for block in (AttackedPeople, InformedSettings):
        assert own.settings("informed", block, "fawkes", "default").people == 7
        assert own.settings("informed", block, "fawkes", "other").people == 0


def test_first_trial_keeps_the_seed_and_the_others_have_seeds_of_their_own():
    seeds = [informed.seed_of(5, trial) for trial in range(4)]
    assert seeds[0] == 5
    assert len(set(seeds)) == 4
    assert seeds[1] != informed.seed_of(6, 1)


def test_attackers_of_a_cell_are_those_whom_its_method_concerns(inputs):
    assert {"naive", "adapted", "shuffled"} <= set(inputs.of(cell(PLAIN)))
    assert "insider" not in inputs.of(cell(PLAIN))
    assert "poisoned" not in inputs.of(cell(KEYED))
    assert "poisoned" in inputs.of(cell(PLAIN))  # a control: a gallery without a protection
    assert "insider" in inputs.of(cell(KEYED))
    assert "poisoned" in inputs.of(cell(POISONING))


def test_pictures_under_one_key_are_made_for_methods_with_keys_alone(inputs):
    assert inputs.insider_faces(cell(PLAIN)) == inputs.insider_faces(cell(POISONING)) == []
    assert len(inputs.insider_faces(cell(KEYED))) == 2  # the archive and its index
    under_one_key = [path for path in inputs.archives() if "/shared/" in path]
    assert under_one_key
    assert all("/cao21/" in path for path in under_one_key)
    for pair in (PLAIN, KEYED, POISONING):
        assert inputs.paths.attackers_faces.format(key_kind="per_image", **vars(cell(pair))) in inputs.archives()


def test_attacker_learns_from_the_pictures_of_its_own_keys(inputs):
    for attacker, keys in (("insider", "shared"), ("adapted", "per_image")):
        assert all(f"/{keys}/" in path for path in inputs.faces(SimpleNamespace(attacker=attacker)))


def test_repeated_attackers_of_chosen_cells_have_several_trainings(inputs):
    """Scale tiny repeats the trainings of one cell."""

    def trained(pair):
        return sorted(inputs.trained(cell(pair), "{attacker} {trial}"))

    assert trained(PLAIN) == ["adapted 0", "adapted 1", "parrot 0", "restoring 0"]
    assert trained(KEYED) == ["adapted 0", "insider 0", "parrot 0", "restoring 0"]


def test_every_training_has_a_checkpoint_and_its_quality(inputs):
    trainings = inputs.trainings()
    assert len(trainings) == len(set(trainings))
    checkpoints = {path.removesuffix(".safetensors") for path in trainings if path.endswith(".safetensors")}
    assert checkpoints == {path.removesuffix(".json") for path in trainings if path.endswith(".json")}


def test_cell_of_a_dataset_without_people_of_the_attackers_is_refused_by_name(tiny):
    cells = {"synthetic_wild": ["original/control"]}
    parameters = tiny.model_copy(update={"informed": tiny.informed.model_copy(update={"cells": cells})})
    with pytest.raises(ParameterError, match=r"cells names synthetic_wild, .* Move its patterns to synthetic_hq"):
        AttackerInputs(parameters, matrix.plan_cells(tiny, as_if_placed=True), Paths("tiny"))
