"""The report: complete, safe whatever the cells hold, and alive in a real browser."""

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import make_blobs

import tvsvm
from tvsvm.methods.auto import METHODS
from tvsvm.report import ReportContext, write_report
from tvsvm.report.choice import BESIDE, IN_WORDS
from tvsvm.report.png import thumbnail_uri

EVIL = "</script><script>document.documentElement.dataset.hacked=1</script>\"'&<!--Ünï ✓"
CENTRES = [[-8, 0], [8, 0], [0, 9]]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
    "--virtual-time-budget=2000",
    "--window-size=1000,1400",
]


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text by element."""

    def __init__(self, html):
        super().__init__()
        self.html, self.elements, self.texts = html, [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append((self.elements[-1][0] if self.elements else "", data))

    def attributes(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def data(self):
        return json.loads(self.html.split('id="data">')[1].split("</script>")[0])

    @property
    def visible(self):
        return " ".join(text for tag, text in self.texts if tag not in ("script", "style"))


def blobs(classes=("ant", "bee", "cow"), n_rows=60, n_labels=9):
    X, y = make_blobs(n_rows, centers=CENTRES[: len(classes)], random_state=0)
    names = np.array(classes, dtype=object)
    return X, np.where(np.arange(n_rows) < n_labels, names[y], None)


@pytest.fixture(scope="module")
def model():
    return tvsvm.LapRLS(random_state=0).fit(*blobs())


@pytest.fixture(scope="module")
def evil_model():
    return tvsvm.LapRLS(random_state=0).fit(*blobs(classes=(EVIL, "bee", "cow")))


def page_of(tmp_path, model, **context):
    return Page(write_report(tmp_path / "out.html", model, ReportContext(**context)).read_text())


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def test_needs_nothing_but_the_model(tmp_path, model):
    path = write_report(tmp_path / "out.html", model)
    page = Page(path.read_text(encoding="utf-8"))
    assert list(tmp_path.iterdir()) == [path]
    headings = [text for tag, text in page.texts if tag == "h2"]
    assert len([text for text in headings if text.strip()]) == 9
    assert "From 9 labels in 3 classes" in page.visible
    assert "51 other rows" in page.visible


def test_map_holds_every_row(tmp_path, model):
    data = page_of(tmp_path, model).data
    codes = model.label_distributions_.argmax(axis=1)
    np.testing.assert_array_equal(unpacked(data["codes"], "<u2"), codes)
    np.testing.assert_array_equal(unpacked(data["rows"], "<u4"), np.arange(60))
    np.testing.assert_array_equal(unpacked(data["flags"], "u1"), model.labeled_)
    confidence = model.label_distributions_.max(axis=1)
    np.testing.assert_allclose(unpacked(data["confidence"], "u1") / 255, confidence, atol=0.003)
    positions = unpacked(data["positions"], "<u2").reshape(60, 2)
    assert np.ptp(positions, axis=0).max() == 65535
    assert len(data["colors"]) == len(data["classes"]) == 3


def test_nothing_from_outside(tmp_path, model):
    page = page_of(tmp_path, model)
    links = [value for _, attrs in page.elements for value in (attrs.get("src"), attrs.get("href"))]
    assert all(link.startswith(("#", "data:")) for link in links if link)
    assert "url(" not in page.html
    assert not page.attributes("link")
    # The browser is told to allow this one script and no network.
    (policy,) = (a["content"] for a in page.attributes("meta") if "http-equiv" in a)
    script = page.html.rsplit("<script>", 1)[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert "default-src 'none'" in policy


def test_cells_cannot_break_out(tmp_path, evil_model):
    page = page_of(
        tmp_path,
        evil_model,
        title=EVIL,
        command=EVIL,
        settings={EVIL: EVIL},
        ids=[EVIL] * 60,
        table={EVIL: [EVIL] * 60},
    )
    assert len(page.attributes("script")) == 2
    assert page.data["classes"] == evil_model.classes_.tolist()
    assert page.data["names"] == [EVIL] * 60
    assert page.data["cells"] == [[EVIL]] * 60
    assert ("h1", EVIL) in [(tag, text) for tag, text in page.texts]


def test_what_was_asked_and_how_to_repeat_it(tmp_path, model):
    page = page_of(
        tmp_path, model, command="tvsvm label a.csv", settings={"label column": "kind"}, seed=17
    )
    for text in ("tvsvm label a.csv", "label column", "kind", "17", "LapRLS", tvsvm.__version__):
        assert text in page.visible
    assert "n_neighbors" in page.visible


def test_rows_are_shown_by_position_whatever_the_index(tmp_path, model):
    table = pd.DataFrame({"size": np.arange(60.0) / 7}, index=np.arange(60)[::-1])
    table.loc[59, "size"] = np.nan  # the first row
    page = page_of(tmp_path, model, table=table, ids=[f"id-{k}" for k in range(60)])
    assert page.data["cells"][0] == [""]
    assert page.data["cells"][7] == ["1"]
    assert page.data["names"][59] == "id-59"


def test_long_cells_are_cut(tmp_path, model):
    page = page_of(tmp_path, model, table={"text": ["x" * 500] * 60})
    assert len(page.data["cells"][0][0]) == 80


@pytest.mark.parametrize("name", ["ids", "table", "images"])
def test_wrong_number_of_rows(tmp_path, model, name):
    values = {"ids": [1], "table": {"ids": [1]}, "images": [np.zeros((2, 2))]}
    with pytest.raises(ValueError, match="Got 1 for 60 rows"):
        page_of(tmp_path, model, **{name: values[name]})
    assert not list(tmp_path.iterdir())


def test_an_existing_report_survives_a_failure(tmp_path, model):
    (tmp_path / "out.html").write_text("before")
    with pytest.raises(ValueError, match="Got 1 for 60 rows"):
        page_of(tmp_path, model, ids=[1])
    assert (tmp_path / "out.html").read_text() == "before"


def test_same_model_same_page(tmp_path, model):
    first, second = (write_report(tmp_path / name, model).read_text() for name in "ab")
    assert first == second


@pytest.mark.parametrize("pixels", [np.arange(12).reshape(3, 4), np.ones((200, 90, 3)), "colour"])
def test_thumbnails_are_png(pixels):
    if isinstance(pixels, str):
        pixels = np.random.default_rng(0).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    uri = thumbnail_uri(pixels)
    image = np.asarray(Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1]))))
    assert max(image.shape[:2]) <= 64
    if pixels.dtype == np.uint8:
        np.testing.assert_array_equal(image, pixels)
    elif pixels.ndim == 2:
        np.testing.assert_array_equal(image, np.round(pixels * 255 / 11))


def test_thumbnails_in_tables_and_map(tmp_path, model):
    page = page_of(tmp_path, model, images=np.random.default_rng(0).random((60, 4, 4)))
    assert len(page.data["pictures"]) == 60
    assert len(page.attributes("img")) >= 40


def test_not_an_image():
    with pytest.raises(ValueError, match=r"Got \(3,\); reshape it"):
        thumbnail_uri(np.zeros(3))


def test_a_huge_map_is_thinned_but_keeps_what_is_named(tmp_path, model, monkeypatch):
    monkeypatch.setattr("tvsvm.report.map_data.MOST_POINTS", 12)
    page = page_of(tmp_path, model)
    rows = unpacked(page.data["rows"], "<u4")
    assert len(rows) < 60
    named = {int(a["data-row"]) for a in page.attributes("a") if "data-row" in a}
    assert named | set(range(9)) <= set(rows.tolist())


def test_without_a_graph(tmp_path):
    X, y = blobs()
    model = tvsvm.RLS().fit(X, y)
    page = page_of(tmp_path, model)
    assert page.data is None
    assert "A map is drawn from a graph" in page.visible
    assert page_of(tmp_path, model, graph=tvsvm.knn_graph(X)).data["classes"] == list(
        model.classes_
    )


def test_a_method_that_is_sure_of_every_row(tmp_path):
    X, y = blobs()
    page = page_of(tmp_path, tvsvm.LapRLS(random_state=0).fit(X, np.where(y == "ant", y, None)))
    assert "None: the method is sure of every row." in page.visible


def test_rows_no_label_reaches(tmp_path):
    X, y = blobs(n_labels=0)
    near = np.argmin(np.linalg.norm(X - CENTRES[0], axis=1))
    y[near] = "ant"
    y[np.argsort(np.linalg.norm(X - CENTRES[1], axis=1))[0]] = "bee"
    model = tvsvm.LapRLS(n_neighbors=4).fit(X, y)
    page = page_of(tmp_path, model)
    assert "20 rows in 1 part of the graph" in page.visible
    assert np.count_nonzero(unpacked(page.data["flags"], "u1") == 2) == 20


@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0]], ["only"]),
        ([[0.0], [1.0]], ["a", "b"]),
        ([[0.0], [0.0], [1.0]], ["a", None, None]),
    ],
)
def test_tiny_data(tmp_path, X, y):
    model = tvsvm.LapRLS(random_state=0).fit(X, y)
    assert len(unpacked(page_of(tmp_path, model).data["rows"], "<u4")) == len(X)


def test_what_was_chosen_and_why(tmp_path):
    X, y = blobs()
    chosen = tvsvm.AutoTV(random_state=0).fit(X, y)
    reason = chosen.report_["reason"]
    assert f"{IN_WORDS[chosen.report_['method']]} ({reason})." in page_of(tmp_path, chosen).visible
    assert set(IN_WORDS) == {*METHODS, "constant"}
    assert set(BESIDE) == set(METHODS)
    chosen.report_ = {**chosen.report_, "method": "kernel", "say": {"kernel": 0.6, "smooth": 0.4}}
    told = "60% of the say, weak total variation 40%."
    assert told in page_of(tmp_path, chosen).visible
    alone = tvsvm.AutoTV(random_state=0).fit(X, np.where(y == "ant", y, None))
    assert "the same class (there is only one class)." in page_of(tmp_path, alone).visible


def test_wrong_labels_are_listed(tmp_path):
    X, y = make_blobs(np.full(3, 30), centers=CENTRES, random_state=0, shuffle=False)
    y = np.where(np.isin(np.arange(90) % 30, [0, 4, 8]), y, -1)
    y[20] = 2
    page = page_of(tmp_path, tvsvm.TVRLS(random_state=0).fit(X, y))
    assert re.search("100% of its neighbours are 0", page.visible)


DRIVER = """
<script type="module">
const root = document.documentElement, seen = root.dataset;
const canvas = document.querySelector("canvas"), tip = document.getElementById("tip");
const press = (selector) => document.querySelector(selector).click();
press("a[data-row]");
seen.named = tip.hidden ? "" : tip.textContent;
press(".legend button");
seen.alone = document.querySelectorAll(".legend [aria-pressed=true]").length;
press(".legend button");
const box = canvas.getBoundingClientRect();
let hits = 0;
for (let x = 0; x < box.width; x += 8) for (let y = 0; y < box.height; y += 8) {
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.x + x, clientY: box.y + y }));
  hits += !tip.hidden;
}
seen.hits = hits;
canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: -200, ctrlKey: true }));
seen.zoomed = !document.getElementById("reset").hidden;
press("#reset");
press("[data-color=confidence]");
seen.ramp = document.querySelectorAll(".legend .ramp").length;
press("#theme");
press("#theme");
</script></body>"""


@pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium: apt-get install chromium")
class TestInABrowser:
    def run(self, tmp_path, path, *flags):
        profile = tmp_path / "profile"
        return subprocess.run(
            [CHROMIUM, *CHROMIUM_FLAGS, f"--user-data-dir={profile}", *flags, path.as_uri()],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        ).stdout

    def report(self, tmp_path, model):
        context = ReportContext(
            title="animals", command="x", ids=[EVIL] * 60, table={EVIL: [EVIL] * 60}
        )
        return write_report(tmp_path / "out.html", model, context)

    def test_draws_and_answers(self, tmp_path, evil_model):
        path = self.report(tmp_path, evil_model)
        text = path.read_text(encoding="utf-8")
        policy = re.search(r"<meta http-equiv=.*>", text).group()
        # The driver is a script of its own, which the page would rightly refuse.
        path.write_text(text.replace(policy, "").replace("</body>", DRIVER), encoding="utf-8")
        page = Page(self.run(tmp_path, path, "--dump-dom"))
        seen = page.attributes("html")[0]
        assert "data-error" not in seen
        assert "data-hacked" not in seen
        assert seen["data-ready"] == "yes"
        assert seen["data-points"] == "60"
        assert seen["data-named"].startswith(EVIL)
        assert seen["data-alone"] == "1"
        assert int(seen["data-hits"]) > 20
        assert seen["data-zoomed"] == "true"
        assert seen["data-ramp"] == "1"

    @pytest.mark.parametrize("dark", [False, True])
    def test_looks_right_under_its_own_policy(self, tmp_path, model, dark):
        picture = tmp_path / "page.png"
        flags = ["--blink-settings=preferredColorScheme=0"] if dark else []
        path = self.report(tmp_path, model)
        self.run(tmp_path, path, f"--screenshot={picture}", *flags)
        pixels = np.asarray(Image.open(picture).convert("RGB")).reshape(-1, 3).astype(int)
        assert (np.median(pixels, axis=0).max() < 60) == dark
        for color in ("#3f90da", "#ffa90e", "#bd1f01"):  # of the classes
            channels = [int(color[k : k + 2], 16) for k in (1, 3, 5)]
            assert np.count_nonzero(np.abs(pixels - channels).max(axis=1) < 8) > 50
