"""Enumerations by the name that they have in older releases of pyverbs.

Source: pyverbs, enums.pyx of rdma-core.
Leaves out: nothing.
"""

from __future__ import annotations

from weftwork.compat.pyverbs.libibverbs_enums import *  # noqa: F403 - all of them
from weftwork.compat.pyverbs.librdmacm_enums import *  # noqa: F403
