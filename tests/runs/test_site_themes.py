"""Pages of the site on dark screens and on phones: pictures follow the theme, and what is cut is told."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("myst_parser", reason="Sphinx and MyST come with the extra 'docs'")

DOCS = Path(__file__).parents[2] / "docs"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium, which .ci/run installs")
pytestmark = pytest.mark.extra

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><style>{rules}</style>'
    '<circle id="dot" class="ink" fill="#0072B2" r="9"/><use href="#dot"/></svg>'
)
BOTH = SVG.format(rules=".ink{fill:#111111}@media (prefers-color-scheme: dark){.ink{fill:#eeeeee}}")
# What a dot is filled with under each choice of the button; the system's own preference is given to the browser.
FILLS = """<script>
addEventListener("load", () => {
  const fill = () => getComputedStyle(document.querySelector(".weftwork-picture circle")).fill;
  for (const theme of ["light", "dark", "auto"]) {
    document.body.dataset.theme = theme;
    document.body.dataset[`with_${theme}`] = fill();
  }
});
</script>"""
LONG = '<span style="white-space:nowrap">' + "x" * 99 + "</span>"
Built = Callable[[str], tuple[str, Path]]


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """Build a site of one page in the folder of a test; gives what Sphinx said, and the page."""
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(DOCS / '_ext')!r})\nhtml_theme = 'furo'\n"
        "extensions = ['myst_parser', 'narrow_pages', 'themed_pictures']\n"
        f"html_static_path = [{str(DOCS / '_static')!r}]\nhtml_css_files = ['weftwork.css']\n",
        encoding="utf-8",
    )

    def build(page: str) -> tuple[str, Path]:
        (tmp_path / "index.md").write_text(f"# A page\n\n{page}\n", encoding="utf-8")
        out = tmp_path / "built"
        command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(tmp_path), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr, out / "index.html"

    return build


def opened(page: Path, profile: Path, *options: str) -> str:
    command = [
        str(CHROMIUM), "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
        "--virtual-time-budget=5000", *options, "--dump-dom", page.as_uri(),
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout


@needs_browser
@pytest.mark.parametrize("system", ["light", "dark"])
def test_a_picture_follows_the_button_first_and_the_system_else(built: Built, tmp_path: Path, system: str) -> None:
    (tmp_path / "dot.svg").write_text(BOTH, encoding="utf-8")
    told, page = built("![A dot](dot.svg)")
    assert told == ""
    text = page.read_text(encoding="utf-8")
    assert 'aria-label="A dot"' in text
    page.write_text(text.replace("</body>", f"{FILLS}</body>"), encoding="utf-8")
    theme = f"--blink-settings=preferredColorScheme={int(system == 'light')}"
    document = opened(page, tmp_path / "profile", theme)
    light, dark = "rgb(17, 17, 17)", "rgb(238, 238, 238)"
    found = dict(re.findall(r'data-with_(\w+)="([^"]+)"', document))
    assert found == {"light": light, "dark": dark, "auto": light if system == "light" else dark}


def test_two_pictures_of_a_page_share_no_rule_and_no_name(built: Built, tmp_path: Path) -> None:
    (tmp_path / "dot.svg").write_text(BOTH, encoding="utf-8")
    told, page = built("![A](dot.svg) ![B](dot.svg)")
    assert told == ""
    text = page.read_text(encoding="utf-8")
    assert {'id="picture0-dot"', 'id="picture1-dot"'} <= set(re.findall(r'id="picture[^"]*"', text))
    assert set(re.findall(r'href="#(picture[^"]*)"', text)) == {"picture0-dot", "picture1-dot"}
    rules = "".join(re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert re.findall(r"[^{}]*\.ink\{", rules) == [
        one for one in re.findall(r"[^{}]*\.ink\{", rules) if ".picture" in one
    ]
    assert ".picture1 .ink{fill:#111111}" in rules


def test_a_photograph_has_a_twin(built: Built, tmp_path: Path) -> None:
    shutil.copy(DOCS / "report.png", tmp_path / "page.png")
    told, _ = built("![A page](page.png)")
    assert "page.png has no dark twin page-dark.png" in told
    shutil.copy(DOCS / "report.png", tmp_path / "page-dark.png")
    told, page = built("![A page](page.png)")
    assert told == ""
    shown = re.findall(r'<img[^>]*class="([^"]+)"[^>]*src="([^"]+)"', page.read_text(encoding="utf-8"))
    own = [one for one in shown if "_images" in one[1]]
    assert own == [("only-light", "_images/page.png"), ("only-dark", "_images/page-dark.png")]


def test_a_picture_of_light_colours_alone_fails_the_build(built: Built, tmp_path: Path) -> None:
    (tmp_path / "dot.svg").write_text(SVG.format(rules=".ink{fill:#111111}"), encoding="utf-8")
    told, _ = built("![A dot](dot.svg)")
    assert "dot.svg has no rules for prefers-color-scheme: dark" in told


@needs_browser
@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<div style="width:700px">wide</div>', None),  # nothing of its text leaves the screen
        ('<div style="width:700px;text-align:right">wide</div>', "<div> wide ends at "),
        ('<div style="overflow:hidden;width:200px">' + LONG + "</div>", " px of 2"),
        ('<div style="overflow-x:auto;width:200px">' + LONG + "</div>", "scrolls, and nothing shows it"),
        ('<div class="math-block">' + LONG + "</div>", None),
        ('<canvas width="800" height="8"></canvas>', "<canvas> "),
        ("<span>" + "x" * 99 + "</span>", None),  # it breaks
        (LONG, "<span> xxx"),
    ],
)
def test_what_a_phone_cuts_fails_the_build(built: Built, html: str, text: str | None) -> None:
    told, _ = built(html)
    if text is None:
        assert told == ""
    else:
        assert "index.html: cut on a phone: " in told
        assert text in told


@needs_browser
def test_wide_output_and_wide_tables_scroll_and_show_it(built: Built) -> None:
    row = "| " + " | ".join(["`a_long_name_of_a_column`"] * 8) + " |"
    told, page = built(f"```text\n{'a line of a terminal ' * 9}\n```\n\n{row}\n|{'---|' * 8}\n{row}")
    assert told == ""
    assert "a_long_name_of_a_column" in page.read_text(encoding="utf-8")
