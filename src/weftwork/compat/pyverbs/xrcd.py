"""Domains of extended reliable connections, which a software NIC does not have.

Source: pyverbs, xrcd.pyx (names).
Leaves out: the domains themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.compat.pyverbs.base import PyverbsCM, PyverbsObject
from weftwork.compat.pyverbs.pyverbs_error import not_supported

if TYPE_CHECKING:
    from weftwork.compat.pyverbs.device import Context

__all__ = ["XRCD", "XRCDInitAttr"]


class XRCDInitAttr(PyverbsObject):
    """Attributes of a domain.

    Parameters
    ----------
    comp_mask, oflags, fd : see ibv_open_xrcd(3)
    """

    def __init__(self, comp_mask: int, oflags: int, fd: int) -> None:
        self.comp_mask = comp_mask
        self.oflags = oflags
        self.fd = fd


class XRCD(PyverbsCM):
    """A domain that is refused."""

    def __init__(self, context: Context, init_attr: XRCDInitAttr) -> None:  # noqa: ARG002 - as pyverbs
        raise not_supported("An XRC domain")
