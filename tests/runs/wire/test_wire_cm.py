"""Messages of communication management, and in-band telemetry: layouts by hand, refusals."""

from __future__ import annotations

import pytest

from weftwork.engine.lower import TELEMETRY_BYTES as ENGINE_TELEMETRY_BYTES
from weftwork.engine.lower import TELEMETRY_HOP_BYTES as ENGINE_TELEMETRY_HOP_BYTES
from weftwork.wire.hpcc_int import IntHop, IntPath


@pytest.mark.parametrize("hops", [0, 1, 5])
def test_the_engines_count_the_bytes_that_the_codec_writes(hops: int) -> None:
    block = IntPath(path_id=0, hops=(IntHop(0, 0, 0, 0),) * hops)
    assert len(block.encode()) == ENGINE_TELEMETRY_BYTES + hops * ENGINE_TELEMETRY_HOP_BYTES
