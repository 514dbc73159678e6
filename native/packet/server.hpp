/// Messages inside a server: a rank's NVLink and PCIe, each with an egress that takes its lanes in turn, chunk by
/// chunk, and an ingress that all its senders share. Source: docs/models/packet-engine.md, "Inside a server". Leaves
/// out: packets, flow control and congestion on the way between two GPUs.
#pragma once
#include <algorithm>
#include <bit>

#include "packet/job.hpp"

namespace weftwork {

enum Link : std::size_t { kNvlink, kPcie };

inline const GpuRow& gpu_row(const State& s, std::int64_t rank) {
  return s.in.rank_gpu[static_cast<std::size_t>(rank)];
}

/// Which link joins two ranks of one server.
inline std::size_t link_between(const State& s, std::int64_t source, std::int64_t destination) {
  const std::int64_t domain = gpu_row(s, source).domain;
  return domain >= 0 && domain == gpu_row(s, destination).domain ? kNvlink : kPcie;
}

inline std::int64_t link_rate_bps(const State& s, std::int64_t rank, std::size_t link) {
  const GpuRow& row = gpu_row(s, rank);
  return link == kNvlink ? row.nvlink_rate_bps : row.pcie_rate_bps;
}

inline Agenda& agenda_of_rank(State& s, std::int64_t rank) {
  return s.agendas[static_cast<std::size_t>(s.host_of(rank))];
}

inline bool later_arrival(const ServerRank::Arrival& a, const ServerRank::Arrival& b) {
  return a.at_ps != b.at_ps ? a.at_ps > b.at_ps : a.order > b.order;
}

/// The first lane from `turn` on that has a chunk, or -1.
inline std::int32_t next_lane(const ServerLink& egress) {
  const std::size_t words = egress.ready.size();
  const std::size_t turn = egress.turn < egress.lanes.size() ? egress.turn : 0;
  for (std::size_t step = 0; step <= words; ++step) {
    const std::size_t word = (turn / 64 + step) % words;
    std::uint64_t bits = egress.ready[word];
    if (step == 0) bits &= ~std::uint64_t{0} << (turn % 64);
    if (step == words) bits &= ~(~std::uint64_t{0} << (turn % 64));
    if (bits != 0) return egress.lanes[word * 64 + static_cast<std::size_t>(std::countr_zero(bits))];
  }
  return -1;
}

/// An idle egress starts a chunk, if one of its lanes has any.
inline void start_chunk(State& s, std::int32_t rank, std::size_t link, Ps now_ps) {
  ServerLink& egress = s.server_ranks[static_cast<std::size_t>(rank)].links[link];
  const std::int32_t index = next_lane(egress);
  if (index < 0) return;
  Lane& lane = s.lanes[static_cast<std::size_t>(index)];
  const std::int32_t number = lane.head;
  const Message& message = s.messages[static_cast<std::size_t>(number)];
  const GpuRow& sender = gpu_row(s, rank);
  const std::int64_t bytes = std::min(sender.chunk_bytes, message.size_bytes - lane.started_bytes);
  lane.started_bytes += bytes;
  const bool last = lane.started_bytes == message.size_bytes;
  if (last) {
    lane.head = message.next;
    lane.started_bytes = 0;
    if (lane.head < 0)
      egress.ready[static_cast<std::size_t>(lane.place) / 64] &=
          ~(std::uint64_t{1} << (static_cast<unsigned>(lane.place) % 64));
  }
  egress.turn = static_cast<std::size_t>(lane.place) + 1;
  egress.busy = true;
  const Ps left_at_ps = now_ps + serialisation_ps(bytes, link_rate_bps(s, rank, link));
  Agenda& agenda = agenda_of_rank(s, rank);
  agenda.push(left_at_ps, server_key(AgendaKind::kEgress, rank, link));
  const Ps latency_ps = link == kNvlink ? sender.nvlink_latency_ps : sender.pcie_latency_ps;
  ServerRank& receiver = s.server_ranks[static_cast<std::size_t>(lane.destination_rank)];
  Ps& ingress_free_at_ps = receiver.links[link].ingress_free_at_ps;
  ingress_free_at_ps = std::max(now_ps + latency_ps, ingress_free_at_ps) +
                       serialisation_ps(bytes, link_rate_bps(s, lane.destination_rank, link));
  if (!last) return;
  const Ps there_at_ps = std::max(ingress_free_at_ps, left_at_ps + latency_ps);
  receiver.arrivals.push_back({there_at_ps, receiver.started++, number});
  std::push_heap(receiver.arrivals.begin(), receiver.arrivals.end(), later_arrival);
  agenda.push(there_at_ps, server_key(AgendaKind::kDelivery, lane.destination_rank, 0));
}

/// The egress has sent its chunk.
inline void free_egress(State& s, std::int32_t rank, std::size_t link, Ps now_ps) {
  s.server_ranks[static_cast<std::size_t>(rank)].links[link].busy = false;
  start_chunk(s, rank, link, now_ps);
}

/// The next message for `rank` is there, whole.
inline void deliver_inside(State& s, std::int32_t rank, Ps now_ps) {
  auto& arrivals = s.server_ranks[static_cast<std::size_t>(rank)].arrivals;
  std::pop_heap(arrivals.begin(), arrivals.end(), later_arrival);
  Message& message = s.messages[static_cast<std::size_t>(arrivals.back().message)];
  arrivals.pop_back();
  s.count.end_ps = std::max(s.count.end_ps, now_ps);
  s.delivered_bytes += message.size_bytes;
  deliver(s, s.flow_of(message), -1, message, now_ps);
  message.acked_at_ps = now_ps;
  s.open_work -= 1;
  complete_posted(s, message.stream, now_ps);
}

inline std::int32_t open_lane(State& s, std::uint64_t flow, std::int32_t source, std::int32_t destination) {
  if (s.server_ranks.empty()) s.server_ranks.resize(s.in.rank_class.size());
  const auto index = static_cast<std::int32_t>(s.lanes.size());
  ServerLink& egress = s.server_ranks[static_cast<std::size_t>(source)].links[link_between(s, source, destination)];
  Lane& lane = s.lanes.emplace_back();
  lane.flow = flow;
  lane.destination_rank = destination;
  lane.place = static_cast<std::int32_t>(egress.lanes.size());
  egress.lanes.push_back(index);
  egress.ready.resize((egress.lanes.size() + 63) / 64, 0);
  s.lane_of_flow.emplace(flow, index);
  return index;
}

/// Post a message between two ranks of one server.
inline void post_inside(State& s, std::int32_t stream, std::int32_t destination, std::int64_t channel,
                        std::int64_t size_bytes, Ps now_ps) {
  const std::int32_t source = s.streams[static_cast<std::size_t>(stream)].rank;
  const std::uint64_t flow = flow_identity(source, destination, channel);
  const auto found = s.lane_of_flow.find(flow);
  const std::int32_t index = found != s.lane_of_flow.end() ? found->second : open_lane(s, flow, source, destination);
  Lane& lane = s.lanes[static_cast<std::size_t>(index)];
  const auto number = static_cast<std::int32_t>(s.messages.size());
  Message& message = s.messages.emplace();
  s.open_work += 1;
  message.size_bytes = size_bytes;
  message.posted_at_ps = now_ps;
  message.queue_pair = -1 - index;
  message.stream = stream;
  message.ordinal = lane.messages++;
  if (lane.last >= 0) s.messages[static_cast<std::size_t>(lane.last)].next = number;
  lane.last = number;
  if (lane.head < 0) lane.head = number;
  const std::size_t link = link_between(s, source, destination);
  ServerLink& egress = s.server_ranks[static_cast<std::size_t>(source)].links[link];
  egress.ready[static_cast<std::size_t>(lane.place) / 64] |= std::uint64_t{1}
                                                             << (static_cast<unsigned>(lane.place) % 64);
  if (!egress.busy) start_chunk(s, source, link, now_ps);
}

}  // namespace weftwork
