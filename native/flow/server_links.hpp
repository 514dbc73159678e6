/// Messages inside a server, as the packet engine has them: lanes take turns on the sender's port slice by slice, and
/// slices on the receiver's in the order in which they arrive. Only where messages are posted by themselves; in a
/// network of activities what is inside a server is shared like any other link.
/// Source: docs/models/packet-engine.md, "Inside a server".
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "flow/ids.hpp"
#include "flow/job_state.hpp"
#include "flow/links.hpp"
#include "flow/record.hpp"
#include "flow/run_clock.hpp"
#include "flow/setup.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

/// Which of a rank's two links a lane takes.
inline bool is_nvlink(const Setup& setup, const Lane& lane) {
  return share_nvlink(setup.in.job.rank_gpu[lane.source], setup.in.job.rank_gpu[lane.destination]);
}

inline ServerPortId server_port(RankId rank, bool nvlink) {
  return ServerPortId(2 * rank.value + (nvlink ? 0 : 1));
}

/// The next slice of an idle egress: of the first lane with one, in cyclic order after the lane served last.
inline void start_slice(const Setup& setup, JobState& job, RunClock& clock, ServerPortId port) {
  Egress& egress = job.egresses[port];
  egress.busy = false;
  const std::size_t lanes = egress.lanes.size();
  std::size_t turn = 0;
  while (turn < lanes && job.lanes[egress.lanes[(egress.next + turn) % lanes]].head.is_none()) ++turn;
  if (turn == lanes) return;
  const std::size_t place = (egress.next + turn) % lanes;
  egress.next = (place + 1) % lanes;
  Lane& lane = job.lanes[egress.lanes[place]];
  const MessageId number = lane.head;
  Message& message = job.messages[number];
  const GpuRow& from = setup.in.job.rank_gpu[lane.source];
  const GpuRow& to = setup.in.job.rank_gpu[lane.destination];
  const bool nvlink = port.value % 2 == 0;
  if (lane.sent_bytes == 0) message.began_at_ps = clock.now_ps;
  const std::int64_t bytes = std::min(from.slice_bytes, message.size_bytes - lane.sent_bytes);
  lane.sent_bytes += bytes;
  const Ps out_ps = serialisation_ps(bytes, nvlink ? from.nvlink_rate_bps : from.pcie_rate_bps);
  const Ps in_ps = serialisation_ps(bytes, nvlink ? to.nvlink_rate_bps : to.pcie_rate_bps);
  const Ps latency_ps = nvlink ? from.nvlink_latency_ps : from.pcie_latency_ps;
  Ps& ingress_free_ps = job.ingress_free_ps[server_port(lane.destination, nvlink)];
  ingress_free_ps = std::max(clock.now_ps + latency_ps, ingress_free_ps) + in_ps;
  egress.busy = true;
  clock.push(clock.now_ps + out_ps, Event::kEgress, port);
  if (lane.sent_bytes < message.size_bytes) return;
  clock.push(std::max(ingress_free_ps, clock.now_ps + out_ps + latency_ps), Event::kDelivery, number);
  lane.sent_bytes = 0;
  lane.head = message.next;
  if (lane.head.is_none()) lane.tail = MessageId::none();
}

/// A message of a lane inside a server has been appended.
inline void post_inside(const Setup& setup, JobState& job, RunClock& clock, LaneId index) {
  Lane& lane = job.lanes[index];
  const ServerPortId port = server_port(lane.source, is_nvlink(setup, lane));
  Egress& egress = job.egresses[port];
  if (!lane.queued) egress.lanes.push_back(index);
  lane.queued = true;
  if (!egress.busy) start_slice(setup, job, clock, port);
}

}  // namespace weftwork::flow
