"""The conformance kit of collectives finds what is wrong: each test breaks a right algorithm in one way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from weftwork.spec.job import Await, Loop, Notify, Operation, Receive, Send
from weftwork.testing.collectives import check_collective
from weftwork.workload.collectives.algorithm import Algorithm, Schedule
from weftwork.workload.collectives.call import Call
from weftwork.workload.collectives.catalogue import ALGORITHMS

CALL = Call(operation="all-reduce", ranks=4, size_bytes=4_001, channels=2, chunks=2)


def changed(change: Callable[[Operation], Operation | None], algorithm: str = "ring") -> Algorithm:
    """The algorithm with every operation of its streams changed, or taken away."""

    def through(operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
        found: list[Operation] = []
        for operation in operations:
            if isinstance(operation, Loop):
                found.append(replace(operation, body=through(operation.body)))
            else:
                other = change(operation)
                found += [] if other is None else [other]
        return tuple(found)

    def broken(call: Call) -> Schedule:
        schedule = whole.operations[call.operation](call)
        programs = tuple(
            replace(program, streams=tuple(through(stream) for stream in program.streams))
            for program in schedule.programs
        )
        return replace(schedule, programs=programs)

    whole = ALGORITHMS[algorithm]
    return replace(whole, operations=dict.fromkeys(whole.operations, broken))


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    assert check_collective(ALGORITHMS["ring"], CALL) == []
    assert check_collective(changed(lambda operation: operation), CALL) == []


def test_a_part_that_is_stored_where_it_had_to_be_added_is_found() -> None:
    broken = changed(lambda op: replace(op, reduce=False) if isinstance(op, Receive) else op)
    assert any("wanted 1111" in text for text in check_collective(broken, CALL))


def test_a_part_that_is_added_where_it_had_to_be_stored_is_found() -> None:
    broken = changed(lambda op: replace(op, reduce=True) if isinstance(op, Receive) else op)
    assert any("twice" in text for text in check_collective(broken, CALL))


def test_a_wrong_part_is_found() -> None:
    def change(op: Operation) -> Operation:
        if isinstance(op, Send) and op.size.digits[0].shift == -1:
            return replace(op, size=replace(op.size, digits=(replace(op.size.digits[0], shift=-2),)))
        return op

    assert check_collective(changed(change), CALL)


def test_a_send_that_does_not_wait_for_what_it_passes_on_is_found() -> None:
    # the counter of pieces that have come is never waited for, so that partial sums go round
    broken = changed(lambda op: None if isinstance(op, Await) and op.token == 1 else op)
    assert check_collective(broken, CALL, seeds=range(4))


def test_a_rank_that_waits_for_ever_is_found() -> None:
    broken = changed(lambda op: None if isinstance(op, Notify) and op.token == 1 else op)
    (text,) = check_collective(broken, CALL, seeds=(0,))
    assert "wait for ever" in text


def test_a_message_that_nobody_receives_is_found() -> None:
    direct = ALGORITHMS["direct"]
    call = Call(operation="send-receive", ranks=4, size_bytes=100)

    def twice(call: Call) -> Schedule:
        schedule = direct.operations[call.operation](call)
        sends = schedule.programs[0].streams[1]
        program = replace(schedule.programs[0], streams=(*schedule.programs[0].streams, (sends[0].body[1],)))
        return replace(schedule, programs=(program,))

    broken = replace(direct, operations={"send-receive": twice})
    assert any("left over" in text for text in check_collective(broken, call))


@pytest.mark.parametrize("field", ["total_bytes", "network_bytes", "sent_bytes", "network_received_bytes"])
def test_a_closed_form_that_does_not_hold_is_found(field: str) -> None:
    ring = ALGORITHMS["ring"]

    def wrong(call: Call) -> object:
        said = ring.traffic(call)
        return replace(said, **{field: getattr(said, field) + 400})

    (text,) = check_collective(replace(ring, traffic=wrong), CALL, full=False)
    assert "closed form" in text


def test_shares_that_do_not_add_up_are_found() -> None:
    ring = ALGORITHMS["ring"]
    broken = replace(ring, operations={"all-reduce": lambda call: replace(
        ring.operations["all-reduce"](replace(call, size_bytes=call.size_bytes - 1)), call=call
    )})  # fmt: skip
    assert "the shares have 4,000 bytes, wanted 4,001" in check_collective(broken, CALL)
