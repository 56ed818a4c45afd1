"""The page of results: what is on it, and that a real browser shows it without a network."""

import base64
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

import limes
from limes.html_report import html_report
from limes.html_report.page import reliability
from limes.model.model import Candidate
from limes.report import ModelScores
from tests.test_report import NAMES, count, make_predictions

pytest.importorskip("matplotlib")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
QUICK = {"scheme": "pairwise", "n_borders": 20, "refine": False, "blend": 1, "random_state": 0}


@pytest.fixture(scope="module")
def fast(moons):
    X, y = moons
    return limes.accelerate(SVC(gamma=2).fit(X, y), X, **QUICK)


@pytest.fixture(scope="module")
def page(fast, moons):
    return html_report(fast, *moons, title="Moons <&>")


@pytest.fixture(scope="module")
def many(blobs):
    X, y = blobs
    return limes.accelerate(SVC(gamma=0.1).fit(X, y), X, **QUICK)


class Outline(HTMLParser):
    """Headings, images, links and unclosed elements of a page."""

    def __init__(self, page):
        super().__init__()
        self.headings, self.alts, self.addresses, self.open = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.addresses += [values[key] for key in ("src", "href") if key in values]
        if tag == "img":
            self.alts.append(values.get("alt"))
        elif tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2"):
            self.headings.append(data)


def test_the_page_has_all_its_parts(page):
    outline = Outline(page)
    assert outline.headings == [
        "Moons <&>",
        "Skill, time and size",
        "Confusion",
        "ROC",
        "Reliability of the probabilities",
        "Borders",
    ]
    assert outline.open == []
    for words in (
        "SVC",
        "borders (pairwise)",
        "Brier score",
        "area under the ROC curve",
        "times as fast as the source",
    ):
        assert words in page


def test_every_picture_has_a_description_and_nothing_is_fetched(page):
    outline = Outline(page)
    assert len(outline.alts) >= 3
    assert all(len(alt) > 20 for alt in outline.alts)
    assert all(address.startswith("data:image/svg+xml;base64,") for address in outline.addresses)
    assert "@import" not in page
    pictures = [base64.b64decode(address.partition(",")[2]) for address in outline.addresses]
    for picture in pictures:
        assert not re.search(rb'(?:href|src)="(?!#|data:)', picture)


def test_the_scores_on_the_page_are_those_of_python(page, fast, moons):
    X, y = moons
    assert f"{np.mean(fast.predict(X) == y):.4f}" in page
    assert f"{np.mean(fast.predict(X) == fast.estimator_.predict(X)):.2%}" in page


def test_the_page_says_when_the_fit_is_earned_back(page):
    assert "The fit took" in page
    assert "against the source" in page


def test_many_classes_are_drawn_in_two_principal_components(many, blobs):
    page = html_report(many, *blobs)
    assert "first two principal components shows" in page
    assert ">ash</th>" in page


def test_more_classes_than_a_table_can_hold_are_a_picture():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(15), 20)
    X = np.column_stack([y % 4, y // 4]) * 3.0 + rng.normal(size=(300, 2))
    fast = limes.accelerate(SVC().fit(X, y), X, **QUICK)
    page = html_report(fast, X, y)
    assert 'class="confusion"' not in page
    assert "Confusion matrix of SVC" in page


def test_a_page_without_labels_has_agreement_alone(fast, moons):
    page = html_report(fast, moons[0])
    assert Outline(page).headings[1:] == ["Skill, time and size", "Borders"]
    assert "same label as the source" in page
    assert "n/a" in page


def test_without_a_source_the_model_stands_alone(fast, moons, tmp_path):
    fast.save(tmp_path / "fast.limes")
    page = html_report(limes.load(tmp_path / "fast.limes"), *moons)
    assert "same label as the source" not in page
    given = html_report(limes.load(tmp_path / "fast.limes"), *moons, source=fast.estimator_)
    assert "same label as the source" in given


def test_sparse_rows_and_one_feature_have_a_page_too(moons):
    sparse = pytest.importorskip("scipy.sparse")
    X, y = moons
    fast = limes.accelerate(SVC().fit(X[:, :1], y), X[:, :1], **QUICK)
    assert "Borders" not in Outline(html_report(fast, X[:, :1], y)).headings
    fast = limes.accelerate(SVC().fit(X, y), X, **QUICK)
    assert "Borders" in Outline(html_report(fast, sparse.csr_matrix(X), y)).headings


def test_labels_with_markup_are_text_on_the_page(moons):
    X, y = moons
    names = np.array(["<b>&", "<script>"])[y]
    fast = limes.accelerate(SVC().fit(X, names), X, **QUICK)
    page = html_report(fast, X, names)
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_the_candidates_are_drawn_if_there_are_several(fast, moons):
    copy = limes.accelerate(fast.estimator_, moons[0], **QUICK)
    assert "Agreement against cost" not in Outline(html_report(copy, *moons)).headings
    candidates = [
        Candidate("shared", 4, 1, 10, 0.9, 0.01),
        Candidate("shared", 16, 1, 100, 0.99, 0.01, True),
    ]
    info = replace(copy.model_.info, candidates=candidates)
    copy.model_ = replace(copy.model_, info=info)
    assert "Agreement against cost" in Outline(html_report(copy, *moons)).headings


def test_candidates_are_listed_with_coverage_agreement_and_fallback_share(fast, moons):
    copy = limes.accelerate(fast.estimator_, moons[0], **QUICK)
    candidates = [
        Candidate("shared", 16, 1, 1234, 0.99, 0.01, True, 0.003, 0.052, 0.9876),
        Candidate("exact", 0, 0, 5678, 1.0, 0.0, False, 0.0, 0.0, 1.0),
        Candidate("shared", 64, 1, 9000, 0.99, 0.01),
    ]
    copy.model_ = replace(copy.model_, info=replace(copy.model_.info, candidates=candidates))
    page = html_report(copy, *moons)
    assert ">shared, selected</th><td>16</td><td>1</td><td>1,234</td><td>0.9900</td>" in page
    assert "<td>0.9876</td><td>5.2%</td><td>0.0030</td>" in page
    assert ">exact</th><td>-</td><td>-</td><td>5,678</td><td>1.0000</td>" in page
    assert "<td>n/a</td><td>-</td><td>n/a</td>" in page
    assert f"label, of {copy.model_.info.agreement_rows};" in page


def test_exact_sums_have_a_page_with_regions_but_no_points(moons):
    X, y = moons
    page = html_report(limes.accelerate(SVC(gamma=2).fit(X, y), scheme="exact"), X, y)
    assert "exact sums in place of SVC" in page
    assert "100.00%" in page
    outline = Outline(page)
    assert outline.headings[1:] == ["Skill, time and size", "Confusion", "Borders"]
    assert "Decision regions of 2 classes in a plane, with rows." in outline.alts
    assert "border points" not in page


def browser():
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser is installed, of {', '.join(BROWSERS)}")
    return path


def test_a_real_browser_shows_the_page_without_errors_or_network(page, tmp_path):
    path = tmp_path / "report.html"
    # The browser counts what it shows, and writes it into the title.
    script = """<script>addEventListener('load', () => {
        const images = [...document.images].filter(i => i.complete && i.naturalWidth > 0);
        const fetched = performance.getEntriesByType('resource').filter(
            entry => !entry.name.startsWith('data:'));
        const wide = document.documentElement.scrollWidth > innerWidth;
        document.title = `${images.length} images, ${fetched.length} fetched, wide ${wide}`;
    })</script>"""
    path.write_text(page.replace("</body>", f"{script}</body>"), encoding="utf-8")
    shown = run_browser("--dump-dom", "--virtual-time-budget=5000", path.as_uri())
    title = re.search(rb"<title>(.*?)</title>", shown)[1].decode()
    assert title == f"{len(Outline(page).alts)} images, 0 fetched, wide false"


def test_a_real_browser_draws_the_page(page, tmp_path):
    pytest.importorskip("PIL")
    from PIL import Image

    (tmp_path / "report.html").write_text(page, encoding="utf-8")
    run_browser(f"--screenshot={tmp_path}/page.png", (tmp_path / "report.html").as_uri())
    pixels = np.asarray(Image.open(tmp_path / "page.png").convert("RGB"))
    # Text, tables and pictures: neither empty nor one flat colour below the fold.
    assert pixels.shape[:2] == (2400, 1100)
    for part in np.array_split(pixels[:1800], 6):
        assert len(np.unique(part.reshape(-1, 3), axis=0)) > 20


def run_browser(*words):
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    command = [browser(), *options, "--window-size=1100,2400", *words]
    return subprocess.run(command, capture_output=True, check=True, timeout=120).stdout


def test_the_reliability_of_true_probabilities_is_the_diagonal():
    rng = np.random.default_rng(0)
    shares = rng.random(200_000)
    y = (rng.random(200_000) < shares).astype(int)
    probabilities = np.column_stack([1 - shares, shares])
    counts = count(np.arange(2), y, (shares > 0.5).astype(int), probabilities)
    predicted, observed, n_rows = reliability(ModelScores("m", counts, 1, 1))
    assert len(predicted) == 10
    assert n_rows.sum() == 200_000
    assert_allclose(observed, predicted, atol=0.01)


@pytest.mark.parametrize("name", ["numbers", "two"])
def test_the_reliability_of_blocks_is_that_of_the_whole(name):
    classes = NAMES[name]
    y, labels, probabilities = make_predictions(classes, n_rows=5000)
    counts = count(classes, y, labels, probabilities)
    predicted, observed, n_rows = reliability(ModelScores("m", counts, 1.0, 1))
    is_two = name == "two"
    binned = probabilities[:, 1] if is_two else probabilities.max(axis=1)
    is_right = y == classes[1] if is_two else y == labels
    row_bins = np.minimum((10 * binned).astype(int), 9)
    bins = [tenth for tenth in range(10) if np.sum(row_bins == tenth) >= 10]
    assert_array_equal(n_rows, [np.sum(row_bins == tenth) for tenth in bins])
    assert_allclose(predicted, [binned[row_bins == tenth].mean() for tenth in bins])
    assert_allclose(observed, [is_right[row_bins == tenth].mean() for tenth in bins])
