"""A check on the pages as they were built: at the width of a phone nothing is cut.

Chromium opens every page in a frame of `WIDTH_PX` and looks at each piece of text, picture, table and frame. Where one
ends to the right of the screen, or of a box that hides what leaves it, there has to be a box around it that scrolls. In
an article that box has to say so by a shade (`_static/weftwork.css`), since phones show no bars until one scrolls.
Leaves out: other browsers, and all of it where there is no Chromium (`.ci/run` installs it), which the build says.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sphinx.errors import ExtensionError
from sphinx.util import logging

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sphinx.application import Sphinx

__all__ = ["cut", "setup"]

WIDTH_PX: Final = 390  # chosen: CSS pixels of a common phone
_LIMIT_S: Final = 900  # chosen: several times what 200 pages take on a busy machine
_LOGGER = logging.getLogger(__name__)
_SCRIPT: Final = """
const frame = document.querySelector("iframe"), wide = %(width)d;
const isHidden = (style) => style.display === "none" || style.visibility === "hidden" || style.opacity === "0";
const hides = /(hidden|clip)/, scrolls = /(auto|scroll)/;
const named = (node) => {
  const one = node.nodeType === 3 ? node.parentElement : node, name = one.getAttribute("class");
  const words = (node.nodeType === 3 ? node.data : one.outerHTML).trim().replace(/\\s+/g, " ").slice(0, 60);
  return `<${one.tagName.toLowerCase()}${name ? ` class=${name}` : ""}> ${words}`;
};
const measured = (document, view) => {
  const found = [], boxes = new Map(), scrolling = new Set();
  // Of an element: its edge to the right that hides, null where something scrolls, or undefined where all is hidden.
  // The drawers of the theme wait outside of the screen until a button calls them; its content scrolls as a whole.
  const edge = (element) => {
    if (boxes.has(element)) return boxes.get(element);
    const style = view.getComputedStyle(element), box = element.getBoundingClientRect();
    let at = element.parentElement === null ? wide : edge(element.parentElement);
    if (isHidden(style) || element.matches(".sidebar-drawer, .toc-drawer, .overlay")) at = undefined;
    else if (at === undefined || element.matches("body > .page > .main > .content")) at = at;
    else if (hides.test(style.overflowX)) {
      if (box.width < 2 || box.height < 2) at = undefined;
      else if (at !== null) at = Math.min(at, box.right);
    } else if (scrolls.test(style.overflowX)) {
      at = null;
      if (element.matches("article *")) scrolling.add(element);
    }
    boxes.set(element, at);
    return at;
  };
  // The page as a whole always scrolls: that is no box around a thing.
  boxes.set(document.documentElement, wide);
  boxes.set(document.body, wide);
  const see = (node, element, right) => {
    const at = edge(element);
    if (at === undefined || at === null || right <= at + 1) return;
    found.push(`${named(node)} ends at ${Math.round(right)} px of ${Math.round(at)}`);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
  const range = document.createRange();
  while (walk.nextNode()) {
    const node = walk.currentNode;
    if (node.nodeType === 3) {
      const parent = node.parentElement;
      if (!node.data.trim() || parent.closest("svg, script, style, noscript, option")) continue;
      range.selectNodeContents(node);
      see(node, parent, Math.max(...[...range.getClientRects()].map((box) => box.right), 0));
    } else if (node.matches("img, svg, canvas, iframe, table, math, pre, button, input")) {
      see(node, node.parentElement, node.getBoundingClientRect().right);
    }
  }
  for (const box of scrolling)
    if (box.scrollWidth > box.clientWidth + 1 && !view.getComputedStyle(box).backgroundAttachment.includes("local"))
      found.push(`${named(box)} scrolls, and nothing shows it`);
  return found;
};
const loaded = (address) => new Promise((done) => { frame.onload = () => done(); frame.src = address; });
(async () => {
  const told = {};
  for (const address of %(pages)s) {
    await loaded(address);
    told[address] = measured(frame.contentDocument, frame.contentWindow);
  }
  document.getElementById("told").textContent = JSON.stringify(told);
})();
"""


def cut(pages: Sequence[Path], browser: str) -> dict[Path, list[str]]:
    """What is cut, by page; a page without is left out.

    Parameters
    ----------
    pages : files of HTML
    browser : the program of Chromium
    """
    addresses = {page.resolve().as_uri(): page for page in pages}
    script = _SCRIPT % {"width": WIDTH_PX, "pages": json.dumps(list(addresses))}
    frame = f'<iframe style="border:0;width:{WIDTH_PX}px;height:844px"></iframe>'
    with tempfile.TemporaryDirectory(prefix="weftwork-narrow-") as folder:
        start = Path(folder) / "start.html"
        start.write_text(
            f'<!doctype html><meta charset="utf-8"><body>{frame}<pre id="told"></pre><script>{script}</script>',
            encoding="utf-8",
        )
        command = [
            browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files",
            f"--user-data-dir={folder}/profile", "--window-size=800,900", "--virtual-time-budget=10000000",
            "--dump-dom", start.as_uri(),
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=True)  # noqa: S603 - a browser
    answer = re.search(r'<pre id="told">(.*?)</pre>', done.stdout, re.DOTALL)
    if answer is None or not answer[1]:
        raise ExtensionError(f"{browser} did not measure the pages:\n{done.stderr[-2000:]}")
    told: dict[str, list[str]] = json.loads(unescape(answer[1]))
    return {page: told[address] for address, page in addresses.items() if told[address]}


def _check(app: Sphinx, failure: Exception | None) -> None:
    if failure is not None or app.builder.format != "html":
        return
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        _LOGGER.info("no Chromium here: whether pages are cut on a phone was not looked at")
        return
    top = Path(app.outdir)
    found = cut(sorted(top.rglob("*.html")), browser)
    wrong = [f"{page.relative_to(top)}: cut on a phone: {one}" for page, ones in found.items() for one in ones]
    if wrong:
        raise ExtensionError("\n".join(wrong))


def setup(app: Sphinx) -> dict[str, bool]:
    """Check when the site is built."""
    app.connect("build-finished", _check, priority=950)  # after files that other extensions write
    return {"parallel_read_safe": True, "parallel_write_safe": True}
