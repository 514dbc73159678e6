/// Every frame that starts at a captured port, in the order of time. Not part of the model: nothing here is read back.
/// Source: weftwork.engine.capture says what the fields mean; the reference engine records the same.
/// Leaves out: bytes of headers, which weftwork.study.run.captured_frames makes of a row.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/clock.hpp"
#include "base/flow_identity.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/fabric.hpp"
#include "packet/hashing.hpp"
#include "packet/hosts.hpp"
#include "packet/ids.hpp"
#include "packet/packet.hpp"
#include "packet/port_records.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/recordings.hpp"
#include "packet/setup.hpp"
#include "rows/outcome.hpp"

namespace weftwork {

/// Keep a row of a captured port while there is room for it.
inline void keep_captured(const Setup& setup, Recordings& recordings, const CaptureRow& row) {
  for (CapturedPort& place : recordings.captured) {
    if (place.port != row.port) continue;
    must_hold(place.rows.empty() || place.rows.back().at_ps <= row.at_ps, Invariant::recordings_in_order_of_time,
              "at_ps port rows", row.at_ps, row.port, place.rows.size());
    must_hold(row.size_bytes > 0, Invariant::frame_fits_its_record, "at_ps port kind bytes", row.at_ps, row.port,
              row.kind, row.size_bytes);
    if (std::cmp_less(place.rows.size(), setup.in.capture.row_limit))
      place.rows.push_back(row);
    else
      place.left_out += 1;
  }
}

inline bool is_captured(const Recordings& recordings, PortId port) {
  return std::ranges::any_of(recordings.captured, [&](const CapturedPort& place) { return place.port == port.value; });
}

/// What switches have written into a data packet, or into the one that an answer echoes.
inline void copy_telemetry(const Setup& setup, const Fabric& fabric, Packet* packet, CaptureRow& row) {
  const std::size_t count = recorded_hops(packet);
  row.hop_count = static_cast<std::int64_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Hop& hop = hops(packet, setup.wide)[i];
    row.hop_queue_bytes[i] = hop.queue_bytes();
    row.hop_tx_bytes[i] = hop.tx_bytes();
    row.hop_rate_bps[i] = fabric.rates.rate_bps(hop.rate());
    row.hop_at_ps[i] = hop.at_ps;
    row.hop_port[i] = hop.port();
  }
}

/// A packet, filled but for its arrival, starts at `port`.
[[gnu::noinline]] inline void capture_packet(const Setup& setup, const Fabric& fabric, const Hosts& hosts,
                                             Recordings& recordings, PortId port, TrafficClass klass, Packet* packet,
                                             Ps at_ps) {
  if (!is_captured(recordings, port)) return;
  const QueuePair& qp = hosts.queue_pairs[packet->queue_pair];
  const Extension& ext = extension(packet);
  const auto [source, destination, channel] = flow_ends(qp.flow);
  const PacketKind kind = packet->kind;
  const bool answers = kind == PacketKind::kAck || kind == PacketKind::kNak;
  const std::int64_t request_bytes = setup.wide && kind == PacketKind::kRequest ? wide(packet).request_bytes : 0;
  const bool refuses = kind == PacketKind::kNak && has(packet->flags, kHasEcho);
  const std::int64_t refused = refuses ? std::int64_t{ext.refused} : -1;
  CaptureRow row{.at_ps = at_ps,
                 .port = port.value,
                 .kind = static_cast<std::int64_t>(kind),
                 .traffic_class = klass.value,
                 .source = source,
                 .destination = destination,
                 .channel = channel,
                 .seq = packet->seq,
                 .attempt = packet->attempt,
                 .origin = origin_port(setup, qp, packet).value,
                 .target = packet->destination_port.value,
                 .size_bytes = packet->bytes,
                 .payload_bytes = kind == PacketKind::kData ? ext.payload_bytes : 0,
                 .entropy = entropy_of(setup, qp, packet),
                 .hops = counts_switches(*packet) ? ext.hops : 0,
                 .marked = has(packet->flags, kMarked) ? 1 : 0,
                 .asks_ack = has(packet->flags, kAckRequest) ? 1 : 0,
                 .cut = has(packet->flags, kCut) ? 1 : 0,
                 .msn = answers ? ext.msn : 0,
                 .credit_code = answers ? ext.credit_code : 0,
                 .amount = kind == PacketKind::kCredit ? ext.credit_bytes : request_bytes,
                 .refused = refused};
  if (setup.in.has_telemetry && (answers || kind == PacketKind::kData)) copy_telemetry(setup, fabric, packet, row);
  keep_captured(setup, recordings, row);
}

/// A flow-control frame starts at `port`.
[[gnu::noinline]] inline void capture_frame(const Setup& setup, Recordings& recordings, PortId port,
                                            const ControlFrame& frame, Ps at_ps) {
  if (!is_captured(recordings, port)) return;
  CaptureRow row{};
  row.at_ps = at_ps;
  row.port = port.value;
  row.kind = setup.link_credits ? kCapturedCredit : kCapturedPause;
  row.traffic_class = frame.klass.value;
  row.size_bytes = setup.in.transport.pause_frame_bytes;
  row.amount = frame.quanta;
  row.refused = -1;
  keep_captured(setup, recordings, row);
}

}  // namespace weftwork
