/// Two hosts on one cable, as far as tests of sending and recovery need a state: one traffic class, one queue pair from
/// host 0 to host 1, and a congestion control that does nothing.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "base/flow_identity.hpp"
#include "base/ids.hpp"
#include "packet/ids.hpp"
#include "packet/input.hpp"
#include "packet/job_records.hpp"
#include "packet/packet.hpp"
#include "packet/pipe.hpp"
#include "packet/policy.hpp"
#include "packet/port_records.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/recovery.hpp"
#include "packet/scheduling.hpp"
#include "packet/state.hpp"
#include "rows/packet_run.hpp"
#include "rows/policies.hpp"

namespace weftwork {

struct TwoHosts {
  static constexpr std::int64_t kRateBps = 400'000'000'000;  // 20 ps a byte
  static constexpr Ps kPsPerByte = 20;
  static constexpr Ps kDelayPs = 500'000;
  static constexpr std::int64_t kMtuBytes = 4096, kOverheadBytes = 58, kGapBytes = 24, kAckBytes = 62;
  static constexpr Ps kTimeoutPs = 100'000'000;
  static constexpr std::int64_t kRetries = 2;
  static constexpr PortId kSource{0}, kDestination{1};

  std::array<std::int8_t, 2> kinds{0, 0};
  std::array<DeviceId, 2> devices{DeviceId(0), DeviceId(0)};
  std::array<std::int64_t, 3> base{0, 1, 2};
  std::array<NodeId, 2> nodes{NodeId(0), NodeId(1)};
  std::array<PortId, 2> peers{PortId(1), PortId(0)};
  std::array<std::int64_t, 2> rates_bps{kRateBps, kRateBps}, delays_ps{kDelayPs, kDelayPs};
  std::array<std::int64_t, 1> priority{0}, lossless{0};
  std::array<ProgramId, 2> programs{ProgramId(0), ProgramId(0)};
  std::array<PortId, 2> rank_ports{PortId(0), PortId(1)};
  std::array<std::int64_t, 1> group_ptr{0};
  Input in;
  std::unique_ptr<State> state;
  std::vector<std::unique_ptr<SenderState>> controls;

  explicit TwoHosts(std::int64_t selective_repeat = 0) {
    in.until_ps = kNeverPs;
    in.watch_ps = kSecondPs;
    in.virtual_channels = 1;
    in.control_class = in.trim_class = TrafficClass(0);
    in.node_kind = IdSpan<NodeId, const std::int8_t>(kinds);
    in.node_device = IdSpan<NodeId, const DeviceId>(devices);
    in.port_base = IdSpan<NodeId, const std::int64_t>(base);
    in.port_node = IdSpan<PortId, const NodeId>(nodes);
    in.port_peer = IdSpan<PortId, const PortId>(peers);
    in.port_rate_bps = IdSpan<PortId, const std::int64_t>(rates_bps);
    in.port_delay_ps = IdSpan<PortId, const std::int64_t>(delays_ps);
    in.class_priority = IdSpan<TrafficClass, const std::int64_t>(priority);
    in.class_lossless = IdSpan<TrafficClass, const std::int64_t>(lossless);
    in.rank_program = IdSpan<RankId, const ProgramId>(programs);
    in.rank_ports = rank_ports;
    RouteTable table{};
    table.group_ptr = group_ptr;
    in.routes.push_back(table);
    in.transport.mtu_bytes = kMtuBytes;
    in.transport.data_overhead_bytes = kOverheadBytes;
    in.transport.interframe_bytes = kGapBytes;
    in.transport.ack_bytes = kAckBytes;
    in.transport.ack_every = 1'000;
    in.transport.retransmission_timeout_ps = kTimeoutPs;
    in.transport.retry_limit = kRetries;
    in.transport.selective_repeat = selective_repeat;
    in.transport.reorder_threshold_packets = 1;
    state = std::make_unique<State>(in, kDelayPs, kExtendedStride);
    State& s = *state;
    s.setup.extended = true;
    s.fabric.ports.resize(2);
    s.recordings.port_counters.resize(2);
    s.schedule.due_at_ps.assign(2, kNeverPs);
    s.fabric.rate_bps.assign(rates_bps);
    s.fabric.frames_waiting.resize(2);
    s.fabric.frames_inbound.resize(2);
    s.fabric.inexact_serialisation.resize(2);
    s.fabric.queues.resize(2);
    s.fabric.queue_controls.resize(2);
    s.fabric.inbound.resize(2);
    s.fabric.ingresses.resize(2);
    s.hosts.nics.resize(2);
    s.schedule.mask_base.assign(3, 0);
    for (const NodeId node : s.schedule.mask_base.ids()) s.schedule.mask_base[node] = node.index();
    s.schedule.inbound_mask.assign(2, 0);
    s.schedule.frame_mask = s.schedule.outbound_mask = s.schedule.inbound_mask;
    s.schedule.agendas.resize(2);
    s.schedule.woken_from_at_ps.resize(2, 0);
    s.schedule.woken_until_ps.resize(2, 0);
    for (const PortId port : s.fabric.ports.ids()) {
      Port& record = s.fabric.ports[port];
      record.delay_ps = kDelayPs;
      record.ps_per_byte = kPsPerByte;
      record.peer_node = nodes[1 - port.index()];
      record.peer_local = LocalPort(0);
      s.hosts.nic_of_port.push_back(NicId(port.index()));
      Packet* stream = s.fabric.pool.open();
      s.fabric.queues[QueueId(port.index())] = {stream, stream, 0, 0};
      s.fabric.inbound[QueueId(1 - port.index())] = stream;
    }
    StreamState stream;
    stream.rank = RankId(0);
    s.job.streams.push_back(stream);
  }

  /// A queue pair from host 0 to host 1 with one message; it may send at `rate_bps` within `window_bytes`.
  QueuePairId open(std::int64_t size_bytes, double rate_bps = kRateBps, double window_bytes = kNoWindowBytes) {
    State& s = *state;
    const QueuePairId id = s.hosts.queue_pairs.next_id();
    QueuePair& qp = s.hosts.queue_pairs.emplace();
    qp.flow = flow_identity(0, 1, id.value);
    qp.source_port = kSource;
    qp.destination_port = kDestination;
    qp.source_rank = RankId(0);
    qp.destination_rank = RankId(1);
    controls.push_back(std::make_unique<SenderState>());
    *controls.back() = {rate_bps, window_bytes, {kOff, kOff, kOff, kOff}, 0, 0, 0, 0};
    qp.congestion = reinterpret_cast<std::uint8_t*>(controls.back().get());
    const MessageId message_id = s.job.messages.next_id();
    Message& message = s.job.messages.emplace();
    message.size_bytes = size_bytes;
    message.end = (size_bytes + kMtuBytes - 1) / kMtuBytes;
    message.queue_pair = id;
    message.stream = StreamId(0);
    Sender& sender = qp.sender;
    sender.end = message.end;
    sender.end_bytes = size_bytes;
    sender.una_message = sender.nxt_message = sender.last_message = message_id;
    sender.slot = add_slot(s.setup, s.hosts, s.recordings, kSource, id);
    s.job.streams[StreamId(0)].outstanding += 1;
    s.job.open_work += 1;
    reconsider(s.setup, s.fabric, s.hosts, s.job, qp);
    return id;
  }

  [[nodiscard]] QueuePair& queue_pair(QueuePairId id) { return state->hosts.queue_pairs[id]; }

  /// Let host 0 send whatever it may until `at_ps`.
  void run(Ps at_ps) {
    if (state->schedule.due_at_ps[kSource] == kNeverPs)
      kick_nic(*state, kSource, at_ps);
    else
      drain_nic(*state, kSource, at_ps);
  }

  /// Packets on the wire that host 1 has not read, in order.
  [[nodiscard]] std::vector<Packet*> arrivals() {
    std::vector<Packet*> packets;
    for (Packet* at = state->fabric.inbound[QueueId(kDestination.index())]; at->at_ps != kNeverPs;
         at = state->fabric.pool.next(at))
      packets.push_back(at);
    return packets;
  }

  /// An acknowledgement of everything below `expected`, or, `is_nak`, a request for `expected`.
  void answer(QueuePairId id, std::int64_t expected, bool is_nak, Ps now_ps, std::int64_t refused = 0) {
    alignas(64) std::array<std::uint8_t, kExtendedStride> room{};
    auto* packet = reinterpret_cast<Packet*>(room.data());
    packet->queue_pair = id;
    packet->seq = static_cast<std::uint32_t>(expected);
    for (const MessageId message : state->job.messages.ids())  // that the receiver has delivered by then
      if (state->job.messages[message].queue_pair == id && state->job.messages[message].end <= expected &&
          state->job.messages[message].delivered_at_ps < 0)
        state->job.messages[message].delivered_at_ps = now_ps;
    packet->kind = is_nak ? PacketKind::kNak : PacketKind::kAck;
    extension(packet).refused = static_cast<std::uint32_t>(refused);
    handle_ack(*state, queue_pair(id), packet, now_ps);
  }
};

}  // namespace weftwork
