"""Pages in a browser: Debian's headless Chromium runs the script without an error, in both themes, at any width."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.browser import CHROMIUM, Browser, started_browser
from helpers.designs import design_document
from helpers.gallery import Gallery
from helpers.plans import plan_document
from helpers.training_run import training_run

from weftwork.report.page import run_page
from weftwork.report.page_design import design_page
from weftwork.report.page_plan import plan_page
from weftwork.report.page_sweep import sweep_page
from weftwork.spec.sweep import SweepRow
from weftwork.study.sweep.verdict import judged

MOST_BYTES = 5_000_000
# What a page does not do by itself: a pointer over every chart and heat map, and the switch of the themes.
TOUCH = """<script>
addEventListener("load", () => {
  const told = [];
  for (const area of document.querySelectorAll(".pa")) {
    const box = area.getBoundingClientRect();
    area.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + box.width / 2, clientY: box.top + 5}));
    told.push(document.getElementById("tip").textContent);
    area.dispatchEvent(new PointerEvent("pointerleave"));
  }
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const before = paper();
  document.getElementById("theme").click();
  document.body.dataset.told = told.filter((text) => text).length;
  document.body.dataset.switched = before !== paper();
  document.body.dataset.wide = document.documentElement.scrollWidth > innerWidth;
});
</script>"""

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium, which .ci/run installs")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with started_browser(tmp_path_factory.mktemp("browser") / "profile") as browser:
        yield browser


def attribute(document: str, name: str) -> str:
    found = re.search(rf'<body[^>]* data-{name}="([^"]*)"', document)
    assert found is not None, f"the script did not come to {name}"
    return found[1]


@pytest.fixture(scope="module")
def page(gallery: Gallery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    html = run_page(gallery("incast"))
    file = folder / "page.html"
    file.write_text(html.replace("</body>", f"{TOUCH}</body>"), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_page_runs_without_an_error_in_both_themes(browser: Browser, page: Path, theme: str, width: int) -> None:
    document, complaints = browser.opened(page, width=width, theme=theme)
    assert complaints == []
    offered = f'<button id="theme" type="button">{theme} theme</button>'  # after one click, the way back
    assert offered in document
    assert attribute(document, "switched") == "true"
    assert attribute(document, "wide") == "false"
    assert int(attribute(document, "told")) >= 10


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_of_a_sweep_runs_without_an_error(browser: Browser, tmp_path: Path, width: int) -> None:
    rows = [
        SweepRow(
            place=place, values={"fabric.oversubscription": ratio, "transport.congestion_control": control},
            status="complete", reason="", wanted=2, runs=("runs/a", "runs/b"), digests=("a", "b"),
            numbers={
                "iteration_ps": {
                    "value": value, "low": 0.9 * value, "high": 1.1 * value, "unit": "ps", "text": "", "seeds": 2,
                }
            },
        )
        for place, (ratio, control, value) in enumerate(
            [("1", "dcqcn", 1e9), ("1", "none", 2e9), ("4", "dcqcn", 3e9), ("4", "none", 5e9)]
        )
    ]  # fmt: skip
    html = sweep_page(judged(rows, name="tiny", seeds=2), "runs/tiny", "weftwork sweep tiny.yaml")
    file = tmp_path / "page.html"
    file.write_text(html.replace("</body>", f"{TOUCH}</body>"), encoding="utf-8")
    document, complaints = browser.opened(file, width=width)
    assert complaints == []
    assert attribute(document, "wide") == "false"
    assert int(attribute(document, "told")) == 2


# What is wider than the window, scrolls sideways, or is higher than a screen of 800 pixels.
MEASURE = """<script>
addEventListener("load", () => setTimeout(() => {
  const every = (what) => [...document.querySelectorAll(what)];
  const outside = every("main *").filter((one) => one.getBoundingClientRect().right > innerWidth
    && !one.closest(".wide,.fabric,pre,details:not([open])"));
  const moved = every(".fabric,.plot,.gantt,.heat").filter((one) => one.scrollWidth > one.clientWidth + 1);
  const high = every("figure .plot,figure .gantt,figure .fabric").filter((one) => one.offsetHeight > 800);
  document.body.dataset.wide = document.documentElement.scrollWidth > innerWidth;
  document.body.dataset.outside = outside.length;
  document.body.dataset.moved = moved.length;
  document.body.dataset.high = high.length;
}, 200));
</script>"""
TRAINING = """schema: 3
name: wide
fabric: {topology: rail-optimized, gpus: 32, node: dgx-h100, switch: tomahawk-5}
training: {model: llama-3-8b, tensor: 4, pipeline: 2, global_batch: 24}
stragglers: [{gpu: 3, factor: 1.5}]
faults: [{at: 100ms, link: host0-leaf0, event: degrade, fraction: 0.05, for: 200ms}]
"""


@pytest.fixture(scope="module", params=["packets", "training"])
def whole_page(request: pytest.FixtureRequest, gallery: Gallery, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    run = gallery("recorded") if request.param == "packets" else gallery.run(TRAINING)
    file = folder / "page.html"
    file.write_text(run_page(run).replace("</body>", f"{MEASURE}</body>"), encoding="utf-8")
    return file


@pytest.mark.parametrize("width", [1280, 500])  # Chromium makes no window narrower than 500
def test_pictures_fit_a_screen(browser: Browser, whole_page: Path, width: int) -> None:
    document, complaints = browser.opened(whole_page, width=width, height=800)
    assert complaints == []
    assert attribute(document, "wide") == "false"
    assert attribute(document, "outside") == "0"
    assert attribute(document, "high") == "0"
    if width == 1280:
        assert attribute(document, "moved") == "0"


# The pointer over a dot of the cloud: the script says the plan that is nearest both ways.
POINT = """<script>
addEventListener("load", () => {
  const area = document.querySelector(".pa[data-tip]"), data = JSON.parse(area.dataset.tip);
  const place = data.t.indexOf("F3"), box = area.getBoundingClientRect();
  const clientX = box.left + box.width * data.x[place] / 1000, clientY = box.top + box.height * data.y[place] / 1000;
  area.dispatchEvent(new PointerEvent("pointermove", {clientX, clientY}));
  document.body.dataset.tip = document.getElementById("tip").textContent;
  document.body.dataset.wide = document.documentElement.scrollWidth > innerWidth;
});
</script>"""


@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_of_a_search_for_plans_says_which_plan_a_dot_is(browser: Browser, tmp_path: Path, width: int) -> None:
    file = tmp_path / "page.html"
    html = plan_page(plan_document(), "runs/plan", "schema: 3")
    file.write_text(html.replace("</body>", f"{POINT}</body>"), encoding="utf-8")
    document, complaints = browser.opened(file, width=width)
    assert complaints == []
    assert attribute(document, "wide") == "false"
    told = attribute(document, "tip").replace("\u202f", " ")
    assert told == "F3time of an iteration: 158 ms by closed formmemory of the fullest GPU: 45 GB"


# Keys alone lead to a fabric: the knee's dot takes the focus, and pressed it goes to what it names.
KEYS = """<script>
addEventListener("load", () => {
  const dot = document.querySelector("a.spot.knee");
  dot.focus();
  document.body.dataset.focused = document.activeElement === dot;
  dot.click();
  document.body.dataset.at = location.hash;
  document.body.dataset.marked = document.querySelector(":target").id;
  const over = [...document.querySelectorAll("a.spot.best, a.spot.knee")].every((one) => {
    const box = one.getBoundingClientRect();
    const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return top === null || top === one;
  });
  document.body.dataset.reached = over;
});
</script>"""


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_of_a_design_leads_from_a_dot_to_its_fabric(
    browser: Browser, tmp_path: Path, width: int, theme: str
) -> None:
    file = tmp_path / "page.html"
    html = design_page(design_document(budget_usd=1.9e6), "runs/design", "weftwork design", {"f002": "schema: 3"})
    file.write_text(html.replace("</body>", f"{TOUCH}{KEYS}</body>"), encoding="utf-8")
    document, complaints = browser.opened(file, width=width, theme=theme)
    assert complaints == []
    found = {name: attribute(document, name) for name in ("told", "switched", "wide", "focused", "reached")}
    assert found == {"told": "2", "switched": "true", "wide": "false", "focused": "true", "reached": "true"}
    assert (attribute(document, "at"), attribute(document, "marked")) == ("#fabric-f002", "fabric-f002")


def test_the_test_sees_a_broken_script(browser: Browser, page: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.html"
    broken.write_text(page.read_text(encoding="utf-8").replace('"use strict";', '"use strict"; nothing.here();', 1))
    _, complaints = browser.opened(broken)
    assert complaints != []


def test_a_page_of_1024_hosts_is_small_and_runs(gallery: Gallery, browser: Browser, tmp_path: Path) -> None:
    run = gallery.run(
        "schema: 3\nname: large\nfabric: {topology: fat-tree, tiers: 3, radix: 16}\n"
        "transport: {congestion_control: fixed-window}\ntraffic: {pattern: permutation, size: 64KiB}\n"
    )
    html = run_page(run)
    assert len(html.encode()) < MOST_BYTES
    large = tmp_path / "large.html"
    large.write_text(html, encoding="utf-8")
    _, complaints = browser.opened(large)
    assert complaints == []


# Zooms in, moves, asks what is under the pointer, and looks whether the canvas has more than one colour.
ZOOM = """<script>
addEventListener("load", () => setTimeout(() => {
  const chart = document.querySelector(".gantt"), canvas = chart.querySelector("canvas");
  const press = (name) => chart.querySelector(`[data-do=${name}]`).click();
  const box = canvas.getBoundingClientRect();
  canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + 5, clientY: box.top + 5, pointerId: 1}));
  document.body.dataset.tip = document.getElementById("tip").textContent;
  press("in"); press("in"); press("right");
  canvas.dispatchEvent(new KeyboardEvent("keydown", {key: "+"}));
  setTimeout(() => {
    document.body.dataset.where = chart.querySelector(".where").textContent;
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    document.body.dataset.colours = new Set(pixels).size;
    document.body.dataset.wide = document.documentElement.scrollWidth > innerWidth;
  }, 200);
}, 200));
</script>"""


@pytest.mark.parametrize("width", [1280, 390])
def test_a_pipeline_can_be_zoomed_and_asked(browser: Browser, tmp_path: Path, width: int) -> None:
    file = tmp_path / "page.html"
    html = run_page(training_run(tmp_path / "run"))
    file.write_text(html.replace("</body>", f"{ZOOM}</body>"), encoding="utf-8")
    document, complaints = browser.opened(file, width=width)
    assert complaints == []
    assert attribute(document, "tip").startswith("stage 0: rank 0 (GPU 0) stands for 64 ranksmicro batch 0, forward")
    # an eighth of 828 ms, in the middle and 0.4 of a quarter on
    assert attribute(document, "where") == "445\u202fms to 549\u202fms, 104\u202fms of 828\u202fms"
    assert int(attribute(document, "colours")) > 5
    assert attribute(document, "wide") == "false"
