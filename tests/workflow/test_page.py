"""The report in a real browser: clicks, keys and filters work, and the page is readable without JavaScript."""

import csv
import io
import itertools
import subprocess

import numpy as np
import pytest
from chromium import Chromium, find
from PIL import Image

from masquerade.core import fingerprints
from programs import lacks

pytestmark = [pytest.mark.workflow, pytest.mark.slow]
NUMBER = "#falco-table1 a.number"


@pytest.fixture(scope="session")
def chromium(root):
    """One browser for the session."""
    if find() is None:
        subprocess.run([root / "tests/browser/install.sh"], check=False)
    if find() is None:
        lacks("no Chromium: put chromium or google-chrome on PATH, so that the report is tested")
    with Chromium(find()) as browser:
        yield browser


@pytest.fixture(scope="session")
def report(built_once):
    return built_once.path / "results/tiny/report/index.html"


@pytest.fixture
def page(chromium, report):
    chromium.size(1440, 1000)
    chromium.errors.clear()
    chromium.requests.clear()
    chromium.open(report)
    return chromium


def window_pixels(browser) -> np.ndarray:
    """The pixels of the window, uint8 (H, W, 3)."""
    return np.asarray(Image.open(io.BytesIO(browser.picture())).convert("RGB"))


def records(path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open(encoding="utf-8")))


def test_page_requests_only_itself_and_logs_no_error(page, report):
    assert page.errors == []
    assert {url for url in page.requests if not url.startswith("data:")} == {report.resolve().as_uri()}


def test_every_number_of_every_table_is_on_the_page(page, built_once):
    tables = sorted((built_once.path / "results/tiny/tables").glob("*/*.csv"))
    assert len(tables) > 20
    for path in tables:
        numbers = records(path)
        table = f'table[data-item="{path.parent.name}/{path.stem}"]'
        assert page.get(f"document.querySelectorAll('{table} .place').length") == len(numbers)
        values = page.get(f"[...document.querySelectorAll('{table} .place')].map(p => p.dataset.value ?? '')")
        assert sorted(values) == sorted(record["measured"] for record in numbers)
        printed = page.get(f"[...document.querySelectorAll('{table} .paper')].map(p => p.textContent)")
        assert len(printed) == sum(bool(record["printed"]) for record in numbers)


def test_click_on_a_number_shows_its_lineage(page, built_once):
    assert page.get("document.getElementById('panel').hidden")
    page.click(NUMBER)
    page.wait("!document.getElementById('panel').hidden")
    panel = page.get("document.getElementById('panel').innerText")
    first = next(r for r in records(built_once.path / "results/tiny/tables/falco/table1.csv") if r["measured"])
    assert f"masquerade lineage show falco/table1:{first['method']}/{first['variant']}:fid --scale tiny" in panel
    assert f"{float(first['measured']):.2f}" in panel
    steps = page.get("[...document.querySelectorAll('#panel .chain > li > b')].map(step => step.textContent)")
    assert steps[:2] == ["table", "metrics"]
    assert steps[-1] == "raw data"
    links = page.get(
        "[...document.querySelectorAll('#panel .files li')].map(l => [...l.children].map(c => c.textContent))"
    )
    assert len(links) >= 5
    for path, md5 in links:
        assert fingerprints.md5(built_once.path / path) == md5.removeprefix("md5 ")


def test_keyboard_opens_and_closes_the_lineage_of_a_number(page):
    page.get(f"document.querySelector('{NUMBER}').focus()")
    page.press("Enter")
    page.wait("!document.getElementById('panel').hidden")
    page.press("Escape")
    assert page.get("document.getElementById('panel').hidden")
    assert page.get(f"document.activeElement === document.querySelector('{NUMBER}')")


def test_header_sorts_a_column_and_restores_the_order_of_the_paper(page):
    head = "#identitydp-table1 thead tr:last-child th:nth-child(2) button"
    column = "[...document.querySelectorAll('#identitydp-table1 tbody tr')].map(r => r.cells[1].dataset.value)"
    names = "[...document.querySelectorAll('#identitydp-table1 tbody tr')].map(r => r.cells[0].textContent)"
    before = page.get(names)
    for direction in (1, -1):
        page.click(head)
        values = [float(value) for value in page.get(column) if value is not None]
        assert values == sorted(values)[::direction]
        assert len(set(values)) > 1
    page.click(head)
    assert page.get(names) == before


def test_claims_can_be_filtered_by_verdict(page, built_once):
    verdicts = {r["verdict"] for r in records(built_once.path / "results/tiny/tables/claims.csv")}
    chips = "[...document.querySelectorAll('table.claims tbody tr:not([hidden]) .chip')].map(chip => chip.textContent)"
    assert set(page.get(chips)) == verdicts
    page.click('.filter button[data-verdict="does_not_hold"]')
    assert set(page.get(chips)) == {"does not hold"}


def test_without_javascript_tables_pictures_and_lineage_are_there(chromium, report, built_once):
    chromium.size(1440, 1000)
    chromium.open(report, scripts=False)
    assert chromium.get("document.documentElement.className") == ""
    first = next(r for r in records(built_once.path / "results/tiny/tables/falco/table1.csv") if r["printed"])
    text = chromium.get("document.querySelector('#falco-table1 tbody').innerText")
    assert first["printed"] in text
    assert f"{float(first['measured']):.2f}" in text
    assert chromium.get("document.querySelectorAll('.variant img').length") > 30
    assert chromium.get("[...document.querySelectorAll('.row.method')].every(row => row.offsetHeight > 0)")
    assert chromium.get("[...document.querySelectorAll('.enhanced')].every(extra => extra.offsetHeight === 0)")
    chromium.click(NUMBER)
    target = chromium.get(f"document.querySelector('{NUMBER}').hash.slice(1)")
    chromium.wait(f"document.getElementById('{target}').offsetHeight > 0")
    assert "raw data" in chromium.get(f"document.getElementById('{target}').innerText")


def test_page_fits_the_window_and_follows_the_reader_s_colors(page):
    for wide, dark in itertools.product((390, 820, 1440), (False, True)):
        page.size(wide, 900, dark)
        assert page.get("document.documentElement.scrollWidth") <= wide
        brightness = window_pixels(page).mean()
        assert (brightness < 90) == dark, (wide, dark, brightness)
