"""One device for each process of the tests."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest
from helpers.pyverbs_ends import DEVICE, own_address

from weftwork.compat.pyverbs.base import close_orphans
from weftwork.compat.pyverbs.software_nics import set_devices

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _own_device() -> Iterator[None]:
    set_devices({DEVICE: own_address()})
    yield
    gc.collect()  # of what a failed call has left in a circle
    close_orphans()
    set_devices(None)
