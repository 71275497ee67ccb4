"""The report: numbers of the files with their addresses, images with gaps, never originals, and no links outside."""

import base64
import hashlib
import io
import json
import re
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from scipy.stats import kendalltau

import paper_cells
from masquerade.core.images import ArchiveWriter, FaceArchive
from masquerade.core.statistics import encode
from masquerade.lineage.address import list_addresses
from masquerade.papers import claims, measured, tables, verdicts
from masquerade.papers.context import Context
from masquerade.papers.declarations import Column, Printed, Table
from masquerade.papers.measured import Measured, Order
from masquerade.papers.report import boards, page
from masquerade.papers.report.chain import Files, list_links
from masquerade.papers.tables import Entry
from masquerade.params.blocks import StandIns
from masquerade.params.paths import Paths

CONTEXT = Context(
    scale="tiny",
    seeds=(0, 1),
    stand_ins=StandIns(datasets={"celeba_hq": "synthetic_hq"}, judges={"facenet": "recognizer_a"}),
    commit="abc1234",
    caution="Numbers mean nothing.",
)
HQ = {"name": "CelebA-HQ", "role": "celeba_hq"}
FACENET = {"name": "FaceNet", "role": "facenet"}
RE_ID = {"metric": "re_identification_rate", "judge": FACENET}
TABLE = {
    "kind": "table", "paper": "identitydp", "name": "table1", "title": "Table I", "caption": "A <b>caption</b> & more",
    "source": "Table I, section V", "dataset": HQ,
    "columns": [
        {"title": "Re-ID(%)", "group": "Face", **RE_ID, "direction": "lower", "digits": 1, "percent": True},
        {"title": "FID", "metric": "frechet_distance", "judge": FACENET, "direction": "lower", "digits": 2},
        {"title": "PSNR", "metric": "psnr", "direction": "higher", "digits": 2, "spread": "metric", "printed": False},
    ],
    "rows": [
        {"title": "Ours(ε=6)", "method": "identitydp", "variant": "eps_6", "printed": ["2.0", "30 ± 1.5"]},
        {"title": "Ours(ε=100)", "method": "identitydp", "variant": "eps_100", "printed": ["40.0", "20"]},
        {"title": "Blur", "method": "gaussian_blur", "variant": "size_7", "printed": ["90.0", "25"]},
        {"title": "Other", "method": "ciagan", "variant": "default", "printed": ["1.0", "null"], "note": "not given"},
        {"title": "Original", "method": "original", "variant": "control", "control": True, "note": "control: itself"},
    ],
}  # fmt: skip
SKIPPED = {("synthetic_hq", "ciagan", "default"): "ciagan is not built yet"}
KNOBS = {
    "original": {"control": {}},
    "gaussian_blur": {"size_7": {"kind": "resample", "size": 7.0}},
    "identitydp": {"eps_100": {"epsilon": 100.0, "sampler": "seeded"}, "eps_6": {"epsilon": 6.0, "sampler": "seeded"}},
}


def number(value, half=0.0, **more):
    """A value whose bootstrap samples lie evenly within ``half`` of it."""
    draws = {} if value is None else {"draws": encode(value + half * np.linspace(-1, 1, 41))}
    return paper_cells.number(value, **draws, **more)


def cell(method, variant, re_id, fd, psnr, seed=0):
    return {
        "cell": {"dataset": "synthetic_hq", "method": method, "variant": variant, "seed": seed},
        "measurements": {f"data/tiny/measurements/synthetic_hq/{method}/{variant}/{seed}.parquet": "0f" * 16},
        "statement": {"faces": 10, "refused": 0, "epsilon": 6.0} if method == "identitydp" else {"faces": 10},
        "metrics": {
            "re_identification_rate": {"recognizer_a": number(re_id)},
            "frechet_distance": {"recognizer_a": number(fd, note="from 10 faces")},
            "psnr": {"": number(psnr, spread=1.5, spread_of="faces")},
        },
    }


CELLS = [
    *(cell("identitydp", "eps_6", 0.1 + 0.02 * seed, 31.0, 20.0, seed) for seed in (0, 1)),
    *(cell("identitydp", "eps_100", 0.5, 33.0, 25.0, seed) for seed in (0, 1)),
    cell("gaussian_blur", "size_7", 0.95, 12.0, None),
    cell("original", "control", 1.0, 0.0, None),
]
CLAIM = {
    "paper": "identitydp", "name": "small_hides_more", "says": "A smaller ε hides more.", "source": "Figure 4",
    "dataset": HQ, "measure": RE_ID, "greater": [{"method": "identitydp", "variant": "eps_100"}],
    "than": [{"method": "identitydp", "variant": "eps_6"}],
}  # fmt: skip
SWEEP = {
    **{key: CLAIM[key] for key in ("paper", "source", "dataset", "measure")}, "name": "sweep", "says": "Less noise.",
    "descending": [{"method": "original", "variant": "control"}, *CLAIM["greater"], *CLAIM["than"]],
}  # fmt: skip


results = partial(paper_cells.results, cells=CELLS, skipped=SKIPPED, context=CONTEXT)
MEASUREMENTS = {"data/tiny/measurements/synthetic_hq/identitydp/eps_6/0.parquet": "0f" * 16}
CHECKPOINT = "checkpoints/tiny/methods/identitydp/0.safetensors"
REFUSAL = "no <i>landmarks</i> were found"


def archive(path: Path, pictures: dict[str, np.ndarray | None], **facts) -> Path:
    """An archive of faces: id -> uint8 (H, W, 3) or None for a refusal."""
    with ArchiveWriter(path, facts) as writer:
        for name, picture in pictures.items():
            row = {"id": name, "identity": name, "split": "test"}
            row |= {"source_id": name} if "method" in facts else {}
            writer.add(picture, row | ({"status": "refused", "reason": REFUSAL} if picture is None else {}))
    return path


def faces(brightness: int) -> dict[str, np.ndarray]:
    return {f"face-{place}": np.full((16, 16, 3), brightness + place, dtype=np.uint8) for place in range(3)}


def pixels(url: str) -> np.ndarray:
    kind, data = url.split(",")
    assert kind == "data:image/webp;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGBA"))


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A made-up build in the working directory, paths as the graph has them."""
    monkeypatch.chdir(tmp_path)
    paths = []
    for record in CELLS:
        place = "/".join(str(record["cell"][key]) for key in ("dataset", "method", "variant", "seed"))
        metrics = Path(f"results/tiny/metrics/{place}.json")
        metrics.parent.mkdir(parents=True, exist_ok=True)
        metrics.write_text(json.dumps(record))
        paths.append(metrics)
        facts = {key: record["cell"][key] for key in ("method", "variant", "seed")} | {"statement": {"epsilon": 6.0}}
        pictures = faces(40) | {"face-1": None}
        archive(Path(f"data/tiny/anonymized/{place}.zip"), pictures, **facts)
    for name in (CHECKPOINT, "checkpoints/tiny/backbones/identity.safetensors"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)
    return Files(
        paths=Paths("tiny"),
        metrics=paths,
        faces=(archive(Path("data/tiny/faces/synthetic_hq.zip"), faces(200)),),
        recoveries=(),
        checkpoints=(Path(CHECKPOINT),),
        backbones=(Path("checkpoints/tiny/backbones/identity.safetensors"),),
        needs={"identitydp": ["identity"]},
    )


class TestChain:
    CELL = ("synthetic_hq", "identitydp", "eps_6")

    def test_chain_lists_every_step_with_the_hash_of_its_files(self, files):
        links = list_links(self.CELL, files, MEASUREMENTS, KNOBS["identitydp"]["eps_6"])
        assert [link["step"] for link in links] == [
            "metrics", "measurements", "anonymized faces", "checkpoint", "networks that it uses",
            "parameters and seed", "raw data",
        ]  # fmt: skip
        assert links[1]["files"] == MEASUREMENTS
        for path, md5 in (item for link in links if link["step"] != "measurements" for item in link["files"].items()):
            assert md5 == hashlib.md5(Path(path).read_bytes()).hexdigest()
        assert len(links[0]["files"]) == 2  # two seeds
        assert links[5]["facts"] == {"of": "methods.identitydp.variants.eps_6", "epsilon": 6.0, "sampler": "seeded",
                                     "seed": "0, 1"}  # fmt: skip

    def test_chain_of_an_ablation_has_its_own_checkpoint(self, files):
        own = Path("checkpoints/tiny/ablations/identitydp/eps_6/0.safetensors")
        own.parent.mkdir(parents=True)
        own.write_text("other")
        links = list_links(self.CELL, replace(files, checkpoints=(*files.checkpoints, own)), {}, {})
        assert list(next(link for link in links if link["step"] == "checkpoint")["files"]) == [str(own)]


class TestBoards:
    def test_refused_face_is_a_gap_with_its_reason_and_never_the_original(self, files):
        (board,) = boards.make_boards(files, KNOBS, SKIPPED)
        assert (pixels(board.original.image)[8, 8::16, 0] >= 195).all()
        for method in board.methods:
            for variant in method.variants:
                strip = variant.strips[0]
                sheet = pixels(strip.image)
                assert strip.gaps == ((1, REFUSAL),)
                assert (sheet[:, 16:32, 3] == 0).all(), "something is drawn in the gap"
                opaque = sheet[sheet[..., 3] > 0]
                assert len(opaque)
                assert (opaque[:, 0] < 60).all(), "an original stands in the place of its image"

    def test_set_without_pictures_has_only_gaps(self, files, tmp_path):
        empty = archive(tmp_path / "synthetic_hq/k_same/k_5/0.zip", dict.fromkeys(faces(0)), method="k_same")
        strip = boards._strip(FaceArchive(empty), FaceArchive(empty).index, list(faces(0)), "k 5")
        assert strip.image == ""
        assert [place for place, _ in strip.gaps] == [0, 1, 2]

    def test_method_without_pictures_is_named_with_its_reason(self, files):
        (board,) = boards.make_boards(files, KNOBS, SKIPPED)
        assert board.absent == {"ciagan": "ciagan is not built yet"}

    def test_variant_that_was_not_run_is_listed_without_pictures(self, files):
        knobs = KNOBS | {"identitydp": KNOBS["identitydp"] | {"eps_50": {"epsilon": 50.0, "sampler": "seeded"}}}
        skipped = SKIPPED | {("synthetic_hq", "identitydp", "eps_50"): "not in the matrix at scale tiny"}
        (board,) = boards.make_boards(files, knobs, skipped)
        of_variants = next(method for method in board.methods if method.method == "identitydp").variants
        assert [variant.title for variant in of_variants] == ["epsilon 6", "epsilon 50", "epsilon 100"]
        assert of_variants[1].strips == ()
        assert of_variants[1].reason == "not in the matrix at scale tiny"


class Elements(HTMLParser):
    """Every id, link, source and tag of a page."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.links, self.sources, self.tags = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        self.sources += [values["src"]] if "src" in values else []


@pytest.fixture
def rendered(files, built):
    csv, claimed, further = Path("table1.csv"), Path("claims.csv"), Path("backbones.md")
    csv.write_text(built.csv())
    claimed.write_text("")
    further.write_text("# Backbones\n\n| A |\n| - |\n| <script>alert(1)</script> |\n\n[a file](x.png)\n")

    def render(context=CONTEXT, private=(), claimed_here=(CLAIM,)):
        run = results(context=context)
        judged = verdicts.judge([claims.Claim(**claim) for claim in claimed_here], run)
        paper = page.arrange_paper("identitydp", [(tables.build(built.table, run), csv)], [], judged)
        return page.render([paper], page.Build(files, run, KNOBS, claimed, [further], private))

    return render


def read_words(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


class TestPage:
    def test_same_files_give_the_same_bytes(self, rendered):
        assert rendered() == rendered()

    def test_page_loads_nothing_from_the_network(self, rendered):
        text = rendered()
        elements = Elements(text)
        assert elements.sources
        assert all(source.startswith("data:image/webp;base64,") for source in elements.sources)
        assert all(link.startswith("#") for link in elements.links)
        assert "a file" in read_words(text)
        assert not {"link", "iframe", "object", "base"} & set(elements.tags)
        assert not re.search(r"@import|url\(|fetch\(|https?://", text)
        assert "default-src 'none'" in text

    def test_every_link_has_a_target_and_every_id_is_unique(self, rendered):
        elements = Elements(rendered())
        assert len(elements.ids) == len(set(elements.ids))
        assert {link[1:] for link in elements.links} <= set(elements.ids)

    def test_html_in_texts_is_escaped(self, rendered):
        text = rendered()
        assert "A &lt;b&gt;caption&lt;/b&gt; &amp; more" in text
        assert "<script>alert" not in text
        assert "<i>landmarks" not in text
        assert "<b>caption" not in text

    def test_each_place_holds_printed_measured_and_difference(self, rendered):
        places = re.findall(r'<td class="place.*?</td>', rendered(), re.DOTALL)
        assert len(places) == 15
        for text in ("11.0 ± 1.4", "printed", "2.0", "+9.0", "worse", "2 of 2 comparisons as in the paper"):
            assert text in read_words(places[0])
        assert 'data-address="identitydp/table1:identitydp/eps_6:face_re_id"' in places[0]

    def test_a_claim_stands_with_its_verdict_margin_and_compared_numbers(self, rendered):
        claim = read_words(rendered().split('id="claim-identitydp-small_hides_more"')[1].split("</tr>")[0])
        for text in ("A smaller ε hides more.", "holds", "0.39 [0.38, 0.4]", "0.5 identitydp/eps_100", "over 10 of 10",
                     "0.11 identitydp/eps_6", "by recognizer_a on synthetic_hq"):  # fmt: skip
            assert text in claim

    def test_a_sweep_stands_with_its_slope_and_a_repeated_claim_counts_once(self, rendered):
        page = rendered(claimed_here=[CLAIM, CLAIM | {"name": "again"}, SWEEP])
        sweep, again = (read_words(page.split(f'id="claim-identitydp-{name}"')[1].split("</tr>")[0])
                        for name in ("sweep", "again"))  # fmt: skip
        assert "holds 0.445 per step" in sweep  # the controls have 1.0, and 0.11 is two steps away
        assert "smallest step 0.39" in sweep
        assert "repeats identitydp: small_hides_more" in again
        assert "Claims that hold here 2 of 2; 1 repeated" in read_words(page)
        assert "2 different comparisons have the numbers that could decide them" in read_words(page)

    def test_caution_and_counts_stand_at_the_top(self, rendered):
        top = rendered().split('id="claims"')[0]
        assert "Numbers mean nothing." in top
        assert "Measured numbers in tables 10 of 15" in read_words(top)
        assert "Read this first" not in rendered(replace(CONTEXT, caution=""))

    def test_a_stand_in_is_marked_in_the_index_in_headings_and_images(self, rendered):
        plain = rendered()
        marked = rendered(replace(CONTEXT, latent_stand_ins={"identitydp": "a mapping draws"}))
        assert "latent stand-in" not in plain
        for shown in ("<h2>identitydp", '<a href="#identitydp">identitydp', '<div class="who"><b>identitydp'):
            assert plain.count(shown) == marked.count(f"{shown} (latent stand-in)") > 0
        assert "identitydp: a mapping draws." in marked.split('id="claims"')[0]

    def test_folder_of_our_own_tables_is_no_paper(self, files, rendered, built):
        assert "1 papers, measured" in rendered()
        columns = [column.model_copy(update={"printed": False}) for column in built.table.columns]
        rows = [row.model_copy(update={"printed": (), "note": "ours"}) for row in built.table.rows]
        table = built.table.model_copy(update={"columns": tuple(columns), "rows": tuple(rows)})
        ours = page.arrange_paper("attackers", [(tables.build(table, results()), Path("table1.csv"))], [], [])
        text = page.render([ours], page.Build(files, results(), KNOBS, Path("claims.csv")))
        assert "0 papers, measured" in text
        assert "<h2>Attackers who know the method</h2>" in text
        assert {link[1:] for link in Elements(text).links} <= set(Elements(text).ids)

    def test_page_shows_no_image_of_a_private_dataset_and_says_why(self, rendered):
        assert "data:image" in rendered()
        private = rendered(private=["synthetic_hq"])
        assert "data:image" not in private
        assert "No image of synthetic_hq is shown: its faces are of real people" in private

    def test_original_images_appear_once_for_each_dataset(self, rendered):
        assert rendered().count('3 faces of synthetic_hq, original"') == 1


@pytest.fixture
def built():
    return tables.build(Table(**TABLE), results())


def entry(printed=None, measured=None, direction="lower", digits=2, percent=False, judge=None):
    column = Column(title="A", metric="psnr", direction=direction, digits=digits, percent=percent, judge=judge)
    printed_number = None if printed is None else Printed(text=str(printed), value=printed * (0.01 if percent else 1))
    return Entry(
        column, printed_number, Measured(value=measured, over=9, of=9, seeds=1, reason="" if measured else "refused")
    )


def compare_orders(rows, half=0.0, other=None):
    """`measured.compare_orders` of (printed, measured) numbers, whose samples lie evenly within ``half`` of them.

    ``other``: the factor of ``half`` in the second row.
    """
    factors = [1.0, other or 1.0, *[1.0] * len(rows)]
    return measured.compare_orders([
        (
            None if printed is None else Printed(text=str(printed), value=float(printed)),
            Measured(value=None if value is None else float(value),
                     draws=None if value is None else value + factor * half * np.linspace(-1, 1, 41)),
        )
        for (printed, value), factor in zip(rows, factors, strict=False)
    ])  # fmt: skip


class TestComparison:
    def test_orders_of_hand_worked_rows(self):
        column = [(1, 10), (2, 5), (3, 20), (None, 7), (4, None), (3, 30)]
        # printed 1 < 2 < 3 = 3: five ordered pairs; measured 10, 5, 20, 30: only (1, 2) is the other way round
        one_off, all_right = Order(concordant=2, discordant=1), Order(concordant=2)
        assert compare_orders(column) == [one_off, one_off, all_right, Order(), Order(), all_right]

    def test_a_pair_whose_difference_may_be_0_is_undecided(self):
        assert compare_orders([(1, 5), (2, 5)])[0] == Order(undecided=1)
        assert compare_orders([(1, 5), (2, 6)], half=0.4)[0] == Order(concordant=1), "of the same samples"
        assert compare_orders([(1, 5), (2, 6)], half=0.4, other=-2.0)[0] == Order(undecided=1), "of opposite samples"

    @given(st.permutations(range(8)))
    def test_order_is_kendall_s_tau(self, measured):
        orders = compare_orders([(place + 1, value + 1) for place, value in enumerate(measured)])
        total = sum(orders, Order())  # each pair twice
        assert total.pairs == total.decided == 2 * 28
        assert (total.concordant - total.discordant) / total.pairs == pytest.approx(
            kendalltau(range(8), measured).statistic
        )

    @pytest.mark.parametrize(
        ("place", "difference", "verdict"),
        [
            (entry(2.0, 1.5), "−0.50", "better"),
            (entry(2.0, 2.5), "+0.50", "worse"),
            (entry(2.0, 2.5, "higher"), "+0.50", "better"),
            (entry(2.0, 2.5, "none"), "+0.50", ""),
            (entry(2.0, 2.001), "±0", "equal"),
            (entry(40.0, 0.5, "higher", 1, True), "+10.0", "better"),
            (entry(None, 1.0), "", ""),
            (entry(1.0, None), "", ""),
        ],
    )
    def test_difference_has_the_sign_of_measured_minus_printed(self, place, difference, verdict):
        assert page.compare_with_printed(place) == (difference, verdict)

    @pytest.mark.parametrize(
        ("place", "order", "words"),
        [
            (entry(2.0, 1.5), Order(1, 2), "Here 1.50: 0.50 less than the printed 2.0, which is better. Lower is "
             "better. Comparisons with the other rows: 1 as in the paper, 2 otherwise."),
            (entry(2.0, 2.5, "none"), Order(), "Here 2.50: 0.50 more than the printed 2.0."),
            (entry(2.0, 2.0, "higher"), Order(0, 0, 1), "Here 2.00, the same as printed at these digits. Higher is "
             "better. Comparisons with the other rows: 1 undecided."),
            (entry(2.0, None), Order(), "No number here: refused. The paper prints 2.0."),
            (entry(None, 1.0), Order(), "This was measured only here: the paper prints no such number. Lower is "
             "better."),
            (entry(1.0, 1.0, judge=FACENET), Order(2, 0), "Here 1.00, the same as printed at these digits. Lower is "
             "better. Comparisons with the other rows: 2 as in the paper. The evaluator is recognizer_a, in the place "
             "of FaceNet."),
        ],
    )  # fmt: skip
    def test_sentence_states_difference_and_order(self, place, order, words):
        assert page.describe_entry(replace(place, order=order), "", CONTEXT) == words


class TestAddresses:
    RECORD = {"method": "falco", "variant": "m_0", "dataset": "synthetic_hq", "part": "", "attempt": ""}

    def record(self, group, column, metric, judge="", **more):
        return self.RECORD | {"group": group, "column": column, "metric": metric, "judge": judge} | more

    def test_column_has_the_shortest_name_that_is_its_own(self):
        names = list_addresses("falco/table1", [
            self.record("", "FID", "frechet_distance", "mobilenet_v2"),
            self.record("Face re-ID", "CASIA(%)", "re_identification_rate", "recognizer_a"),
            self.record("Rank-1", "CASIA(%)", "rank1_identification_rate", "recognizer_a"),
        ])  # fmt: skip
        assert names == [f"falco/table1:falco/m_0:{name}" for name in ("fid", "face_re_id_casia", "rank_1_casia")]

    def test_attempts_of_one_method_have_different_addresses(self):
        names = list_addresses("cao21/table3", [
            self.record("", "PSNR", "psnr", attempt="recovered"), self.record("", "PSNR", "psnr", attempt="wrong"),
        ])  # fmt: skip
        assert names == ["cao21/table3:falco/m_0:psnr_recovered", "cao21/table3:falco/m_0:psnr_wrong"]

    def test_dataset_is_named_if_a_column_has_two(self):
        records = [self.record("", "FID", "fd", dataset=name) for name in ("hq", "wild")]
        assert list_addresses("a/b", records) == ["a/b:falco/m_0:fid:hq", "a/b:falco/m_0:fid:wild"]


class TestVariants:
    LEVELS = {"random": {"level": "random"}, "d_9": {"level": 9}, "d_0": {"level": 0}, "d_3": {"level": 3}}

    def test_numbers_are_sorted_and_words_keep_their_order(self):
        assert boards.sort_variants(self.LEVELS) == ["d_0", "d_3", "d_9", "random"]
        blurs = {"size_19": {"kind": "resample", "size": 19.0}, "wiener_8": {"kind": "gaussian", "size": 8.0},
                 "size_7": {"kind": "resample", "size": 7.0}}  # fmt: skip
        assert boards.sort_variants(blurs) == ["size_7", "size_19", "wiener_8"]

    @given(st.lists(st.floats(-1e3, 1e3), unique=True, min_size=1, max_size=8))
    def test_variants_of_one_number_are_sorted(self, values):
        assert boards.sort_variants({str(v): {"epsilon": v} for v in values}) == [str(v) for v in sorted(values)]

    def test_label_names_the_knob_that_differs(self):
        assert boards.label_variant("eps_6", KNOBS["identitydp"]) == "epsilon 6"
        assert boards.label_variant("control", KNOBS["original"]) == "control"
