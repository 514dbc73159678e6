/// Messages inside a server: a rank's NVLink and PCIe, each with an egress that takes its lanes in turn, slice by
/// slice, and an ingress that all its senders share. Source: docs/models/packet-engine.md, "Inside a server". Leaves
/// out: packets, flow control and congestion on the path between two GPUs.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/clock.hpp"
#include "base/flow_identity.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/agenda.hpp"
#include "packet/ids.hpp"
#include "packet/job.hpp"
#include "packet/job_records.hpp"
#include "packet/job_state.hpp"
#include "packet/schedule.hpp"
#include "packet/server_records.hpp"
#include "packet/setup.hpp"
#include "packet/state.hpp"
#include "rows/job.hpp"

namespace weftwork {

inline const GpuRow& gpu_row(const Setup& setup, RankId rank) {
  return setup.in.rank_gpu[rank];
}

/// Which link joins two ranks of one server.
inline Link link_between(const Setup& setup, RankId source, RankId destination) {
  const std::int64_t domain = gpu_row(setup, source).nvlink_domain;
  return domain >= 0 && domain == gpu_row(setup, destination).nvlink_domain ? Link::kNvlink : Link::kPcie;
}

inline std::int64_t link_rate_bps(const Setup& setup, RankId rank, Link link) {
  const GpuRow& row = gpu_row(setup, rank);
  return link == Link::kNvlink ? row.nvlink_rate_bps : row.pcie_rate_bps;
}

inline Agenda& agenda_of_rank(const Setup& setup, Schedule& schedule, RankId rank) {
  return schedule.agendas[setup.host_of(rank)];
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
inline void start_slice(const Setup& setup, Schedule& schedule, JobState& job, RankId rank, Link link, Ps now_ps) {
  ServerLink& egress = job.server_ranks[rank].link(link);
  const LaneId id = next_lane(egress);
  if (id.is_none()) return;
  Lane& lane = job.lanes[id];
  const MessageId number = lane.head;
  const Message& message = job.messages[number];
  const GpuRow& sender = gpu_row(setup, rank);
  const std::int64_t bytes = std::min(sender.slice_bytes, message.size_bytes - lane.started_bytes);
  must_hold(message.lane == id, Invariant::server_link_sends_every_slice, "at_ps rank link message lane", now_ps, rank,
            link, number, id);
  must_hold(!egress.busy, Invariant::server_link_sends_every_slice, "at_ps rank link message", now_ps, rank, link,
            number);
  lane.started_bytes += bytes;
  must_hold((bytes > 0) == (message.size_bytes > 0) && lane.started_bytes <= message.size_bytes,
            Invariant::server_link_sends_every_slice, "at_ps rank message slice_bytes started_bytes size_bytes", now_ps,
            rank, number, bytes, lane.started_bytes, message.size_bytes);
  const bool last = lane.started_bytes == message.size_bytes;
  if (last) {
    lane.head = message.next;
    lane.started_bytes = 0;
    if (lane.head.is_none()) egress.ready.clear(lane.slot);
  }
  egress.turn = lane.slot + 1;
  egress.busy = true;
  const Ps left_at_ps = now_ps + serialisation_ps(bytes, link_rate_bps(setup, rank, link));
  Agenda& agenda = agenda_of_rank(setup, schedule, rank);
  agenda.push(left_at_ps, link_key(AgendaKind::kEgress, rank, link));
  const Ps latency_ps = link == Link::kNvlink ? sender.nvlink_latency_ps : sender.pcie_latency_ps;
  ServerRank& receiver = job.server_ranks[lane.destination_rank];
  Ps& ingress_free_at_ps = receiver.link(link).ingress_free_at_ps;
  ingress_free_at_ps = std::max(now_ps + latency_ps, ingress_free_at_ps) +
                       serialisation_ps(bytes, link_rate_bps(setup, lane.destination_rank, link));
  if (!last) return;
  const Ps there_at_ps = std::max(ingress_free_at_ps, left_at_ps + latency_ps);
  must_hold(there_at_ps >= left_at_ps && left_at_ps >= now_ps, Invariant::time_never_runs_back,
            "at_ps left_at_ps there_at_ps rank", now_ps, left_at_ps, there_at_ps, rank);
  receiver.arrivals.push_back({there_at_ps, receiver.started++, number});
  std::push_heap(receiver.arrivals.begin(), receiver.arrivals.end(), later_arrival);
  agenda.push(there_at_ps, rank_key(AgendaKind::kDelivery, lane.destination_rank, 0));
}

/// The egress has sent its slice.
inline void free_egress(const Setup& setup, Schedule& schedule, JobState& job, RankId rank, Link link, Ps now_ps) {
  ServerLink& egress = job.server_ranks[rank].link(link);
  must_hold(egress.busy, Invariant::server_link_sends_every_slice, "at_ps rank link", now_ps, rank, link);
  must_hold(egress.turn > LaneSlotId(0) && egress.turn <= egress.lanes.next_id(),
            Invariant::server_link_sends_every_slice, "at_ps rank link turn lanes", now_ps, rank, link, egress.turn,
            egress.lanes.size());
  egress.busy = false;
  start_slice(setup, schedule, job, rank, link, now_ps);
}

/// The next message for `rank` is there, whole.
inline void deliver_inside(State& s, RankId rank, Ps now_ps) {
  auto& arrivals = s.job.server_ranks[rank].arrivals;
  must_hold(!arrivals.empty() && arrivals.front().at_ps == now_ps, Invariant::packet_arrives_at_its_instant,
            "at_ps rank arrivals", now_ps, rank, arrivals.size());
  std::pop_heap(arrivals.begin(), arrivals.end(), later_arrival);
  Message& message = s.job.messages[arrivals.back().message];
  must_hold(
      message.queue_pair.is_none() && !message.lane.is_none() && s.job.lanes[message.lane].destination_rank == rank,
      Invariant::server_link_sends_every_slice, "at_ps rank message lane", now_ps, rank, arrivals.back().message,
      message.lane);
  arrivals.pop_back();
  s.recordings.count.end_ps = std::max(s.recordings.count.end_ps, now_ps);
  s.job.delivered_bytes += message.size_bytes;
  deliver(s.setup, s.schedule, s.job, flow_of(s.hosts, s.job, message), QueuePairId::none(), message, now_ps);
  message.acked_at_ps = now_ps;
  s.job.open_work -= 1;
  must_hold(s.job.open_work >= 0, Invariant::work_is_counted_once, "at_ps rank open", now_ps, rank, s.job.open_work);
  complete_posted(s.setup, s.schedule, s.job, message.stream, now_ps);
}

inline LaneId open_lane(const Setup& setup, JobState& job, std::uint64_t flow, RankId source, RankId destination) {
  if (job.server_ranks.empty()) job.server_ranks.resize(setup.in.rank_program.size());
  const LaneId id = job.lanes.next_id();
  ServerLink& egress = job.server_ranks[source].link(link_between(setup, source, destination));
  Lane& lane = job.lanes.emplace_back();
  lane.flow = flow;
  lane.destination_rank = destination;
  lane.slot = egress.lanes.next_id();
  egress.lanes.push_back(id);
  egress.ready.resize(egress.lanes.size());
  job.lane_of_flow.emplace(flow, id);
  return id;
}

/// Post a message between two ranks of one server.
inline void post_inside(const Setup& setup, Schedule& schedule, JobState& job, StreamId stream, RankId destination,
                        std::int64_t channel, std::int64_t size_bytes, Ps now_ps) {
  const RankId source = job.streams[stream].rank;
  const std::uint64_t flow = flow_identity(source.value, destination.value, channel);
  const auto found = job.lane_of_flow.find(flow);
  const LaneId id = found != job.lane_of_flow.end() ? found->second : open_lane(setup, job, flow, source, destination);
  Lane& lane = job.lanes[id];
  const MessageId number = job.messages.next_id();
  Message& message = job.messages.emplace();
  job.open_work += 1;
  message.size_bytes = size_bytes;
  message.posted_at_ps = now_ps;
  message.lane = id;
  message.stream = stream;
  message.op = static_cast<std::int32_t>(job.streams[stream].op);
  message.ordinal = lane.messages++;
  must_hold(size_bytes >= 0 && lane.destination_rank == destination, Invariant::server_link_sends_every_slice,
            "at_ps source destination size_bytes lane", now_ps, source, destination, size_bytes, id);
  must_hold(lane.last.is_none() == (message.ordinal == 0), Invariant::message_delivered_once,
            "at_ps source destination message ordinal", now_ps, source, destination, number, message.ordinal);
  must_hold(!lane.head.is_none() || lane.started_bytes == 0, Invariant::server_link_sends_every_slice,
            "at_ps source destination started_bytes", now_ps, source, destination, lane.started_bytes);
  if (!lane.last.is_none()) job.messages[lane.last].next = number;
  lane.last = number;
  if (lane.head.is_none()) lane.head = number;
  const Link link = link_between(setup, source, destination);
  ServerLink& egress = job.server_ranks[source].link(link);
  egress.ready.set(lane.slot);
  if (!egress.busy) start_slice(setup, schedule, job, source, link, now_ps);
}

}  // namespace weftwork
