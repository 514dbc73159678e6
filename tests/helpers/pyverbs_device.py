"""One device for each process of the tests: a fixture that the folders of pyverbs take into their conftest.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.pyverbs_ends import DEVICE, own_address

from weftwork.compat.pyverbs import software_nics
from weftwork.compat.pyverbs.base import close_orphans
from weftwork.compat.pyverbs.software_nics import set_devices

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _device_of_this_process() -> Iterator[None]:
    set_devices({DEVICE: own_address()})
    yield
    close_orphans()
    software_nics._close_all()  # what a test leaves open is not open in the next one
    set_devices(None)
