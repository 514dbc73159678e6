"""Each invariant of the packet engine is declared, asserted, documented, and has a planted mistake to notice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from helpers.invariants import assertions, assertions_by_function, assertions_in, mistakes, table

from weftwork.base.errors import EngineError
from weftwork.engine import _native, packet

ROOT = Path(__file__).parents[3]
NAMES = list(_native.invariants())
WANTED_PER_FUNCTION = 2  # chosen: what goes in and what comes out


def test_every_invariant_is_asserted_and_every_asserted_one_is_declared() -> None:
    assert {invariant for _, invariant in assertions()} == set(NAMES)


def test_every_invariant_has_one_planted_mistake() -> None:
    found = mistakes()
    assert sorted(found) == sorted(NAMES)
    assert {name: len(found[name]) for name in NAMES} == dict.fromkeys(NAMES, 1)


def test_a_planted_mistake_is_made_in_the_engine_that_asserts_it() -> None:
    for planted in mistakes().values():
        assert all(change.file.startswith("native/packet/") for mutant in planted for change in mutant.changes)


def test_the_page_has_the_list_of_the_core() -> None:
    page = (ROOT / "docs/dev/invariants.md").read_text(encoding="utf-8")
    assert table() in page, f"docs/dev/invariants.md wants this table:\n{table()}"


def test_an_invariant_is_a_sentence_that_a_report_can_end() -> None:
    for name, sentence in _native.invariants().items():
        assert name.islower()
        assert sentence[0].islower()
        assert not sentence.endswith(".")


def test_hand_overs_are_asserted_from_more_than_one_side() -> None:
    by_file = Counter(file for file, _ in assertions())
    for file in (
        "receiver.hpp",
        "recovery.hpp",
        "pipe.hpp",
        "departures.hpp",
        "admission.hpp",
        "window.hpp",
        "packet.hpp",
    ):
        assert by_file[file] >= 4, file


SOURCE = """\
namespace weftwork {
inline constexpr int kMany[2] = {1, 2};  // must_hold(in a comment
struct Kept {
  explicit Kept(int count) : count_(count) { must_hold(count > 0, Invariant::first, "count {", count); }
  [[nodiscard]] int twice() const { return 2 * count_; }
  int count_;
};
template <typename Visit>
inline auto handle(Kept& kept, Visit (*visit)(int)) -> int {
  must_hold(kept.count_ > 0, Invariant::first, "count", kept.count_);
  const auto inner = [&](int more) {
    if (more > 1) {
      must_hold(more < 9, Invariant::second, "more", more);
    }
  };
  for (const int each : {1, 2}) inner(each);
  must_hold(kept.count_ < 9, Invariant::second, "count", kept.count_);
}
bool Engine::step(double budget_s) {
  must_hold(budget_s > 0, Invariant::first, "");
}
}  // namespace weftwork
"""


def test_assertions_are_counted_by_the_function_that_has_them() -> None:
    assert dict(assertions_in(SOURCE)) == {(4, "Kept"): 1, (9, "handle"): 3, (19, "Engine::step"): 1}


def test_a_function_that_asserts_does_so_twice_on_average() -> None:
    counts = assertions_by_function()
    assert sum(counts.values()) == len(assertions())
    mean = sum(counts.values()) / len(counts)
    assert mean >= WANTED_PER_FUNCTION, (
        f"{sum(counts.values())} assertions in {len(counts)} functions are {mean:.2f} a function; see what goes in, and"
        f" what comes out, of {[name for (_, _, name), count in counts.items() if count == 1]}"
    )


def test_a_broken_invariant_is_an_error_of_weftwork_that_says_what_to_send(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken:
        def __init__(self, _arrays: object) -> None:
            raise _native.BrokenInvariant("time_never_runs_back: nothing is set to; at_ps 7")

    monkeypatch.setattr(_native, "PacketEngine", Broken)
    with pytest.raises(EngineError) as caught:
        packet._advanced({}, None)
    assert str(caught.value) == (
        "the run has ended, since an invariant of the packet engine does not hold: time_never_runs_back: nothing is set"
        " to; at_ps 7. Send this text, the scenario with the files that it names, and the seed of the run"
    )
