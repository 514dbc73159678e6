"""What a wire format is handed: places of packets in bytes, and notes on what no transport has a field for."""

from __future__ import annotations

import numpy as np

from weftwork.spec.transport import Transport
from weftwork.spec.wire_format import CaptureFacts, CommonNotes, PostedMessages, all_common


def test_a_packets_position_counts_the_bytes_before_it() -> None:
    posted = PostedMessages(np.array([10_000, 1, 8_192]), 4_096)
    assert [posted.position_bytes(seq) for seq in range(7)] == [0, 4_096, 8_192, 10_000, 10_001, 14_097, 18_193]
    assert [posted.place(seq).is_first for seq in range(6)] == [True, False, False, True, True, False]
    assert posted.place(3) == (True, True, 1, 10_000)


def test_a_format_without_notes_of_its_own_names_what_no_transport_has_a_field_for() -> None:
    common = CommonNotes(copies="copies", left_out="2 CNPs: left out")
    facts = CaptureFacts(rows={}, messages=np.zeros(0), transport=Transport(), common=common)
    assert [text for text in all_common(facts) if text] == ["copies", "2 CNPs: left out"]
