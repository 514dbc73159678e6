/// Messages inside a server: a rank's NVLink and PCIe, each with an egress that takes its lanes in turn, slice by
/// slice, and an ingress that all its senders share. Source: docs/models/packet-engine.md, "Inside a server". Leaves
/// out: packets, flow control and congestion on the path between two GPUs.
#pragma once
#include <algorithm>
#include <bit>

#include "packet/job.hpp"

namespace weftwork {

inline const GpuRow& gpu_row(const State& s, RankId rank) {
  return s.in.rank_gpu[rank];
}

/// Which link joins two ranks of one server.
inline Link link_between(const State& s, RankId source, RankId destination) {
  const std::int64_t domain = gpu_row(s, source).nvlink_domain;
  return domain >= 0 && domain == gpu_row(s, destination).nvlink_domain ? Link::kNvlink : Link::kPcie;
}

inline std::int64_t link_rate_bps(const State& s, RankId rank, Link link) {
  const GpuRow& row = gpu_row(s, rank);
  return link == Link::kNvlink ? row.nvlink_rate_bps : row.pcie_rate_bps;
}

inline Agenda& agenda_of_rank(State& s, RankId rank) {
  return s.agendas[s.host_of(rank)];
}

inline bool later_arrival(const ServerRank::Arrival& a, const ServerRank::Arrival& b) {
  return a.at_ps != b.at_ps ? a.at_ps > b.at_ps : a.order > b.order;
}

/// The first lane from `turn` on that has a slice, or none.
inline LaneId next_lane(const ServerLink& egress) {
  LaneId found;
  egress.ready.any_from(egress.turn < egress.lanes.next_id() ? egress.turn : LaneSlotId(0), [&](LaneSlotId slot) {
    found = egress.lanes[slot];
    return true;
  });
  return found;
}

/// An idle egress starts a slice, if one of its lanes has any.
inline void start_slice(State& s, RankId rank, Link link, Ps now_ps) {
  ServerLink& egress = s.server_ranks[rank].link(link);
  const LaneId id = next_lane(egress);
  if (id.is_none()) return;
  Lane& lane = s.lanes[id];
  const MessageId number = lane.head;
  const Message& message = s.messages[number];
  const GpuRow& sender = gpu_row(s, rank);
  const std::int64_t bytes = std::min(sender.slice_bytes, message.size_bytes - lane.started_bytes);
  lane.started_bytes += bytes;
  const bool last = lane.started_bytes == message.size_bytes;
  if (last) {
    lane.head = message.next;
    lane.started_bytes = 0;
    if (lane.head.is_none()) egress.ready.clear(lane.slot);
  }
  egress.turn = lane.slot + 1;
  egress.busy = true;
  const Ps left_at_ps = now_ps + serialisation_ps(bytes, link_rate_bps(s, rank, link));
  Agenda& agenda = agenda_of_rank(s, rank);
  agenda.push(left_at_ps, link_key(AgendaKind::kEgress, rank, link));
  const Ps latency_ps = link == Link::kNvlink ? sender.nvlink_latency_ps : sender.pcie_latency_ps;
  ServerRank& receiver = s.server_ranks[lane.destination_rank];
  Ps& ingress_free_at_ps = receiver.link(link).ingress_free_at_ps;
  ingress_free_at_ps = std::max(now_ps + latency_ps, ingress_free_at_ps) +
                       serialisation_ps(bytes, link_rate_bps(s, lane.destination_rank, link));
  if (!last) return;
  const Ps there_at_ps = std::max(ingress_free_at_ps, left_at_ps + latency_ps);
  receiver.arrivals.push_back({there_at_ps, receiver.started++, number});
  std::push_heap(receiver.arrivals.begin(), receiver.arrivals.end(), later_arrival);
  agenda.push(there_at_ps, rank_key(AgendaKind::kDelivery, lane.destination_rank, 0));
}

/// The egress has sent its slice.
inline void free_egress(State& s, RankId rank, Link link, Ps now_ps) {
  s.server_ranks[rank].link(link).busy = false;
  start_slice(s, rank, link, now_ps);
}

/// The next message for `rank` is there, whole.
inline void deliver_inside(State& s, RankId rank, Ps now_ps) {
  auto& arrivals = s.server_ranks[rank].arrivals;
  std::pop_heap(arrivals.begin(), arrivals.end(), later_arrival);
  Message& message = s.messages[arrivals.back().message];
  arrivals.pop_back();
  s.count.end_ps = std::max(s.count.end_ps, now_ps);
  s.delivered_bytes += message.size_bytes;
  deliver(s, s.flow_of(message), QueuePairId::none(), message, now_ps);
  message.acked_at_ps = now_ps;
  s.open_work -= 1;
  complete_posted(s, message.stream, now_ps);
}

inline LaneId open_lane(State& s, std::uint64_t flow, RankId source, RankId destination) {
  if (s.server_ranks.empty()) s.server_ranks.resize(s.in.rank_program.size());
  const LaneId id = s.lanes.next_id();
  ServerLink& egress = s.server_ranks[source].link(link_between(s, source, destination));
  Lane& lane = s.lanes.emplace_back();
  lane.flow = flow;
  lane.destination_rank = destination;
  lane.slot = egress.lanes.next_id();
  egress.lanes.push_back(id);
  egress.ready.resize(egress.lanes.size());
  s.lane_of_flow.emplace(flow, id);
  return id;
}

/// Post a message between two ranks of one server.
inline void post_inside(State& s, StreamId stream, RankId destination, std::int64_t channel, std::int64_t size_bytes,
                        Ps now_ps) {
  const RankId source = s.streams[stream].rank;
  const std::uint64_t flow = flow_identity(source.value, destination.value, channel);
  const auto found = s.lane_of_flow.find(flow);
  const LaneId id = found != s.lane_of_flow.end() ? found->second : open_lane(s, flow, source, destination);
  Lane& lane = s.lanes[id];
  const MessageId number = s.messages.next_id();
  Message& message = s.messages.emplace();
  s.open_work += 1;
  message.size_bytes = size_bytes;
  message.posted_at_ps = now_ps;
  message.lane = id;
  message.stream = stream;
  message.op = static_cast<std::int32_t>(s.streams[stream].op);
  message.ordinal = lane.messages++;
  if (!lane.last.is_none()) s.messages[lane.last].next = number;
  lane.last = number;
  if (lane.head.is_none()) lane.head = number;
  const Link link = link_between(s, source, destination);
  ServerLink& egress = s.server_ranks[source].link(link);
  egress.ready.set(lane.slot);
  if (!egress.busy) start_slice(s, source, link, now_ps);
}

}  // namespace weftwork
