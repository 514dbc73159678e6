"""What a notebook shows: words that the folder has, escaped, without anything from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.gallery import Gallery

import weftwork
from weftwork.report.comparison_words import comparison_verdict
from weftwork.report.figures.colours import css_variables
from weftwork.report.notebook import bars, run_html, sweep_html
from weftwork.report.three_lines import three_lines
from weftwork.report.words import typeset
from weftwork.spec.sweep import SweepResult, SweepRow, SweepVerdict

NASTY = "<b>fast & 'loose'</b>"
SMALL: dict[str, Any] = {
    "name": NASTY,
    "fabric": {"topology": "fat-tree", "tiers": 2, "radix": 8, "link_rate": "100Gbps"},
    "traffic": {"pattern": "permutation", "size": "64KiB"},
}


class Balanced(HTMLParser):
    """Text of HTML whose tags all close."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        assert not [name for name, _ in attrs if name in {"href", "src"} or name.startswith("on")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.texts).replace("\u202f", " ").replace("\xa0", " "))


@pytest.fixture(scope="module")
def run(gallery: Gallery) -> weftwork.Run:
    run: weftwork.Run = gallery.run(yaml.safe_dump({"schema": 3, **SMALL}), name="a<b", what_if="none")
    return run


def test_a_run_shows_its_three_lines_its_numbers_and_its_busiest_links(run: weftwork.Run) -> None:
    shown = Balanced(run._repr_html_())
    for line in three_lines(run):
        assert re.sub(r"\s+", " ", typeset(line)) in shown.text
    assert NASTY in shown.text
    assert "b" in shown.tags  # the title's own
    assert "&lt;b&gt;fast" in run._repr_html_()
    assert "busiest link in use" in shown.text
    busiest = run.query("select name from links order by utilisation desc, port limit 1")["name"][0].as_py()
    assert busiest in shown.text
    assert "a<b" in shown.text


def test_several_seeds_show_means_with_intervals(gallery: Gallery) -> None:
    several = gallery.run(yaml.safe_dump({"schema": 3, **SMALL}), seeds=2, what_if="none")
    shown = Balanced(run_html(several))
    assert "run, complete, 2 seeds" in shown.text
    assert re.search(r"longest queue \S+ \S+ \(\S+ \S+ to \S+ \S+\)", shown.text)


def test_training_shows_what_an_iteration_went_to(tmp_path: Path) -> None:
    run = weftwork.run(
        {
            "fabric": {"topology": "rail-optimized", "node": "dgx-h100", "gpus": 16, "radix": 32},
            "training": {"model": "llama-3-8b", "tensor": 8, "global_batch": 16, "micro_batch": 1},
        },
        out=tmp_path / "run",
        what_if="none",
    )
    text = Balanced(run_html(run)).text
    assert "computing" in text
    assert "exposed communication" in text
    assert "time of an iteration" in text


def test_a_scenario_shows_its_sections_and_its_source() -> None:
    scenario = weftwork.read_scenario(SMALL)
    shown = Balanced(scenario._repr_html_())
    assert {"fabric", "transport", "traffic", "engine"} <= {text.strip() for text in shown.texts}
    assert "pattern: permutation" in shown.text
    assert "the dict given" in shown.text
    assert NASTY in shown.text


def test_what_was_prepared_is_one_line_and_a_few_facts() -> None:
    prepared = weftwork.prepare(SMALL)
    shown = Balanced(prepared._repr_html_())
    assert "32 hosts" in shown.text
    assert "32, 2.1 MB of payload" in shown.text
    assert len(repr(prepared)) < 200
    assert "32 hosts, about" in repr(prepared)


def point(place: int, size: str, objective: float) -> SweepRow:
    return SweepRow(
        place=place,
        values={"traffic.size": size},
        status="complete",
        reason="",
        wanted=1,
        runs=(f"run-{place}",),
        digests=("0",),
        numbers={},
        objective=objective,
    )


def test_a_sweep_shows_its_verdict_and_its_points_the_best_first() -> None:
    rows = tuple(point(place, f"{place}<KiB", 1e9 * (20 - place)) for place in range(12))
    verdict = SweepVerdict(best=11, second=10, worst=0, gain_on_second=0.1, gain_on_worst=0.55)
    result = SweepResult(
        name=NASTY,
        objective="completion_ps",
        unit="ps",
        is_larger_better=False,
        seeds=1,
        rows=rows,
        effects=(),
        verdicts=(verdict,),
    )
    shown = Balanced(result._repr_html_())
    assert result._repr_html_() == sweep_html(result)
    assert "sweep of 12 points" in shown.text
    assert "and 2 points more" in shown.text
    assert shown.text.index("11<KiB 9 ms") < shown.text.index("10<KiB 10 ms")
    assert "0<KiB 20 ms" not in shown.text.replace("10<KiB", "")
    assert repr(result) == f"SweepResult({NASTY!r}, 12 points by traffic.size, judged by 'completion_ps')"


def test_a_comparison_shows_its_verdict_its_runs_and_what_differs(gallery: Gallery, run: weftwork.Run) -> None:
    keys = {"fabric.link_rate": "200Gbps"}
    faster = gallery.run(yaml.safe_dump({"schema": 3, **SMALL}), name="b<i>", overrides=keys, what_if="none")
    found = weftwork.compare(run, faster)
    shown = Balanced(found._repr_html_())
    for text in comparison_verdict(found):
        assert re.sub(r"\s+", " ", typeset(text)) in shown.text
    assert "fabric.link_rate" in shown.text
    assert f"{run.value('completion_ps') / 1e6:.1f} µs" in shown.text
    assert repr(found).startswith("RunComparison(")
    assert "differ in fabric.link_rate" in repr(found)


def test_bars_are_readable_on_light_and_dark() -> None:
    colour = re.search(r"background:#([0-9a-f]{6})", run_html.__globals__["_STYLE"])
    assert colour is not None
    for theme in ("light", "dark"):
        paper = re.search(r"--bg:\s*#([0-9a-f]{6})", css_variables(theme))
        assert paper is not None
        assert _contrast(colour.group(1), paper.group(1)) >= 3  # WCAG 2.2, 1.4.11
    assert "width:100.0%" in bars([("over", 1.7)])


def _contrast(one: str, other: str) -> float:
    def luminance(text: str) -> float:
        parts = [int(text[place : place + 2], 16) / 255 for place in (0, 2, 4)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)
