/// What a run leaves behind: what the time of each actor went to, and what was communicated when.
#pragma once
#include "flow/state.hpp"

namespace weft::flow {

/// Time of an actor's first stream from `from_ps` to now; pieces of one kind that touch are one.
inline void spend(State& s, std::int32_t actor, std::int64_t label, Spent code, Ps from_ps, Ps to_ps) {
  if (to_ps <= from_ps) return;
  std::int64_t& last = s.last_segment[static_cast<std::size_t>(actor)];
  if (last >= 0) {
    SegmentRow& row = s.segments[static_cast<std::size_t>(last)];
    if (row.label == label && row.code == static_cast<std::int64_t>(code) && row.end_ps == from_ps) {
      row.end_ps = to_ps;
      return;
    }
  }
  last = static_cast<std::int64_t>(s.segments.size());
  s.segments.push_back({actor, label, static_cast<std::int64_t>(code), from_ps, to_ps});
}

/// A stream goes on: what it waited for is the label of the operation, or of what ended it.
inline void record_wait(State& s, const Stream& stream, std::int64_t own_label, const Cause& cause) {
  if (stream.number != 0) return;
  const std::int64_t label = own_label >= 0 ? own_label : cause.label;
  if (!cause.is_transfer) {
    spend(s, stream.actor, label, Spent::kWaiting, stream.since_ps, s.now_ps);
    return;
  }
  const Ps middle_ps = std::clamp(cause.began_at_ps, stream.since_ps, s.now_ps);
  spend(s, stream.actor, label, Spent::kWaiting, stream.since_ps, middle_ps);
  spend(s, stream.actor, label, Spent::kCommunicating, middle_ps, s.now_ps);
}

inline void record_message(State& s, const Lane& lane, const Message& message) {
  if (message.label < 0) return;
  const std::int32_t actor = s.streams[static_cast<std::size_t>(message.stream)].actor;
  const std::int64_t instances =
      lane.folded < 0 ? 1 : s.network.connections[static_cast<std::size_t>(lane.folded)].instances;
  s.activities.push_back({message.label, lane.channel, -1, actor, 2, instances, lane.inside ? 0 : 1, -1,
                          message.size_bytes, message.posted_at_ps, message.began_at_ps, message.delivered_at_ps});
}

}  // namespace weft::flow
