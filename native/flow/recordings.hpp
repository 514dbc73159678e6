/// What a flow run tells: segments of streams, transfers, milestones, and bytes over time. Not part of the model:
/// nothing that a flow meets depends on it.
#pragma once
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "flow/bins.hpp"
#include "flow/ids.hpp"
#include "rows/flow_outcome.hpp"

namespace weftwork::flow {

struct Recordings {
  bool has_details = true;             // segments and activities are recorded
  std::vector<std::int64_t> finished;  // activities whose flows end at this instant
  std::vector<SegmentRow> segments;
  IdVector<ActorId, std::int64_t> last_segment;  // -1: none
  std::vector<ActivityRow> activities;
  std::vector<MilestoneRow> milestones;
  IdVector<ActivityCell, double> done;  // of a folded network: amount; see done_of
  Bins tier_bytes{0, 0}, tier_flows{0, 0}, port_bytes{0, 0};
};

}  // namespace weftwork::flow
