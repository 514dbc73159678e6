"""Numbers of the connection manager by the name that their module has in older releases of pyverbs.

Source: pyverbs, cm_enums.pyx of rdma-core.
Leaves out: nothing.
"""

from __future__ import annotations

from weftwork.compat.pyverbs.librdmacm_enums import *  # noqa: F403 - all of them
