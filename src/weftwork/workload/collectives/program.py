"""Program of the catalogue for each method of NCCL's tuner.

NVLSTree and PAT have no programs of their own; the files of `weftwork.workload.collectives.methods` say which
algorithm of the catalogue is the program of a method, and with which keys.
Leaves out: CollNet.
"""

from __future__ import annotations

from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.method import Method, MethodCall, MethodProgram
from weftwork.workload.collectives.method_bytes import GroupShape
from weftwork.workload.collectives.method_catalogue import method_of

__all__ = ["program"]


def program(
    method: Method,
    group: GroupShape,
    size_bytes: float,
    figures: CollectiveFigures,
    *,
    own_channels: int | None = None,
) -> MethodProgram:
    """The program of a method.

    Parameters
    ----------
    method : that `chosen_method` took
    group, size_bytes, figures : as for `alone`
    own_channels : of the section, where it says how many
    """
    call = MethodCall(
        method=method, operation="all-gather", group=group, size_bytes=size_bytes, figures=figures
    )  # of any operation: a program's keys do not depend on it
    timed = method_of(method.algorithm)
    return MethodProgram(method=method) if timed is None else timed.program(call, own_channels)
