"""Times of messages inside a server: many at once are what each is by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.clock import NEVER_PS
from weftwork.engine.rows.job import GPU_DTYPE
from weftwork.study.results.intra_server import NVLINK, _alone_ps, message_times_ps

gpus = st.lists(
    st.tuples(
        st.sampled_from([1_000_000_000, 3_600_000_000_000, 1]), st.sampled_from([0, 1_000_000]),
        st.sampled_from([1, 512 << 10]),
    ),
    min_size=1, max_size=5,
)  # fmt: skip


@given(gpus=gpus, data=st.data())
def test_many_times_are_each_its_own(gpus: list[tuple[int, int, int]], data: st.DataObject) -> None:
    rows = np.zeros(len(gpus), GPU_DTYPE)
    rows["nvlink_rate_bps"], rows["nvlink_latency_ps"], rows["slice_bytes"] = np.array(gpus, np.int64).T
    ranks = st.integers(0, len(gpus) - 1)
    messages = data.draw(st.lists(st.tuples(ranks, ranks, st.integers(0, 1 << 40)), max_size=12))
    source, destination, size_bytes = np.array(messages, np.int64).reshape(-1, 3).T
    engine_input: Any = SimpleNamespace(rank_gpu=rows)
    found = message_times_ps(engine_input, NVLINK, source, destination, size_bytes)
    for time_ps, sender, receiver, size in zip(found, source, destination, size_bytes, strict=True):
        rate_bps, latency_ps, slice_bytes = gpus[sender]
        alone_ps = _alone_ps(rate_bps, gpus[receiver][0], latency_ps, slice_bytes, int(size))
        assert time_ps == min(alone_ps, NEVER_PS)
