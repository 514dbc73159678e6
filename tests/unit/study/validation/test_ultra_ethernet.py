"""The reference model's published runs: what their rows say, and what a run of a row gives."""

from __future__ import annotations

from weftwork.data.measured import measured
from weftwork.study.validation.ultra_ethernet import FRAME_BYTES, PAYLOAD_BYTES, small_cases


def test_a_full_table_has_every_size_path_and_rate_of_both_controls() -> None:
    rows = measured("htsim-permutation-8192-hosts").to_pylist()
    keys = {(row["link_gbps"], row["message_bytes"], row["paths"], row["control"]) for row in rows}
    sizes = [size * 10**6 for size in (1, 2, 4, 8, 16, 32, 64, 100)]
    assert keys == {
        (gbps, size, paths, control)
        for gbps in (200, 400)
        for size in sizes
        for paths in (32, 64, 128)
        for control in ("nscc", "rccc")
    }
    # nobody is faster than the line: frames of the message, four links of 1 us
    for row in rows:
        frames = -(-row["message_bytes"] // PAYLOAD_BYTES)
        line_us = (row["message_bytes"] + frames * (FRAME_BYTES - PAYLOAD_BYTES)) * 8 / row["link_gbps"] / 1_000
        assert line_us + 4 < row["min_fct_us"] < 1.05 * (line_us + 4)


def test_queues_of_small_cases_are_a_bandwidth_delay_product() -> None:
    """6 links of 1 us, 4,150 and 64 B at 100 Gb/s, both ways: 14.02 us, 43 packets; 0.2 and 0.8 of it are marked."""
    for row in small_cases()[0]:
        assert (row.queue_packets, row.kmin_packets, row.kmax_packets) == (43, 9, 35)
