"""Figures of a measurement: bandwidth, message rate and latency, from instants of requests.

Source: linux-rdma/perftest, src/perftest_parameters.c (print_report_bw, print_report_lat).
Leaves out: CPU cycles as a unit. Unlike perftest, no slow sample is dropped: perftest leaves out the slowest two
(LAT_MEASURE_TAIL) and truncates its deviations to whole microseconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MOST_FOR_PEAK", "BandwidthFigures", "LatencyFigures", "bandwidth_figures", "latency_figures", "peak_rate"]

MOST_FOR_PEAK: Final = 20_000  # perftest computes no peak beyond so many messages (man perftest, -N)
_NS_PER_S: Final = 1_000_000_000
_NS_PER_US: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class BandwidthFigures:
    """Bandwidth of one direction, or the sum of both.

    Parameters
    ----------
    size_bytes, messages : of each message, and their number
    duration_s : from the first post to the last completion
    peak_bytes_per_s : highest bandwidth between any post and any later completion; None where it was not computed
    average_bytes_per_s, messages_per_s : over the whole duration
    """

    size_bytes: int
    messages: int
    duration_s: float
    peak_bytes_per_s: float | None
    average_bytes_per_s: float
    messages_per_s: float

    def plus(self, other: BandwidthFigures) -> BandwidthFigures:
        """Sum of two directions; the longer duration counts."""
        peaks = (self.peak_bytes_per_s, other.peak_bytes_per_s)
        return BandwidthFigures(
            size_bytes=self.size_bytes,
            messages=self.messages + other.messages,
            duration_s=max(self.duration_s, other.duration_s),
            peak_bytes_per_s=None if peaks[0] is None or peaks[1] is None else peaks[0] + peaks[1],
            average_bytes_per_s=self.average_bytes_per_s + other.average_bytes_per_s,
            messages_per_s=self.messages_per_s + other.messages_per_s,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class LatencyFigures:
    """Latency of messages of one size, in microseconds.

    Parameters
    ----------
    size_bytes, messages : of each message, and their number
    min_us, max_us, typical_us, average_us, stdev_us : of all samples; the typical one is the median
    p99_us, p99_9_us : percentiles by nearest rank
    """

    size_bytes: int
    messages: int
    min_us: float
    max_us: float
    typical_us: float
    average_us: float
    stdev_us: float
    p99_us: float
    p99_9_us: float


def bandwidth_figures(
    size_bytes: int, posts: Sequence[tuple[int, int]], completions: Sequence[tuple[int, int]], *, with_peak: bool
) -> BandwidthFigures:
    """Compute bandwidth and message rate.

    Parameters
    ----------
    size_bytes : of each message
    posts, completions : instant in ns and number of messages, in the order of time; as many messages in both
    with_peak : whether to compute the peak, for at most ``MOST_FOR_PEAK`` messages

    Examples
    --------
    >>> found = bandwidth_figures(1000, [(0, 1), (15, 1)], [(20, 1), (40, 1)], with_peak=True)
    >>> found.average_bytes_per_s, found.peak_bytes_per_s, found.messages_per_s
    (50000000000.0, 50000000000.0, 50000000.0)
    """
    messages = sum(count for _, count in completions)
    duration_s = (completions[-1][0] - posts[0][0]) / _NS_PER_S
    peak = peak_rate(posts, completions) if with_peak and messages <= MOST_FOR_PEAK else None
    return BandwidthFigures(
        size_bytes=size_bytes,
        messages=messages,
        duration_s=duration_s,
        peak_bytes_per_s=None if peak is None else peak * size_bytes,
        average_bytes_per_s=messages * size_bytes / duration_s,
        messages_per_s=messages / duration_s,
    )


def peak_rate(posts: Sequence[tuple[int, int]], completions: Sequence[tuple[int, int]]) -> float:
    """Highest message rate between any post and any later completion, per second.

    From post i to completion j, messages i to j have been sent.

    Parameters
    ----------
    posts, completions : as in `bandwidth_figures`
    """
    done_ns = np.array([instant for instant, _ in completions], np.float64)
    done = np.cumsum([count for _, count in completions])  # messages completed by then
    best, before = 0.0, 0
    for instant, count in posts:
        sent, took_ns = done - before, done_ns - instant
        counts = (sent > 0) & (took_ns > 0)
        if counts.any():
            best = max(best, float((sent[counts] / took_ns[counts]).max()))
        before += count
    return best * _NS_PER_S


def latency_figures(size_bytes: int, samples_ns: Sequence[int], *, halves: bool) -> LatencyFigures:
    """Compute latencies.

    Parameters
    ----------
    size_bytes : of each message
    samples_ns : time of each round trip, at least one
    halves : whether the latency is half a round trip, as for WRITE and SEND

    Examples
    --------
    >>> found = latency_figures(2, [4000, 2000, 6000, 20000], halves=True)
    >>> found.min_us, found.typical_us, found.average_us, found.max_us, found.p99_us
    (1.0, 2.5, 4.0, 10.0, 10.0)
    """
    sorted_us = np.sort(np.array(samples_ns, np.float64)) / _NS_PER_US / (2 if halves else 1)
    count = len(sorted_us)

    def percentile(share: float) -> float:
        return float(sorted_us[max(0, math.ceil(share * count) - 1)])

    return LatencyFigures(
        size_bytes=size_bytes,
        messages=count,
        min_us=float(sorted_us[0]),
        max_us=float(sorted_us[-1]),
        typical_us=float(np.median(sorted_us)),
        average_us=float(sorted_us.mean()),
        stdev_us=float(sorted_us.std()),
        p99_us=percentile(0.99),
        p99_9_us=percentile(0.999),
    )
