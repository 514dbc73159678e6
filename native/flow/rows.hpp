/// Rows in which the flow engine tells what happened.
#pragma once
#include <cstdint>

namespace weftwork::flow {

struct SegmentRow {  // SEGMENT_DTYPE
  std::int64_t actor, label, code, start_ps, end_ps;
};

struct ActivityRow {  // ACTIVITY_DTYPE
  std::int64_t label, channel, pattern, actor, ranks, instances, flows, operation, size_bytes, posted_ps, start_ps,
      end_ps;
};

struct MilestoneRow {
  std::int64_t actor, name, at_ps;
};

/// What went over a port: packets may be a fraction where a message was spread.
struct Carried {
  double bytes, packets;
};

}  // namespace weftwork::flow
