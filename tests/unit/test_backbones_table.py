"""The table of backbones: it shows figures beside their floors, and leaves details to the JSON."""

from masquerade.papers import backbones_table
from masquerade.params.slices import Slice

QUALITY = {
    "backbone": "generator", "title": "generator (StyleGAN2)", "published": "", "sha256": "",
    "quality": {"detection": 0.98, "pictures": 120.0, "zero_shot.Male": 0.5}, "floors": {"detection": 0.95},
}  # fmt: skip
MINI = Slice({"scale": "mini", "caution": "Small networks."})
PAPER = Slice({"scale": "paper", "caution": ""})


def test_figures_stand_beside_their_floors():
    page = backbones_table.markdown([QUALITY], MINI, "abc")
    line = next(line for line in page.splitlines() if "detection" in line)
    assert [cell.strip() for cell in line.split("|")][1:-1] == [
        "`generator`", "generator (StyleGAN2)", "trained here", "detection", "0.98", "0.95",
    ]  # fmt: skip
    assert "| 120 |" in page.replace("  ", "") or " 120 " in page
    assert "Male" not in page
    assert "> Scale `mini`. Small networks." in page


def test_published_weights_are_named():
    page = backbones_table.markdown([{**QUALITY, "published": "weights/g.pt"}], PAPER, "abc")
    assert "`weights/g.pt`" in page


def test_figures_of_a_card_and_adopted_methods_are_named():
    quality = {**QUALITY, "published": "weights:generator", "figures_of": "evening"}
    published = {"riddle.published": "weights:riddle", "fit.published": "", "ifadit.published": ""}
    published |= {"ifadit.published_ablations": {"without_img": "weights:ifadit.without_img"}}
    params = Slice({**MINI.values, **{f"methods.{key}": value for key, value in published.items()}})
    page = backbones_table.markdown([quality], params, "abc")
    assert "those of the cards: scale evening measured them" in page
    assert "not trained here: `riddle` (`weights:riddle`), `ifadit/without_img` (`weights:ifadit.without_img`)." in page
    assert "adopted" not in backbones_table.markdown([QUALITY], MINI, "abc")


def test_rates_at_a_false_accept_rate_are_figures_and_not_details():
    page = backbones_table.markdown([{**QUALITY, "quality": {"tar_at_far_0.01": 0.8}, "floors": {}}], MINI, "abc")
    assert "tar at far 0.01" in page


def test_data_of_an_official_file_of_a_method_are_named():
    page = backbones_table.markdown(
        [QUALITY], Slice({**PAPER.values, "methods.ciagan.published": "asset:ciagan"}), "abc"
    )
    assert "not trained here: `ciagan` (`asset:ciagan`)." in page
    assert "Official files of methods: `ciagan` (CIAGAN, 128 pixels, 1,200 people of CelebA)." in page
    assert "may have seen people who are tested here" in page
