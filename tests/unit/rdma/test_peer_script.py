"""Scripts of the peer: mistakes with their lines, the schema for editors, the words of the workload."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.base.errors import ConfigError
from weftwork.rdma.peer.reading import SCENARIOS, find_script, parse_script, read_script
from weftwork.rdma.peer.workload import workload_text

HEAD = "schema: 1\nname: tried\nshows: It is tried.\nsource: own\n"


EXPECT = "expect:\n  - {says: It works., see: statuses, are: [SUCCESS]}\n"


def mistakes(body: str) -> list[tuple[str, int | None, str, str | None]]:
    end = "" if "end:" in body or "peer:" in body else "end: {does: write}\n"
    with pytest.raises(ConfigError) as wrong:
        parse_script(HEAD + end + body, "tried.yaml")
    return [(one.path, one.line, one.text, one.fix) for one in wrong.value.mistakes]


def test_all_mistakes_are_told_at_once_with_lines_and_fixes() -> None:
    body = (
        "end: {does: wirte, siz: 4KiB}\n"
        "rules:\n"
        "  - {from: end, packet: requst, do: drop}\n"
        "  - {from: peer, do: delay, by: soon}\n"
        "expect:\n"
        "  - {says: It works., see: statuses, are: [SUCESS]}\n"
    )
    found = mistakes(body)
    assert [(path, line, fix and str(fix)) for path, line, _, fix in found] == [
        ("end.siz", 5, "size"),
        ("end.does", 5, "write"),
        ("rules.0.packet", 7, "request"),
        ("rules.1.by", 8, None),
        ("expect.0.are", 10, "SUCCESS"),
    ]


@pytest.mark.parametrize(
    ("body", "path", "text"),
    [
        ("", "expect", "missing, wanted one expectation"),
        (f"rules:\n  - {{from: end, do: set}}\n{EXPECT}", "rules.0.set", "wanted the fields"),
        (f"rules:\n  - {{from: end, do: answer}}\n{EXPECT}", "rules.0.answer", "wanted the answer"),
        (f"rules:\n  - {{from: end, do: inject}}\n{EXPECT}", "rules.0", "neither of answer and set"),
        (
            f"rules:\n  - {{from: end, do: inject, set: {{packet: write-only}}, answer: {{kind: ack}}}}\n{EXPECT}",
            "rules.0",
            "both of answer and set",
        ),
        (f"rules:\n  - {{from: end, do: inject, set: {{pad: 1}}}}\n{EXPECT}", "rules.0.set.packet", "missing"),
        (f"rules:\n  - {{from: end, do: drop, set: {{pad: 1}}}}\n{EXPECT}", "rules.0.set", "only with set or inject"),
        (
            f"rules:\n  - {{from: end, do: drop, answer: {{kind: ack}}}}\n{EXPECT}",
            "rules.0.answer",
            "only with answer or inject",
        ),
        (
            f"rules:\n  - {{from: peer, do: answer, answer: {{kind: ack}}}}\n{EXPECT}",
            "rules.0.from",
            "the peer answers packets of the end",
        ),
        (f"rules:\n  - {{from: end, do: drop, copies: 2}}\n{EXPECT}", "rules.0.copies", "only with duplicate"),
        (
            f"rules:\n  - {{from: end, do: answer, answer: {{kind: ack, timer: 2}}}}\n{EXPECT}",
            "rules.0.answer.timer",
            "only with rnr-nak",
        ),
        (f"peer:\n  - {{do: write}}\n{EXPECT}", "end.offers", "wanted the memory for the peer's write"),
        (f"peer:\n  - {{do: inject}}\n{EXPECT}", "peer.0.set.packet", "missing"),
        (f"peer:\n  - {{do: send, set: {{pad: 1}}}}\n{EXPECT}", "peer.0.set", "means nothing with do: send"),
        ("peer:\n" + "  - {do: send, times: 1000}\n" * 11 + EXPECT, "peer", "11,000 requests in total"),
        (f"end: {{does: write, size: 16MiB, times: 5}}\n{EXPECT}", "end.times", "83,886,080 bytes in total"),
        (f"end: {{receives: 1}}\n{EXPECT}", "end.does", "who ends the connection?"),
        ("expect:\n  - {says: S., see: packets}\n", "expect.0", "found none of least, most"),
        ("expect:\n  - {says: S., see: state, is: written}\n", "expect.0.is", "a state such as RTS"),
        ("expect:\n  - {says: S., see: memory, is: RTS}\n", "expect.0.is", "unchanged or written"),
        ("expect:\n  - {says: S., see: packets, within: 1s}\n", "expect.0.after", "the packet that within counts from"),
        ("expect:\n  - {says: S., see: rate, share_most: 1}\n", "expect.0.after", "divides the two windows"),
        (
            "expect:\n  - {says: S., see: state, is: RTS, after: {from: end}}\n",
            "expect.0.after",
            "only with packets or rate",
        ),
    ],
)
def test_a_mistake(body: str, path: str, text: str) -> None:
    ((found, _, words, _),) = mistakes(body)
    assert found == path
    assert text in words


@pytest.mark.parametrize("text", ["", "- a list", "word"])
def test_a_file_that_is_no_mapping(text: str) -> None:
    with pytest.raises(ConfigError, match="wanted a mapping that begins with schema: 1"):
        parse_script(text, "tried.yaml")


def test_text_that_is_no_yaml() -> None:
    with pytest.raises(ConfigError, match="not YAML"):
        parse_script("rules: [", "tried.yaml")


def test_names_and_files_are_found() -> None:
    assert find_script("lost-last") == SCENARIOS / "lost-last.yaml"
    assert find_script("./mine.yaml") == Path("mine.yaml")
    with pytest.raises(ConfigError) as wrong:
        find_script("lost-lost")
    assert wrong.value.mistakes[0].fix == "lost-last"


def test_the_workload_in_words() -> None:
    text = workload_text(read_script(find_script("lost-middle")))
    assert text == (
        "connect with path MTU 1024, timeout 10, retry count 7 and 4 responder resources; post 1 x WRITE of 16KiB"
        " to the memory whose address, rkey and length the private data of the REP holds, then disconnect"
    )
    offers = workload_text(read_script(find_script("read-of-write-only")))
    assert "offer 4KiB of memory with remote write: address (8 bytes), length (8 bytes) and rkey (4 bytes)" in offers
    assert offers.endswith("wait until the peer disconnects")
    assert "post 1 receive of 4KiB" in workload_text(read_script(find_script("send-too-long")))
    assert "use DCQCN for congestion control" in workload_text(read_script(find_script("cnp-flood")))
