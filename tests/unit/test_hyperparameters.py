"""params.yaml has the values that the papers print (docs/parameters.md)."""

from pathlib import Path

import pytest
import yaml

from masquerade.methods import falco

ROOT = Path(__file__).parents[2]
PRINTED = {
    # identitydp section V.C
    "identitydp.losses": {"adversarial": 1.0, "attributes": 10.0, "identity": 5.0, "reconstruction": 10.0},
    "identitydp.learning_rate": 0.0004,
    "identitydp.betas": [0.0, 0.999],
    # cao21 section 5.1
    "cao21.losses": {"adversarial": 0.1, "attributes": 10.0, "identity": 5.0, "reconstruction": 10.0},
    "cao21.learning_rate": 0.0004,
    "cao21.betas": [0.0, 0.999],
    "cao21.combined": 10,
    # falco sections 3.2, 3.3, 4.3
    "falco.first_layer": 3,
    "falco.last_layer": 7,
    "falco.steps": 50,
    "falco.tokens": "patches",
    # ifadit Eq. 12, 14, 21, section 4.1
    "ifadit.phase_one.structure": 0.84,
    "ifadit.phase_one.pixels": 0.16,
    "ifadit.phase_one.quality": 0.01,
    "ifadit.phase_two.recovered": {"pixels": 10.0, "lpips": 1.0, "landmarks": 0.1, "parsing": 0.01},
    "ifadit.phase_two.altered": {"pixels": 0.01, "lpips": 0.1, "landmarks": 0.1, "parsing": 0.01},
    "ifadit.phase_one.learning_rate": 0.0004,
    "ifadit.phase_two.learning_rate": 0.0004,
    "ifadit.phase_two.batch": 4,
    "ifadit.betas": [0.0, 0.999],
    # lreorg section 4.1
    "lreorg.losses": {
        "swapped_identity": 24.0, "perceptual": 1.2, "latent": 3.0, "information": 10.0, "kept_identity": 0.2,
        "swapped_attribute": 30.0,
    },
    "lreorg.learning_rate": 0.00001,
    "lreorg.betas": [0.5, 0.999],
}  # fmt: skip


@pytest.fixture(scope="module")
def methods():
    return yaml.safe_load((ROOT / "params.yaml").read_text(encoding="utf-8"))["methods"]


@pytest.mark.parametrize("knob", PRINTED)
def test_params_hold_the_values_that_the_paper_prints(methods, knob):
    method, *rest = knob.split(".")
    value = methods[method]["params"]
    for key in rest:
        value = value[key]
    assert value == PRINTED[knob]


def test_falco_lowers_its_rate_where_the_published_code_does():
    assert [int(share * 50) for share in falco.MILESTONES] == [37, 45]
    assert falco.DECAY == 0.8


def test_both_phases_of_ifadit_have_the_number_of_updates_of_the_paper(methods):
    params = methods["ifadit"]["params"]
    assert params["phase_one"]["steps"] + params["phase_two"]["steps"] == 150_000
