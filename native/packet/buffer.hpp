/// The buffer of a switch: held bytes by (ingress port, class), and room for further packets. Counters over-estimate,
/// since departures are lazy; checks that pass are exact all the same (departures).
/// Source of the dynamic threshold: Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998, doi:10.1109/90.664262.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "base/limit_error.hpp"
#include "packet/fabric.hpp"
#include "packet/ids.hpp"
#include "packet/packet.hpp"
#include "packet/port_records.hpp"
#include "packet/setup.hpp"
#include "rows/fabric.hpp"

namespace weftwork {

struct SwitchView {
  SwitchNode& node;
  const SwitchRow& row;
  IdSpan<LocalQueueId, Ingress> ingresses;
  IdSpan<LocalQueueId, Packet*> inbound;  // next packet on the wire towards the port
  PortId first;                           // id of its first port
  QueueId first_queue;                    // and of that port's first class
  NodeId id;
  std::uint32_t weighted;   // classes that share a port by weight
  bool watches_departures;  // a packet that departs is marked, stamped or captured
};

inline SwitchView switch_view(const Setup& setup, Fabric& fabric, NodeId node) {
  SwitchNode& record = fabric.switches[fabric.switch_of_node[node]];
  const SwitchRow& row = setup.in.switches[record.device];
  const PortId first = setup.first_port(node);
  const QueueId first_queue = setup.at(first, TrafficClass(0));
  const std::size_t queues = setup.ports_of(node).size() << setup.class_shift;
  return {record,
          row,
          IdSpan<LocalQueueId, Ingress>({&fabric.ingresses[first_queue], queues}),
          IdSpan<LocalQueueId, Packet*>({&fabric.inbound[first_queue], queues}),
          first,
          first_queue,
          node,
          record.weighted,
          row.mark_at_dequeue != 0 || ((setup.in.has_telemetry || setup.in.has_path_load) && row.telemetry != 0) ||
              !setup.in.capture.ports.empty()};
}

/// What more an ingress takes of the shared part when it holds `after` in place of `before` bytes.
inline std::int64_t shared_growth(std::int64_t before, std::int64_t after, std::int64_t reserve) {
  return std::max(after, reserve) - std::max(before, reserve);
}

/// Keep a packet of (ingress, class) outside the headroom.
inline void occupy(const SwitchView& view, Ingress& ingress, std::int32_t bytes) {
  must_hold(bytes > 0, Invariant::frame_fits_its_record, "node bytes", view.id, bytes);
  const std::int32_t after = ingress.used + bytes;
  view.node.shared_used += shared_growth(ingress.used, after, view.row.reserve_bytes);
  ingress.used = after;
}

/// Give back what a packet of (ingress, class) holds.
inline void release(const SwitchView& view, Ingress& ingress, std::int32_t bytes) {
  if (ingress.headroom_used > 0) {
    const std::int32_t taken = std::min(ingress.headroom_used, bytes);
    ingress.headroom_used -= taken;
    bytes -= taken;
  }
  const std::int32_t after = ingress.used - bytes;
  view.node.shared_used += shared_growth(ingress.used, after, view.row.reserve_bytes);
  ingress.used = after;
  must_hold((view.node.shared_used | ingress.used) >= 0, Invariant::bytes_conserved_at_a_switch,
            "node shared_bytes ingress_bytes released_bytes", view.id, view.node.shared_used, ingress.used, bytes);
}

/// From now on what the ingress holds in its headroom counts as used.
inline void fold_headroom(const SwitchView& view, Ingress& ingress) {
  must_hold((ingress.used | ingress.headroom_used) >= 0, Invariant::bytes_conserved_at_a_switch,
            "node ingress_bytes headroom_bytes", view.id, ingress.used, ingress.headroom_used);
  const std::int32_t after = ingress.used + ingress.headroom_used;
  view.node.shared_used += shared_growth(ingress.used, after, view.row.reserve_bytes);
  ingress.used = after;
  ingress.headroom_used = 0;
  must_hold(view.node.shared_used >= shared_growth(0, after, view.row.reserve_bytes),
            Invariant::bytes_conserved_at_a_switch, "node shared_bytes ingress_bytes reserve_bytes", view.id,
            view.node.shared_used, after, view.row.reserve_bytes);
}

inline std::int64_t free_bytes(const SwitchNode& node) {
  return node.shared_bytes > node.shared_used ? node.shared_bytes - node.shared_used : 0;
}

inline std::int64_t share(double factor, std::int64_t bytes) {
  return static_cast<std::int64_t>(factor * static_cast<double>(bytes));
}

/// Whether a queue of a class that may lose packets would hold more than its share.
inline bool is_above_egress_threshold(const SwitchView& view, std::int64_t queue_bytes) {
  const SwitchRow& row = view.row;
  const std::int64_t over = queue_bytes - row.reserve_bytes;
  return over > 0 && over > share(row.egress_alpha, free_bytes(view.node));
}

/// Queues and ingresses count in 32 bits.
inline void refuse_above_limit(std::int32_t bytes) {
  constexpr std::int32_t kMostBytes = 1 << 30;
  if (bytes > kMostBytes) [[unlikely]]
    throw LimitError("a queue of a switch holds more than 1 GiB; take a smaller buffer, or flow control");
}

/// An ingress holds more than before.
inline void note_largest(Ingress& ingress) {
  ingress.max_bytes = std::max(ingress.max_bytes, ingress.used + ingress.headroom_used);
  refuse_above_limit(ingress.max_bytes);
}

enum class Admission : std::uint8_t { kShared, kHeadroom, kBufferFull, kEgressThreshold, kHeadroomFull };

struct Verdict {
  Admission admission;
  bool pause;
};

inline bool is_refused(const Verdict& verdict) {
  return verdict.admission != Admission::kShared && verdict.admission != Admission::kHeadroom;
}

/// What would happen to `bytes` from an ingress towards a queue, without changing anything.
inline Verdict judge(const SwitchView& view, const Ingress& ingress, std::int64_t headroom, const Queue& queue,
                     std::int64_t bytes, bool lossless) {
  const SwitchRow& row = view.row;
  if (lossless && ingress.paused)
    return {ingress.headroom_used + bytes <= headroom ? Admission::kHeadroom : Admission::kHeadroomFull, false};
  const std::int64_t shared_used =
      view.node.shared_used + shared_growth(ingress.used, ingress.used + bytes, row.reserve_bytes);
  const bool full = shared_used > view.node.shared_bytes;
  if (!lossless) {
    if (is_above_egress_threshold(view, queue.bytes + bytes)) return {Admission::kEgressThreshold, false};
    return {full ? Admission::kBufferFull : Admission::kShared, false};
  }
  if (full)
    return ingress.headroom_used + bytes <= headroom ? Verdict{Admission::kHeadroom, true}
                                                     : Verdict{Admission::kBufferFull, false};
  const std::int64_t over = ingress.used + bytes - row.reserve_bytes;
  const bool pause =
      (over > 0 && over > share(row.alpha, view.node.shared_bytes - shared_used)) || ingress.headroom_used > 0;
  return {Admission::kShared, pause};
}

/// Admit a packet if no check of the buffer fires even on counters that over-estimate; false: ask `admit`.
[[gnu::always_inline]] inline bool admits_at_once(const SwitchView& view, Ingress& ingress, const Queue& queue,
                                                  std::int64_t bytes, bool lossless) {
  const SwitchRow& row = view.row;
  const std::int64_t used = ingress.used + bytes;
  const std::int64_t shared_used = view.node.shared_used + shared_growth(ingress.used, used, row.reserve_bytes);
  const std::int64_t left = view.node.shared_bytes - shared_used;
  if (left < 0 || used + ingress.headroom_used > ingress.max_bytes) return false;
  if (lossless) {
    const std::int64_t over = used - row.reserve_bytes;
    if (ingress.paused || ingress.headroom_used != 0 || (over > 0 && over > share(row.alpha, left))) return false;
  } else if (is_above_egress_threshold(view, queue.bytes + bytes)) {
    return false;
  }
  ingress.used = static_cast<std::int32_t>(used);
  view.node.shared_used = shared_used;
  return true;
}

}  // namespace weftwork
