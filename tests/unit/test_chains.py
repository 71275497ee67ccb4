"""Lineage on invented records: addresses, the ends of chains, breaks, and causes of changes."""

import copy
import hashlib
import json
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from masquerade.assets import lock
from masquerade.core import discovery
from masquerade.lineage import address, chain, crate, difference, drawing, licences, provenance, verify
from masquerade.lineage.history import History, LineageError
from masquerade.lineage.revision import Revision
from masquerade.lineage.snakemake_internals import record_path
from masquerade.params import loading, slices

ROOT = Path(__file__).parent.parent.parent
TABLE = "results/tiny/tables/toy/table1.csv"
FACES, CHECKPOINT, METRICS = "data/tiny/faces/folder.zip", "checkpoints/tiny/methods/fit/0.safetensors", (
    "results/tiny/metrics/folder/fit/default/0.json"
)  # fmt: skip
PRINTED = "reference/toy/table1.yaml"
MACHINE = {"system": "Linux x", "processor": "toy", "cores": 2, "gpu": "", "kernels": ""}
CSV = (
    "row,method,variant,dataset,group,column,metric,part,judge,printed,measured,over,of,reason\n"
    "Ours,fit,default,folder,Re-ID,CASIA(%),re_identification_rate,,recogniser_a,1.5,0.25,4,4,\n"
    "Ours,fit,default,folder,,PSNR,psnr,,,,31.5,4,4,\n"
    "Noise,gaussian_noise,sigma_9,folder,,PSNR,psnr,,,,,0,0,not in the matrix\n"
)


class Toy:
    """A repository with the records of four jobs: photographs -> faces -> checkpoint -> metrics -> table."""

    def __init__(self, root: Path):
        self.root = root
        self.stages: dict[str, dict] = {}
        for name in ("params.yaml", "scales/tiny.yaml", "CITATION.cff", "requirements.lock"):
            self.write(name, (ROOT / name).read_text())
        self.edit("params.yaml", lambda tree: tree.update(scale="tiny"))
        self.parameters = loading.load(root)
        for number in range(6):
            self.write(f"photographs/{number}.png", f"portrait {number}")
        for step in ("data", "train", "metrics", "table"):
            self.write(f"src/{step}.py", f"STEP = {step!r}\n")
            known = {f"src/{step}.py": difference.Revision.fingerprint(_Reader(root), f"src/{step}.py")}
            self.write(f".masquerade/code/{step}.json", json.dumps(known))
        self.write(PRINTED, "title: Table 1\n")
        photographs = [f"photographs/{number}.png" for number in range(6)]
        self.job("faces", "data", [FACES], photographs, ("data_seed",), "faces of six people", "--dataset folder")
        self.job("method", "train", [CHECKPOINT], [FACES], ("methods.fit.params",), "weights", "--method fit --seed 0")
        self.job("metrics", "metrics", [METRICS], [FACES, CHECKPOINT], ("matrix.calibrate_on",), "{}")
        self.job("table", "table", [TABLE, TABLE.replace(".csv", ".md")], [METRICS, PRINTED], ("scale", "seeds"), CSV)
        self.write("Snakefile", "rule all:\n")
        self.record()

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def edit(self, name: str, change) -> None:
        tree = yaml.load((self.root / name).read_text(), Loader=yaml.CSafeLoader)
        change(tree)
        self.write(name, yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False))

    def job(self, rule, step, outputs, inputs, keys, content, words="") -> None:
        """Writes the outputs of a job and all records that a real job writes."""
        for output in outputs:
            self.write(output, content)
        template, code = f"python {rule}", f".masquerade/code/{step}.json"
        known = self.parameters.slice(keys)
        record = {
            "rule": rule, "input": [code, *inputs], "shellcmd": f"{template} {words} --outputs {' '.join(outputs)}",
            "params": [repr(f"logs/{rule}"), repr(json.dumps(known))], "code": template, "conda_env": "",
            "starttime": 1.0, "endtime": 2.5,
            "input_checksums": {path: f"sha256:{self.hash(path, 'sha256')}" for path in [code, *inputs]},
        }  # fmt: skip
        for output in outputs:
            self.write(record_path(output), json.dumps(record))
        circumstances = {
            "outputs": {path: self.hash(path) for path in outputs}, "commit": "c0ffee",
            "machine": MACHINE, "run": f"run of {rule}",
            "environment": {"sha256": "e" * 64, "python": "3.11.7", "packages": {"torch": "2.13.0"}},
            "started": "2026-11-21T20:00:00+00:00", "seconds": 1.5, "threads": 1,
        }  # fmt: skip
        self.write(provenance.path_of(outputs[0]).as_posix(), json.dumps(circumstances))
        written = [*outputs, *map(record_path, outputs), provenance.path_of(outputs[0]).as_posix()]
        rule_hash = hashlib.sha256(template.encode()).hexdigest()[:8]
        self.write(slices.path_of(rule), json.dumps(known))
        self.stages[rule] = {
            "cmd": f"snakemake # rule {rule_hash}",
            "deps": [code, slices.path_of(rule), *inputs],
            "outs": written,
        }

    def record(self) -> None:
        """dvc.yaml, dvc.lock and DVC's cache, as `snakemake all` leaves them."""
        declared, locked = {}, {}
        for name, stage in self.stages.items():
            declared[name] = {"cmd": stage["cmd"], "outs": [{path: {"persist": True}} for path in stage["outs"]]}
            locked[name] = {
                kind: [{"path": path, "md5": self.hash(path)} for path in stage[kind]] for kind in ("deps", "outs")
            } | {"cmd": stage["cmd"]}
            for item in (*locked[name]["deps"], *locked[name]["outs"]):
                place = self.root / ".dvc/cache/files/md5" / item["md5"][:2] / item["md5"][2:]
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes((self.root / item["path"]).read_bytes())
        self.write(".dvc/config", "")
        self.write("dvc.yaml", yaml.dump({"stages": declared}, Dumper=yaml.CSafeDumper))
        self.write("dvc.lock", yaml.dump({"stages": locked}, Dumper=yaml.CSafeDumper))

    def hash(self, path: str, kind: str = "md5") -> str:
        return hashlib.new(kind, (self.root / path).read_bytes()).hexdigest()

    def copy(self, root: Path) -> "Toy":
        shutil.copytree(self.root, root)
        twin = copy.copy(self)
        twin.root, twin.stages = root, copy.deepcopy(self.stages)
        return twin

    def git(self, *arguments: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
            cwd=self.root, check=True, capture_output=True,
        )  # fmt: skip

    def commit(self) -> None:
        if not (self.root / ".git").is_dir():
            self.git("init", "--quiet")
            self.write(".gitignore", ".dvc/cache\n")
        self.record()
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", "built")


class _Reader:
    """Reads a file for `Revision.fingerprint`."""

    def __init__(self, root: Path):
        self.root = root

    def _text(self, path: str) -> str:
        return (self.root / path).read_text()


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Toy:
    return Toy(tmp_path_factory.mktemp("toy") / "repository")


@pytest.fixture
def toy(built, tmp_path) -> Toy:
    return built.copy(tmp_path / "repository")


def resolved(toy: Toy, name: str) -> address.ResolvedAddress:
    history = History(toy.root)
    return address.resolve(name, "tiny", history.outputs(), history.read)


class TestAddress:
    @pytest.mark.parametrize(
        "name",
        ["re_identification_rate", "casia", "CASIA(%)", "re_id_casia", "re_identification_rate.recogniser_a"],
    )
    def test_column_has_several_names(self, toy, name):
        (cell,) = resolved(toy, f"toy/table1:fit:{name}").cells
        assert (cell.value, cell.matrix_cells) == ("0.25", (("folder", "fit", "default"),))

    def test_row_and_file_and_dataset(self, toy):
        assert [cell.value for cell in resolved(toy, "toy/table1:fit/default").cells] == ["0.25", "31.5"]
        assert resolved(toy, "toy/table1:fit:psnr:folder").cells[0].value == "31.5"
        assert resolved(toy, "toy/table1") == address.ResolvedAddress("toy/table1", TABLE)
        assert resolved(toy, CHECKPOINT).file == CHECKPOINT

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("toy/tabel1", "Did you mean 'toy/table1'?"),
            ("toy/table1:fitt:psnr", "Did you mean 'fit/default'?"),
            ("toy/table1:fit:psnrr", "Did you mean 'psnr'?"),
            ("toy/table1:fit:psnr:lfw", "Known: folder"),
            ("toy/table1:fit:psnr:folder:more", "too many parts"),
            ("checkpoints/tiny/methods/fit/1.safetensors", "There is no table, figure or file"),
        ],
    )
    def test_error_for_a_wrong_address_names_what_is_allowed(self, toy, name, message):
        with pytest.raises(LineageError) as error:
            resolved(toy, name)
        assert message in str(error.value)


class TestChain:
    def test_chain_ends_at_photographs_and_at_printed_values(self, toy):
        links = chain.follow(History(toy.root), "tiny", resolved(toy, "toy/table1:fit:psnr"))
        assert [link.name for link in links] == ["table", "metrics", "method", "faces", "files", "file"]
        photographs, printed = links[4], links[5]
        assert photographs.raw == "files from outside"
        assert list(photographs.files) == ["photographs/ (6 files)"]
        assert printed.files == {PRINTED: f"sha256:{toy.hash(PRINTED, 'sha256')}"}
        assert [link.made_from for link in links] == [(2, 6), (3, 4), (4,), (5,), (), ()]
        assert links[2].job.words == {"method": "fit", "seed": "0"}

    def test_cell_that_was_not_run_has_no_metrics_in_its_chain(self, toy):
        links = chain.follow(History(toy.root), "tiny", resolved(toy, "toy/table1:gaussian_noise:psnr"))
        assert [link.name for link in links] == ["table", "file"]

    def test_file_without_a_record_is_of_unknown_origin(self, toy):
        (toy.root / record_path(FACES)).unlink()
        links = chain.follow(History(toy.root), "tiny", resolved(toy, "toy/table1"))
        assert [link.raw.split(":")[0] for link in links if FACES in link.files] == ["of unknown origin"]

    def test_json_of_a_chain_holds_runs_files_parameters_and_packages(self, toy):
        name = resolved(toy, "toy/table1:fit:psnr")
        links = chain.follow(History(toy.root), "tiny", name)
        plain = json.loads(json.dumps(chain.tree(name, "tiny", links, {"run of method": "1a2b"})))
        method = plain["links"][2]
        assert method["mlflow_run"] == "1a2b"
        assert plain["links"][0]["mlflow_run"] == ""
        assert method["files"] == {CHECKPOINT: f"md5:{toy.hash(CHECKPOINT)}"}
        assert method["read"] == {FACES: f"sha256:{toy.hash(FACES, 'sha256')}"}
        assert method["params"]["methods.fit.params"] == toy.parameters.tree["methods"]["fit"]["params"]
        assert plain["environments"]["e" * 64]["packages"] == {"torch": "2.13.0"}

    def test_picture_holds_every_link_and_other_formats_are_refused(self, toy, tmp_path):
        name = resolved(toy, "toy/table1:fit")
        links = chain.follow(History(toy.root), "tiny", name)
        layout = drawing._layout(links, cells=2)
        assert set(layout.corners) >= {link.number for link in links}
        column = {link.number: layout.corners[link.number][0] for link in links}
        assert all(column[need] < column[link.number] for link in links for need in link.made_from)
        boxes = [layout.corners[link.number] for link in links]
        for one in boxes:
            near = [two for two in boxes if two[0] == one[0] and abs(two[1] - one[1]) < drawing.HIGH]
            assert near == [one], "boxes must not overlap"
        with pytest.raises(LineageError, match=r"\.svg or \.png"):
            drawing.draw(name, links, tmp_path / "chain.gif")


FILES = [FACES, CHECKPOINT, METRICS, TABLE, TABLE.replace(".csv", ".md"), PRINTED, "photographs/3.png"]


class TestVerify:
    def test_unchanged_build_has_no_breaks(self, toy):
        verification = verify.verify(toy.root)
        assert verification.breaks == ()
        assert verification.jobs == 4
        assert verification.notes == ()

    @settings(max_examples=40, deadline=None)
    @given(name=st.sampled_from(FILES), place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
    def test_any_flipped_bit_of_any_file_is_named(self, built, tmp_path_factory, name, place, bit):
        toy = built.copy(tmp_path_factory.mktemp("flipped") / "repository")
        path = toy.root / name
        content = bytearray(path.read_bytes())
        content[int(place * len(content))] ^= 1 << bit
        path.write_bytes(bytes(content))
        (broken,) = verify.verify(toy.root).breaks
        assert broken.path == name

    def test_consequences_of_a_break_are_counted_and_not_listed(self, toy):
        toy.write(FACES, "other faces")
        (broken,) = verify.verify(toy.root).breaks
        assert broken.path == FACES
        assert set(broken.rests) == {CHECKPOINT, METRICS, TABLE, TABLE.replace(".csv", ".md")}

    def test_first_break_in_the_list_is_the_one_nearest_to_raw_data(self, toy):
        toy.write(TABLE, "edited")
        toy.write(CHECKPOINT, "other weights")
        assert [broken.path for broken in verify.verify(toy.root).breaks] == [CHECKPOINT, TABLE]

    def test_checkpoint_of_other_parameters_is_detected_although_all_hashes_agree(self, toy):
        toy.edit("params.yaml", lambda tree: tree["methods"]["fit"]["params"].update(learning_rate=0.5))
        broken = verify.verify(toy.root).breaks[0]
        assert broken.path == CHECKPOINT
        assert "methods.fit.params.learning_rate: " in broken.what
        assert "-> 0.5" in broken.what

    def test_edited_code_is_named_and_an_edited_comment_is_no_change(self, toy):
        toy.write("src/train.py", "# a remark\nSTEP = 'train'\n")
        assert verify.verify(toy.root).breaks == ()
        toy.write("src/train.py", "STEP = 'taught'\n")
        (broken,) = verify.verify(toy.root).breaks
        assert (broken.path, "src/train.py" in broken.what) == (CHECKPOINT, True)

    def test_changed_rule_is_detected(self, toy):
        toy.edit("dvc.yaml", lambda tree: tree["stages"]["metrics"].update(cmd="snakemake # rule 0badf00d"))
        (broken,) = verify.verify(toy.root).breaks
        assert broken.path == METRICS
        assert "rule metrics changed" in broken.what

    def test_job_without_a_provenance_file_is_detected(self, toy):
        record = provenance.path_of(CHECKPOINT).as_posix()
        (toy.root / record).unlink()
        (broken,) = verify.verify(toy.root).breaks
        assert broken.path == record
        assert CHECKPOINT in broken.what

    def test_forged_bytes_and_records_are_detected_with_the_lock(self, toy):
        toy.write(TABLE, "forged")
        path = toy.root / provenance.path_of(TABLE)
        circumstances = json.loads(path.read_text())
        circumstances["outputs"][TABLE] = toy.hash(TABLE)
        path.write_text(json.dumps(circumstances))
        broken = {link.path: link.what for link in verify.verify(toy.root).breaks}
        assert "dvc.lock" in broken[TABLE]
        assert "record" in broken[path.relative_to(toy.root).as_posix()]

    def test_build_without_a_dvc_lock_is_checked_and_noted(self, toy):
        (toy.root / "dvc.lock").unlink()
        verification = verify.verify(toy.root)
        assert verification.breaks == ()
        assert "dvc.lock is missing" in verification.notes[0]
        toy.write(TABLE, "edited")
        assert [broken.path for broken in verify.verify(toy.root).breaks] == [TABLE]

    def test_error_for_a_damaged_record_is_readable(self, toy):
        toy.write(record_path(FACES), "{")
        with pytest.raises(LineageError, match="dvc checkout"):
            verify.verify(toy.root)

    def test_error_for_a_missing_build_is_readable(self, tmp_path):
        Toy(tmp_path)
        for path in (tmp_path / ".snakemake/metadata").iterdir():
            path.unlink()
        with pytest.raises(LineageError, match="snakemake all"):
            verify.verify(tmp_path)


trees = st.recursive(
    st.integers() | st.text(max_size=3) | st.none(),
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
    max_leaves=8,
)


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
        known = {"src/metrics.py": difference.Revision.fingerprint(_Reader(toy.root), "src/metrics.py")}
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

    def test_other_files_than_zip_are_refused(self, toy, tmp_path):
        with pytest.raises(LineageError, match=r"is a .zip"):
            crate.export(tmp_path / "run.tar", toy.root)


class TestProvenance:
    def test_circumstances_are_written_beside_the_first_output(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        provenance.write({"data/a.zip": "1a", "data/a.parquet": "2b"}, 100.0, "r1", 2)
        (path,) = (tmp_path / provenance.FOLDER).rglob("*.json")
        assert path == tmp_path / provenance.path_of("data/a.zip")
        circumstances = json.loads(path.read_text())
        assert circumstances["outputs"] == {"data/a.zip": "1a", "data/a.parquet": "2b"}
        assert circumstances["started"] == "1970-01-01T00:01:40+00:00"
        assert circumstances["machine"] == provenance.machine()

    def test_environment_lists_installed_packages_and_its_hash_changes_with_them(self, tmp_path, monkeypatch):
        from importlib.metadata import version

        environment = provenance.environment()
        assert environment["packages"]["numpy"] == version("numpy")
        assert environment["packages"]["facenet-pytorch"]
        (tmp_path / "another_package-1.0.dist-info").mkdir()
        monkeypatch.syspath_prepend(str(tmp_path))
        other = provenance.environment()
        assert other["packages"]["another-package"] == "1.0"
        assert other["sha256"] != environment["sha256"]

    def test_machine_record_holds_the_hardware_and_no_host_name(self):
        import socket

        machine = provenance.machine()
        assert machine["cores"] > 0
        assert machine["processor"]
        assert socket.gethostname() not in json.dumps(machine).split()

    def test_only_the_first_process_of_a_step_writes_the_circumstances(self, tmp_path, monkeypatch):
        from argparse import Namespace

        from masquerade.core import process
        from masquerade.pipeline import program

        monkeypatch.chdir(tmp_path)
        for name, rank in (("first", 0), ("second", 1)):
            given = Namespace(params={}, outputs=[Path(name)], inputs=[], code=None, threads=3)
            monkeypatch.setattr(process, "current", lambda rank=rank: process.ALONE._replace(rank=rank, count=2))
            program.main(name, given, lambda run, name=name: Path(name).write_text(run.id))
        circumstances = json.loads(provenance.path_of("first").read_text())
        run_hash = hashlib.md5(circumstances["run"].encode(), usedforsecurity=False).hexdigest()
        assert circumstances["outputs"] == {"first": run_hash}
        assert circumstances["machine"] == provenance.machine()
        assert circumstances["threads"] == 3
        assert not provenance.path_of("second").exists()
