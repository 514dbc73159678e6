"""What the site of documents promises: commands run, claims about them hold, rows are the program's, links lead on."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("myst_nb", reason="Sphinx and MyST come with the extra 'docs'")
pytestmark = pytest.mark.extra

EXTENSIONS = Path(__file__).parents[2] / "docs" / "_ext"
Built = Callable[[str], tuple[str, str]]
RUN = "```{weftwork} topology examples/fabrics/two_leaves.json\n"


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """Build a site of one page; gives what Sphinx said and the page as HTML, empty where the build failed."""
    (tmp_path / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\nhtml_math_renderer = 'mathml'\n"
        "extensions = ['built_pages', 'mathml', 'myst_nb', 'weftwork_commands', 'weftwork_rows']\n"
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


def test_a_page_shows_what_its_command_printed(built: Built) -> None:
    told, page = built(f"{RUN}:expect: 4 (2 leaves, 2 spines); 600Gbps\n```")
    assert told == ""
    assert "600Gbps, 100.0% of the sending rate of half of the hosts" in page


def test_a_claim_that_the_output_does_not_hold_fails_the_build(built: Built) -> None:
    told, _ = built(f"{RUN}:expect: 700Gbps\n```")
    assert "the output lacks '700Gbps'" in told


def test_a_command_that_fails_fails_the_build(built: Built) -> None:
    told, _ = built("```{weftwork} topology nothing.json\n```")
    assert "ended with exit code 2" in told


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
    assert page
    shown = (tmp_path / "built" / "notebook.html").read_text(encoding="utf-8")
    assert 'class="weftwork"' in shown
    assert "<summary>traffic</summary>" in shown
    notebook.write_text(NOTEBOOK % "permutatoin", encoding="utf-8")
    told, page = built(index)
    assert "ConfigError" in told
    assert "permutatoin" in told
    assert page == ""


def test_rows_come_from_the_program_with_headings_of_their_own(built: Built) -> None:
    told, page = built("```{weftwork-rows} switch\n```\n\nSee [one of them](#switch-tomahawk-5).")
    assert told == ""
    assert "51.2Tbps" in page
    assert "<h2>tomahawk-5" in page


def test_rows_that_are_none_fail_the_build(built: Built) -> None:
    told, _ = built("```{weftwork-rows} swich\n```")
    assert "no rows 'swich'" in told


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
