"""Parameters: each mistake is an error before the graph is built, and its text names the mistake."""

import json
import re
import shutil
import subprocess

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from masquerade.core.errors import ParameterError
from masquerade.core.settings import SmallScale
from masquerade.params import loading, overlays
from masquerade.params import model as schema_module
from masquerade.params import parameters as params
from masquerade.pipeline import evaluation


@pytest.fixture
def repository(root, tmp_path):
    shutil.copy(root / "params.yaml", tmp_path)
    shutil.copytree(root / "scales", tmp_path / "scales")
    return tmp_path


def edit(repository, change, file="params.yaml"):
    tree = yaml.load((repository / file).read_text(), Loader=yaml.CSafeLoader)
    change(tree)
    (repository / file).write_text(yaml.dump(tree, Dumper=yaml.CSafeDumper))


PARAMS, MINI = "params.yaml", "scales/mini.yaml"
MISTAKES = [
    (PARAMS, lambda tree: tree["image"].update(sise=64), r"unknown parameter 'image.sise'. Did you mean 'size'\?"),
    (PARAMS, lambda tree: tree["methods"]["identitydp"]["variants"]["eps_6"].update(epsilonn=3), "mean 'epsilon'"),
    (PARAMS, lambda tree: tree["methods"].update(identitydpp={}), "Did you mean 'identitydp'"),
    (PARAMS, lambda tree: tree["matrix"].update(train_on="synthetic_hd"), "Did you mean 'synthetic_hq'"),
    (PARAMS, lambda tree: tree.update(data_seed="large"), r"'data_seed' is 'large'"),
    (PARAMS, lambda tree: tree.pop("seeds"), "'seeds' is missing"),
    (MINI, lambda tree: tree.setdefault("image", {}).update(sise=3), r"mini.yaml: unknown parameter 'image.sise'"),
    (MINI, lambda tree: tree.update(seeds=[0, "one"]), r"mini.yaml: 'seeds.1' is 'one'"),
    (MINI, lambda tree: tree["methods"].update(pixelaton=None),
     r"mini.yaml: 'methods.pixelaton' is null.*Did you mean 'pixelation'"),
]  # fmt: skip
"""(file, mistake, what the error says): the key, the file that sets it, and the nearest name."""


@pytest.mark.parametrize(("file", "mistake", "error"), MISTAKES)
def test_a_mistake_is_refused_with_its_key_its_file_and_the_nearest_name(repository, file, mistake, error):
    edit(repository, mistake, file)
    with pytest.raises(ParameterError, match=error):
        loading.load(repository, "mini")


@pytest.mark.parametrize(("config", "error"), [
    ({"sclae": "tiny"}, r"--config or --configfile: unknown parameter 'sclae'. Did you mean 'scale'\?"),
    ({"image": 32}, r"--config or --configfile: 'image' is 32"),
    ({"scale": "tyni"}, r"there is no scale 'tyni'. Did you mean 'tiny'\? Known: evening, mini, paper, "),
    ({"methods": {"no_such": None}}, r"--config or --configfile: 'methods.no_such' is null"),
])  # fmt: skip
def test_a_mistake_in_the_configuration_of_snakemake_is_refused_with_the_nearest_key(root, config, error):
    with pytest.raises(ParameterError, match=error):
        loading.load(root, None, config)


def test_the_configuration_of_snakemake_comes_before_params_and_overlays(root):
    parameters = loading.load(root, None, {"scale": "tiny", "measure": {"batch": 3}})
    assert (parameters.scale, parameters.measure.batch) == ("tiny", 3)
    assert parameters.measure.judges == loading.load(root, "tiny").measure.judges


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"scale: mini\nseeds: [0]\nscale: tiny\n", 'line 3: found duplicate key "scale"; remove one of the two'),
        (b"people: {judges: 0.1, judges: 0.2}", 'line 1: found duplicate key "judges"'),
        ("scale: mini\ncaution: Größe".encode("latin-1"), "is not UTF-8, line 2"),
        ("scale: mini".encode("utf-16"), "is not UTF-8, line 1"),
        (b"scale: mini\n010: 3\n", "the key 10 is no text for YAML. Put it in quotes"),
        (b"own: {~: 2}", "the key None is no text"),
        (b"own: &own {own: *own}", "is not valid YAML"),
        (b"scale: \x07", "is not valid YAML"),
        (b"", "must be a mapping"),
    ],
)
@pytest.mark.parametrize("file", ["params.yaml", "scales/mini.yaml"])
def test_a_file_that_dvc_refuses_is_refused_with_its_name_and_the_line(repository, file, content, reason):
    (repository / file).write_bytes(content)
    with pytest.raises(ParameterError, match=rf"{file}.*{re.escape(reason)}"):
        loading.load(repository, "mini")


def test_line_ends_and_a_byte_order_mark_change_no_parameter(repository):
    before = loading.load(repository, "mini").tree
    for file in [repository / "params.yaml", *(repository / "scales").iterdir()]:
        file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    assert loading.load(repository, "mini").tree == before


def test_a_checkout_has_unix_line_ends_whatever_git_is_set_to(root, tmp_path):
    """Otherwise every declared text would be another input on another system, and its jobs would run again."""
    for name in (".gitattributes", "params.yaml"):
        shutil.copy(root / name, tmp_path)
    for command in ("init -q", "config core.autocrlf true", "config core.eol crlf", "add ."):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "params.yaml").unlink()
    subprocess.run(["git", "checkout", "--", "params.yaml"], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "params.yaml").read_bytes() == (root / "params.yaml").read_bytes()


def test_schema_is_closed():
    schema = json.loads(schema_module.format_schema())
    objects = [schema, *schema["$defs"].values()]
    open_ones = [
        item.get("title") for item in objects if item.get("properties") and item.get("additionalProperties", True)
    ]
    assert open_ones == []


trees = st.recursive(
    st.integers(), lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3), max_leaves=12
).filter(lambda tree: isinstance(tree, dict))


@given(trees, trees)
def test_overlay_replaces_its_keys_and_keeps_the_rest(base, over):
    merged = overlays.overlay(base, over)
    assert set(merged) == set(base) | set(over)
    assert overlays.overlay(merged, over) == merged
    for key in set(base) - set(over):
        assert merged[key] == base[key]


def ablated(repository, **ablations):
    edit(repository, lambda tree: tree["methods"]["cao21"].update(ablations=ablations))
    return loading.load(repository, "mini")


def test_ablation_differs_from_its_method_only_in_the_named_knobs(repository):
    parameters = ablated(repository, d_9={"same_pairs": 0.5})
    assert parameters.ablations("cao21") == {"d_9": {"same_pairs": 0.5}}
    assert parameters.ablations("identitydp") == {}
    from masquerade.methods.cao21 import Cao21

    knobs = parameters.tree["methods"]["cao21"]["params"]
    trained = params.build_training_params(Cao21, knobs, parameters.ablations("cao21")["d_9"])
    assert trained.model_dump(mode="json", exclude_none=True) == knobs | {"same_pairs": 0.5}


def test_ablation_of_no_variant_and_with_an_unknown_knob_are_refused(repository):
    with pytest.raises(
        ParameterError, match=r"methods.cao21.ablations names 'd_10', which is not defined. Did you mean 'd_(0|1)'"
    ):
        ablated(repository, d_10={"same_pairs": 0.5})
    with pytest.raises(ParameterError, match=r"ablations.d_9: 'same_pears'"):
        ablated(repository, d_9={"same_pears": 1.0})


def based(repository, **bases):
    """Overlays that set a knob each and are based on one another: scale -> its base, None for no base."""
    for number, (scale, base) in enumerate(bases.items()):
        content = {"measure": {"batch": 10 + number}, "caution": scale} | ({"base": base} if base else {})
        (repository / "scales" / f"{scale}.yaml").write_text(yaml.safe_dump(content))


def test_an_overlay_is_put_on_the_overlay_of_its_base(repository):
    based(repository, upper="lower", lower="tiny")
    lower, upper = loading.load(repository, "lower"), loading.load(repository, "upper")
    assert (lower.caution, lower.measure.batch, upper.caution, upper.measure.batch) == ("lower", 11, "upper", 10)
    assert upper.backbones == lower.backbones == loading.load(repository, "tiny").backbones
    assert list(loading.read_layers("upper", repository)) == [
        "scales/tiny.yaml",
        "scales/lower.yaml",
        "scales/upper.yaml",
    ]


@pytest.mark.parametrize(("bases", "error"), [
    ({"upper": "tinny"}, "upper.yaml: `base` names 'tinny', which is no scale. Did you mean 'tiny'"),
    ({"upper": "lower", "lower": "upper"}, "lower.yaml: the bases form a circle, upper -> lower -> upper"),
    ({"upper": "upper"}, "upper.yaml: the bases form a circle, upper -> upper"),
])  # fmt: skip
def test_a_base_that_is_no_scale_or_forms_a_circle_is_refused_by_name(repository, bases, error):
    based(repository, **bases)
    with pytest.raises(ParameterError, match=error):
        loading.load(repository, "upper")


def test_null_removes_what_the_base_sets(repository):
    based(repository, upper="lower", lower="tiny")
    edit(repository, lambda tree: tree.update(methods={"fit": None}), "scales/lower.yaml")
    assert "fit" not in loading.load(repository, "upper").methods
    edit(repository, lambda tree: tree.update(methods={"fit": None}), "scales/upper.yaml")
    with pytest.raises(ParameterError, match=r"scales/upper.yaml: 'methods.fit' is null"):
        loading.load(repository, "upper")


@pytest.mark.parametrize("scale", ["mini", "evening"])
def test_a_value_stands_in_the_scale_that_sets_it_and_not_again_above_it(root, scale):
    below = overlays.read_yaml(root / "params.yaml")
    for file, layer in loading.read_layers(scale, root).items():
        assert [key for key, value in loading.list_leaves(layer) if overlays.find_value(below, key) == value] == [], (
            file
        )
        below = overlays.overlay(below, layer)


def test_origin_names_the_file_that_sets_a_value_and_those_that_it_replaced(repository):
    based(repository, upper="lower", lower="tiny")
    values = {"scales/upper.yaml": 10, "scales/lower.yaml": 11, "scales/tiny.yaml": 4, "params.yaml": 32}
    found = loading.find_origins("measure.batch", repository, "upper")
    assert found == {"measure.batch": values}
    assert list(found["measure.batch"]) == list(values), "the file that decides stands first"


def test_origins_of_a_block_hold_each_value_that_takes_effect_and_each_that_is_removed(repository):
    tree = {"people": {"methods": 0.1}, "methods": {"fit": None}, "seeds": [0, 1]}
    (repository / "scales/mine.yaml").write_text(yaml.safe_dump(tree))
    shares = loading.find_origins("people", repository, "mine")
    assert shares["people.methods"] == {"scales/mine.yaml": 0.1, "params.yaml": 0.17}
    assert shares["people.judges"] == {"params.yaml": 0.3}
    removed = loading.find_origins("methods.fit", repository, "mine")
    assert loading.find_origins("methods.fit.params.steps", repository, "mine") == removed
    (gone,) = removed.values()
    assert gone["scales/mine.yaml"] is None
    assert gone["params.yaml"]["params"]["steps"] == 284000


def test_a_value_of_every_variant_stands_once_and_a_variant_may_replace_it(repository):
    over = {"groups": 6, "further": {"curly": None, "color": {"contents": ["red", "blue"]}}}
    tree = {"methods": {"lreorg": {"every_variant": over, "variants": {"default": {"groups": 7}, "makeup": None}}}}
    (repository / "scales/mine.yaml").write_text(yaml.safe_dump(tree))
    block = loading.load(repository, "mine").methods["lreorg"]
    default, bare = block.variants["default"], block.variants["id_bare"]
    assert (default.groups, bare.groups, bare.keep, [*bare.further]) == (7, 6, [], ["color", "length"])
    assert "makeup" not in block.variants
    assert block.every_variant is None
    key = "methods.lreorg.variants.{}.groups".format
    assert loading.find_origins(key("id_bare"), repository, "mine")[key("id_bare")] == {
        "scales/mine.yaml": 6, "params.yaml": 100,
    }  # fmt: skip
    tree["methods"]["lreorg"]["every_variant"]["grops"] = 3
    (repository / "scales/mine.yaml").write_text(yaml.safe_dump(tree))
    with pytest.raises(ParameterError, match=r"mine.yaml: unknown parameter .*grops'. Did you mean 'groups'"):
        loading.load(repository, "mine")


def test_origin_of_a_value_that_no_file_sets_is_its_default(repository):
    key = "attributes.small_scale.frozen_blocks"
    assert loading.find_origins(key, repository, "paper") == {key: {"default": 0}}
    assert [*loading.find_origins(key, repository, "tiny")[key]] == ["scales/tiny.yaml"]


@pytest.mark.parametrize(("key", "error"), [
    ("image.sise", "'image' has no key 'sise' at scale mini. Did you mean 'size'"),
    ("imge.size", "no parameter 'imge' at scale mini. Did you mean 'image'"),
    ("image.size.x", "'image.size' has no key 'x' at scale mini. It is a value"),
])  # fmt: skip
def test_origin_of_an_unknown_key_is_an_error_that_gives_the_nearest(root, key, error):
    with pytest.raises(ParameterError, match=error):
        loading.find_origins(key, root, "mini")


@pytest.mark.parametrize("scale", ["mini", "paper_1024"])
def test_the_first_file_of_an_origin_sets_the_value_that_takes_effect(root, scale):
    tree = loading.load(root, scale).tree
    for block in ("compute", "backbones", "methods"):
        for key, values in loading.find_origins(block, root, scale).items():
            value = overlays.find_value(tree, key)
            assert next(iter(values.values())) == (None if value is overlays.MISSING else value), key


def test_a_block_small_scale_must_have_a_default_for_each_of_its_values():
    with pytest.raises(TypeError, match="rate must have a default with which nothing changes"):
        type("Faulty", (SmallScale,), {"__annotations__": {"rate": float}})


BASE = {"steps": 500, "losses": {"identity": 5.0, "pixels": 1.0}, "widths": [64, 128], "empty": {}}
OVER = {"steps": 6, "losses": {"pixels": 0.5}, "widths": [4]}


def with_other(tree, key):
    """A copy of the tree with another value at a dotted key."""
    name, _, rest = key.partition(".")
    return {**tree, name: with_other(tree[name], rest) if rest else 99}


@given(trees, trees)
def test_change_of_a_parameter_is_hidden_only_if_it_has_no_effect(base, over):
    for leaf, value in loading.list_leaves(base):
        if isinstance(value, dict):  # empty
            continue
        changed = with_other(base, leaf)
        matters = overlays.overlay(changed, over) != overlays.overlay(base, over)
        assert (
            any(f"{leaf}.".startswith(f"{key}.") for key in overlays.find_hidden_changes(base, changed, over))
            != matters
        )


def test_warning_for_a_hidden_change_names_the_file_and_the_command():
    now = {**BASE, "steps": 3, "losses": {"identity": 7.0, "pixels": 1.0}}
    assert overlays.find_hidden_changes(BASE, now, OVER) == {"steps": 3}
    with pytest.raises(ParameterError, match=r"'steps' was changed, but scales/tiny.yaml sets it") as error:
        overlays.check_hidden_changes(BASE, now, OVER, "scales/tiny.yaml")
    assert "dvc exp run -S 'scales/tiny.yaml:steps=3'" in str(error.value)
    overlays.check_hidden_changes(BASE, {**BASE, "losses": {"identity": 7.0, "pixels": 1.0}}, OVER, "scales/tiny.yaml")


SCALARS = ["010", "0777", "08", "0o17", "0x1f", "1_000", "24:00:00", "1:30", "no", "on", "1e-05", "1e5", ".5", "true"]
"""Texts of which YAML 1.1, which PyYAML reads, gives many another value than YAML 1.2, which DVC reads."""


def test_a_number_and_a_word_have_their_values_of_yaml_1_2():
    assert overlays.parse_yaml("a: 010\nb: no\nc: 1_000", "params.yaml") == {"a": 10, "b": "no", "c": 1000}


texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(SCALARS)


@example("-_")
@example("._")
@given(texts | st.from_regex(r"[-+.:_0-9oxeabn]{1,9}", fullmatch=True))
def test_any_text_is_read_as_dvc_reads_it(text):
    from dvc.utils.serialize import YAMLFileCorruptedError, parse_yaml

    try:
        ours = overlays.parse_yaml(f"knob: {text}", "params.yaml")
    except ParameterError as error:
        ours = None if "is not valid YAML" in str(error) else error
    if isinstance(ours, ParameterError):
        return  # DVC reads more: names that are no text
    try:
        assert repr(ours) == repr(parse_yaml(f"knob: {text}", "params.yaml"))
    except (YAMLFileCorruptedError, ValueError):
        assert ours is None


@given(st.dictionaries(st.text(), st.text() | st.sampled_from(SCALARS) | st.floats(allow_nan=False) | st.none()))
def test_what_is_written_is_read_as_the_same_values_by_both_engines(tree):
    from dvc.utils.serialize import parse_yaml

    assert overlays.parse_yaml(overlays.format_yaml(tree), "records/mini.yaml") == tree
    assert parse_yaml(overlays.format_yaml(tree), "records/mini.yaml") == tree


def test_scores_are_means_over_the_seeds_that_have_a_value():
    def cell(seed, psnr, distance):
        address = {"dataset": "faces", "method": "blur", "variant": "size_7", "seed": seed}
        return {"cell": address, "metrics": {"psnr": {"": {"value": psnr}}, "distance": {"dlib": {"value": distance}}}}

    scores = evaluation.summarize([cell(0, 20.0, None), cell(1, 30.0, 0.5)])
    assert scores == {"faces": {"blur/size_7": {"psnr": 25.0, "distance.dlib": 0.5}}}
