"""The digest of a run: which columns and counters it covers, by name, and since which version.

A column that an engine gains later is not in the digest until it is put into a list here, so that digests which are
written down outlive it. Whoever changes a list raises `DIGEST_VERSION`, and writes golden digests anew.
Leaves out: what is recorded on demand (series, events, timeline, paths, captures), and waits and deadlocks, which
follow from the rest.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

__all__ = ["DIGEST_COLUMNS", "DIGEST_COUNTERS", "DIGEST_SELDOM", "DIGEST_VERSION", "digest_of"]

DIGEST_VERSION: Final = 1

DIGEST_COLUMNS: Final[Mapping[str, tuple[str, ...]]] = {
    "messages": (
        "source", "destination", "channel", "ordinal", "size_bytes", "posted_at_ps", "delivered_at_ps", "acked_at_ps",
    ),
    "ports": (
        "frames", "bytes", "drops", "marks", "pauses_sent", "resumes_sent", "paused_ps", "max_queue_bytes",
        "max_ingress_bytes",
    ),
    "milestones": ("rank", "name", "at_ps"),
}  # fmt: skip

DIGEST_COUNTERS: Final = (
    "packet_hops", "data_sent", "retransmissions", "acks_sent", "naks_sent", "cnps_sent", "credits_sent", "probes_sent",
    "timeouts", "queue_pair_errors", "out_of_order_discards", "duplicates", "drop_no_route", "drop_link_down",
    "drop_link_loss", "drop_corrupted", "drop_buffer_full", "drop_egress_threshold", "drop_headroom_full",
    "drop_receive_buffer", "end_ps",
)  # fmt: skip

# Numbers of which most runs have none, and where they stand: in the digest by name, where one of them is not 0.
DIGEST_SELDOM: Final[Mapping[str, tuple[str, ...]]] = {
    "requests_sent": ("counters",),
    "trims": ("ports", "counters"),
    "credit_frames": ("ports",),
    "nic_state_bytes": ("ports",),
    "max_early_packets": ("ports",),
}


def digest_of(tables: Mapping[str, NDArray[np.void]], counters: Mapping[str, int]) -> str:
    """SHA-256 over the completion times and counters that the lists of this file name.

    Parameters
    ----------
    tables : rows by the names of `DIGEST_COLUMNS`, all columns int64
    counters : by name
    """
    digest = hashlib.sha256()
    for name, columns in DIGEST_COLUMNS.items():
        digest.update(np.stack([tables[name][column] for column in columns], axis=1).tobytes())
    digest.update(np.array([counters[name] for name in DIGEST_COUNTERS], np.int64).tobytes())
    for name, places in DIGEST_SELDOM.items():
        of_ports = tables["ports"][name].tolist() if "ports" in places else []
        of_run = [counters[name]] if "counters" in places else []
        numbers = np.array([*of_ports, *of_run], np.int64)
        if numbers.any():
            digest.update(name.encode())
            digest.update(numbers.tobytes())
    return digest.hexdigest()
