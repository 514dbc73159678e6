"""Photographs of pages, for README and site: each as a reader with a light and with a dark system sees it.

    python docs/pictures.py

Runs the scenarios, writes their pages as `weftwork report` does, and lets Chromium photograph them down to the end of
a section: ``NAME.png`` and ``NAME-dark.png`` beside this file. Run it again when a page looks or says something else.
Needs Debian's chromium. Leaves out: figures (SVG), which have both forms in one file.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from weftwork.report.page import run_page
from weftwork.study.record.run import run_scenario

ROOT: Final = Path(__file__).parents[1]
WIDTH_PX: Final = 1160  # chosen: the columns of a page side by side, text that can be read where README shows it
BELOW_PX: Final = 28  # chosen: of the page's ground below the last thing that is shown
THEMES: Final = {"": 1, "-dark": 0}  # end of the file's name -> what Chromium calls the preferred colour scheme
_MEASURE: Final = """<script>addEventListener("load", () => {
  const last = document.querySelector(%r);
  document.body.dataset.bottom = last === null ? "" : Math.ceil(last.getBoundingClientRect().bottom);
});</script>"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Photograph:
    """One page: its scenario, and the element at whose end the picture ends, as a selector."""

    name: str
    scenario: str
    last: str


PHOTOGRAPHS: Final = (
    Photograph(name="quickstart-report", scenario="quickstart", last="#pipeline"),
    Photograph(name="report", scenario="permutation", last="#links"),
)


def take(photograph: Photograph, browser: str, out: Path) -> None:
    """Write both forms of one picture.

    Parameters
    ----------
    photograph : which
    browser : the program of Chromium
    out : the folder of the pictures
    """
    with tempfile.TemporaryDirectory(prefix="weftwork-pictures-") as name:
        folder = Path(name)
        run = run_scenario(ROOT / "examples" / f"{photograph.scenario}.yaml", out=folder / photograph.scenario)
        page = folder / "page.html"
        page.write_text(run_page(run).replace("</body>", _MEASURE % photograph.last + "</body>"), encoding="utf-8")
        for end, scheme in THEMES.items():
            command = [
                browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=5000",
                f"--blink-settings=preferredColorScheme={scheme}",
            ]  # fmt: skip
            height_px = _bottom([*command, f"--window-size={WIDTH_PX},1000"], page) + BELOW_PX
            file = out / f"{photograph.name}{end}.png"
            shot = [f"--window-size={WIDTH_PX},{height_px}", f"--screenshot={file}", page.as_uri()]
            subprocess.run([*command, *shot], check=True, capture_output=True, timeout=240)  # noqa: S603 - a browser
            sys.stdout.write(f"{file}: {WIDTH_PX} x {height_px}\n")


def _bottom(command: list[str], page: Path) -> int:
    seen = subprocess.run(  # noqa: S603 - a browser
        [*command, "--dump-dom", page.as_uri()], check=True, capture_output=True, text=True, timeout=240
    )
    found = re.search(r'<body[^>]* data-bottom="(\d+)"', seen.stdout)
    if found is None:
        sys.exit(f"{page.name} has no such section: its selector in {Path(__file__).name} has to follow the page")
    return int(found[1])


def main() -> None:
    """Take all of them."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        sys.exit("there is no chromium; on Debian: apt-get install chromium")
    for photograph in PHOTOGRAPHS:
        take(photograph, browser, Path(__file__).parent)


if __name__ == "__main__":
    main()
