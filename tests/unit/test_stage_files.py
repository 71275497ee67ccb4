"""The dvc.yaml and dvc.lock of the root and of each rule."""

from masquerade.lineage import stage_files

ROOT, RULE = "stages:\n  params: {cmd: one}\n", "stages:\n  measure-a: {cmd: two}\n"


def test_stages_of_all_files_are_read_together(tmp_path):
    stage_files.write({"dvc.yaml": ROOT, stage_files.of_rule("measure"): RULE}, tmp_path)
    assert stage_files.read("dvc.yaml", tmp_path) == {"params": {"cmd": "one"}, "measure-a": {"cmd": "two"}}
    assert stage_files.read("dvc.lock", tmp_path) == {}


def test_root_is_where_the_folder_of_a_rule_says(tmp_path):
    for file in (stage_files.of_rule("params"), stage_files.of_rule("measure", "falco")):
        assert ((tmp_path / file).parent / stage_files.root_from(file)).resolve() == tmp_path.resolve()


def test_rule_without_stages_loses_both_files(tmp_path):
    measure = stage_files.of_rule("measure")
    stage_files.write({"dvc.yaml": ROOT, measure: RULE}, tmp_path)
    (tmp_path / measure).with_name("dvc.lock").write_text(RULE)
    stage_files.write({"dvc.yaml": ROOT}, tmp_path)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["dvc.yaml"]
