"""Measurements of two software NICs: bandwidth, message rate and latency, as perftest defines them."""
