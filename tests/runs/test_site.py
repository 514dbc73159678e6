"""What the site of documents promises: it shows what pages hold, claims about outputs hold, and links lead on."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("myst_nb", reason="Sphinx and MyST come with the extra 'docs'")
pytestmark = pytest.mark.extra

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"
Built = Callable[[str], tuple[str, str]]
RUN = """<!-- run
%s
-->
```console
$ weftwork topology examples/fabrics/two_leaves.json
bisection  600Gbps
```
"""


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """Build a site of one page; gives what Sphinx said and the page as HTML, empty where the build failed."""
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\nhtml_math_renderer = 'mathml'\n"
        "extensions = ['built_pages', 'mathml', 'myst_nb', 'rest_of_folder', 'weftwork_pages']\n"
        "myst_enable_extensions = ['dollarmath']\n"
        "nb_execution_mode = 'force'\nnb_execution_in_temp = True\nnb_execution_show_tb = True\n"
        "exclude_patterns = ['built', 'jupyter_execute']\n",
        encoding="utf-8",
    )

    def build(page: str) -> tuple[str, str]:
        (tmp_path / "index.md").write_text(f"# A page\n\n{page}\n", encoding="utf-8")
        out = tmp_path / "built"
        command = [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", str(tmp_path), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stderr, (out / "index.html").read_text(encoding="utf-8") if done.returncode == 0 else ""

    return build


def test_a_page_shows_the_output_that_it_holds(built: Built) -> None:
    told, page = built(RUN % "expect: 600Gbps")
    assert told == ""
    assert "bisection  600Gbps" in page
    assert "expect" not in page


def test_a_claim_that_the_output_does_not_hold_fails_the_build_at_its_line(built: Built) -> None:
    told, _ = built(RUN % "expect: 700Gbps")
    assert "index.md:3: WARNING: the output lacks '700Gbps'" in told


def test_a_block_that_breaks_the_form_fails_the_build(built: Built) -> None:
    told, _ = built(RUN % "expects: 600Gbps")
    assert "index.md: line 4: wanted 'OPTION: VALUE'" in told


def test_a_picture_that_is_not_committed_fails_the_build(built: Built) -> None:
    told, _ = built(f"{RUN % 'picture: a.svg'}\n![A fabric](outputs/index/a.svg)")
    assert "there is no picture outputs/index/a.svg; python docs/outputs.py --write makes it" in told


def test_a_page_that_a_command_writes_stands_in_a_frame_and_is_made_once(built: Built, tmp_path: Path) -> None:
    program = (
        "<!-- run\npage: {0}\n-->\n```python\nopen({0!r}, 'w').write('<p>framed</p>')\n```\n\n"
        "*The site shows the page `{0}` here.*"
    )
    told, page = built(program.format("a.html"))
    assert told == ""
    assert '<iframe src="index-a.html"' in page
    assert "The site shows" not in page
    assert (tmp_path / "built" / "index-a.html").read_text(encoding="utf-8") == "<p>framed</p>"
    frames = tmp_path / "built" / ".doctrees" / "weftwork-frames"
    (kept,) = frames.glob("*/a.html")
    kept.write_text("<p>kept</p>", encoding="utf-8")
    assert built(program.format("a.html"))[0] == ""
    assert (tmp_path / "built" / "index-a.html").read_text(encoding="utf-8") == "<p>kept</p>"
    told, _ = built(program.format("a.html").replace("open(", "open(7, "))
    assert "ended with exit code 1" in told


NOTEBOOK = """---
file_format: mystnb
kernelspec: {name: python3}
---
# A notebook

```{code-cell} ipython3
import weftwork
weftwork.read_scenario({"fabric": {"radix": 4}, "traffic": {"pattern": "%s"}})
```
"""


def test_a_notebook_shows_what_its_cells_gave_and_a_cell_that_fails_fails_the_build(
    built: Built, tmp_path: Path
) -> None:
    notebook = tmp_path / "notebook.md"
    index = "```{toctree}\nnotebook\n```"
    notebook.write_text(NOTEBOOK % "permutation", encoding="utf-8")
    told, page = built(index)
    assert "WARNING: " not in told.replace("[IPKernelApp] WARNING", "")
    assert page, told
    shown = (tmp_path / "built" / "notebook.html").read_text(encoding="utf-8")
    assert 'class="weftwork"' in shown
    assert "<summary>traffic</summary>" in shown
    notebook.write_text(NOTEBOOK % "permutatoin", encoding="utf-8")
    told, page = built(index)
    assert "ConfigError" in told
    assert "permutatoin" in told
    assert page == ""


def test_rows_have_headings_and_targets_of_their_own(built: Built) -> None:
    rows = '<!-- rows: switch -->\n\n<a id="switch-a"></a>\n## a\n\nA chip.\n\n<!-- end rows -->'
    told, page = built(f"{rows}\n\nSee [one of them](#switch-a).")
    assert told == ""
    assert "<h2>a<" in page
    assert "rows: switch" not in page


def test_a_directive_in_a_comment_is_one(built: Built, tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# Another page\n", encoding="utf-8")
    told, page = built("<!-- {toctree}\nother\n-->")
    assert told == ""
    assert '<a class="reference internal" href="other.html">Another page</a>' in page


def test_equations_need_no_script(built: Built) -> None:
    told, page = built("$$ W = C \\cdot \\mathrm{RTT} / 8 $$")
    assert told == ""
    assert "<math" in page
    assert '<script src="https' not in page


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ('<a href="gone.html">a</a>', "links to gone.html, which is not there"),
        ('<a href="#gone">a</a>', "links to #gone; that page has no such place"),
        ('<img src="https://example.org/a.png">', "loads https://example.org/a.png"),
    ],
)
def test_links_lead_somewhere_and_nothing_comes_from_elsewhere(built: Built, html: str, text: str) -> None:
    told, _ = built(html)
    assert text in told
