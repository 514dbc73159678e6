"""Equations as MathML, which browsers draw themselves: pages load no script and nothing from the network.

Docutils turns the LaTeX of a page into MathML. Leaves out: numbers of equations and references to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

__all__ = ["setup"]

_LOGGER = logging.getLogger(__name__)


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math-block">{_mathml(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def _mathml(node: nodes.math | nodes.math_block, *, as_block: bool) -> str:
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as error:
        _LOGGER.warning("equation: %s", error, location=node)
        return ""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer under the name ``mathml``, which conf.py chooses."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
