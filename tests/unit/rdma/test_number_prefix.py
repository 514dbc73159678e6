"""The top eight bits of numbers: whoever draws a number and whoever steers by it agree."""

from __future__ import annotations

import random

import pytest

from weftwork.rdma.drivers.slots import addressee
from weftwork.rdma.nic import RdmaNic
from weftwork.rdma.number_prefix import COMM_ID_BITS, PREFIXES, QP_NUM_BITS, behind_prefix, low_numbers, prefix_of


@pytest.mark.parametrize("bits", [QP_NUM_BITS, COMM_ID_BITS])
def test_a_number_keeps_its_low_bits_behind_a_prefix(bits: int) -> None:
    draw = random.Random(bits)
    for _ in range(200):
        prefix, number = draw.randrange(PREFIXES), draw.getrandbits(bits)
        made = behind_prefix(prefix, number, bits)
        assert made.bit_length() <= bits
        assert made >> (bits - 8) == prefix
        assert made % low_numbers(bits) == number % low_numbers(bits)


@pytest.mark.parametrize("prefix", [0, 1, 0x7F, 0xFF])
def test_the_number_of_a_queue_pair_names_the_slot_of_its_process(prefix: int) -> None:
    """The byte of the packet by which the system steers, the watch of processes, and the NIC that draws."""
    nic = RdmaNic(b"\x7f\0\0\1", number_prefix=prefix)
    for _ in range(50):
        qp_num = nic._draw_qp_num()
        assert prefix_of(qp_num) == prefix
        header = bytes(5) + qp_num.to_bytes(3, "big") + bytes(4)
        assert addressee(header).slot == prefix
