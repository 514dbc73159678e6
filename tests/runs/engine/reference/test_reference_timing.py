"""One packet to the picosecond, and who comes first at one instant."""

from helpers.tiny import Message, packet_input_of, pair, sends

from weftwork.engine.reference.simulation import run


def test_progress_tells_simulated_time() -> None:
    told: list[tuple[int, int, int]] = []
    size_bytes = 20_000_000
    messages = [Message(source=0, destination=1, size_bytes=size_bytes, channel=channel) for channel in (0, 1)]
    run(packet_input_of(pair(), sends(2, messages)), on_progress=lambda *now: told.append(now))
    assert told == sorted(told)
    assert told[-1][1] > 10_000
    assert told[-1][2] in {0, size_bytes, 2 * size_bytes}


def test_an_interrupt_ends_the_run_with_what_there_is() -> None:
    def interrupt(now_ps: int, *_: int) -> None:
        if now_ps > 0:
            raise KeyboardInterrupt

    messages = [Message(source=0, destination=1, size_bytes=20_000_000)]
    outcome = run(packet_input_of(pair(), sends(2, messages)), on_progress=interrupt)
    assert not outcome.complete
    assert outcome.counters["packet_hops"] > 0
