"""The report of a run on its captured link.

Leaves out: what is in the capture; `weftwork rdma decode` explains it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from weftwork.base.grammar import plural

if TYPE_CHECKING:
    from rich.console import Console

    from weftwork.store.runs import Run

__all__ = ["print_capture"]


def print_capture(run: Run, console: Console) -> None:
    """Print how many packets were captured and left out.

    It also prints which of them have no wire form, and nothing for a run without a capture.
    """
    if "capture" not in run.provenance:
        return
    capture = run.provenance["capture"]
    packets, left_out = plural(capture["packets"], "packet"), capture["left_out"]
    rest = f"; {plural(left_out, 'later one')} left out, see --capture-packets" if left_out else ""
    console.print(
        Text(f"capture: {packets} of {capture['link']} in {run.path / capture['file']}{rest}"), soft_wrap=True
    )
    if capture["without_wire_form"]:
        wire = capture.get("wire_format", "RoCEv2")  # runs before transports offered one
        text = f"without a wire form in {wire}: {'; '.join(capture['without_wire_form'])}"
        console.print(Text(text, style="dim"), soft_wrap=True)
