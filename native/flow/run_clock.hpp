/// Time of a flow run, and what is to happen beside the ends of flows.
/// Invariants: `now_ps` never runs back; no row of the agenda is earlier than now, and rows of one instant come in the
/// order in which they were put there.
#pragma once
#include <cstddef>
#include <cstdint>
#include <queue>

#include "base/clock.hpp"
#include "base/ids.hpp"

namespace weftwork::flow {

enum class Event : std::uint8_t { kFlowEnds, kDelivery, kAck, kEgress, kCallBegins, kCallEnds, kNotify, kStream };

struct AgendaRow {
  Ps at_ps;
  std::uint64_t order;
  Event event;
  std::int64_t what, detail;
  bool operator<(const AgendaRow& other) const {  // for a heap with the earliest on top
    return at_ps != other.at_ps ? at_ps > other.at_ps : order > other.order;
  }
};

struct RunClock {
  std::priority_queue<AgendaRow> agenda;
  std::uint64_t order = 0;
  Ps now_ps = 0, end_ps = 0;
  std::int64_t events = 0, solves = 0;
  std::size_t next_instant = 0;

  void push(Ps at_ps, Event event, std::int64_t what, std::int64_t detail = 0) {
    agenda.push({at_ps, order++, event, what, detail});
  }
  template <typename Kind>
  void push(Ps at_ps, Event event, Id<Kind> what, std::int64_t detail = 0) {
    push(at_ps, event, std::int64_t{what.value}, detail);
  }
};

}  // namespace weftwork::flow
