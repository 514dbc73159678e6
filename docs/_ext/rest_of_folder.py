"""``{rest-of-folder}``: a table of contents that ends with the pages of its folder that it does not name.

So a new page of the folder is in the navigation at once. ``elsewhere`` names pages that another table of contents has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from docutils.parsers.rst import directives
from sphinx.directives.other import TocTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from docutils import nodes
    from sphinx.application import Sphinx

__all__ = ["setup"]


class _RestOfFolder(TocTree):
    """Sphinx's ``toctree`` with more entries."""

    option_spec: ClassVar[dict[str, Callable[[str], object]]] = {  # type: ignore[misc]
        **TocTree.option_spec,
        "elsewhere": directives.unchanged,
    }

    def run(self) -> list[nodes.Node]:
        """Add what is missing."""
        self.env.note_reread()
        folder = self.env.docname.rpartition("/")[0]
        named = {*self.content, *self.options.pop("elsewhere", "").split(), self.env.docname.rpartition("/")[2]}
        here = (name.removeprefix(f"{folder}/") for name in self.env.found_docs if name.startswith(f"{folder}/"))
        for name in sorted(set(here) - named):
            self.content.append(name, self.state.document["source"], self.lineno)
        return super().run()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("rest-of-folder", _RestOfFolder)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
