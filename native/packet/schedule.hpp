/// Time: which node has something to do, and when.
/// Invariants: whatever arrives at a node, departs from it or stands in its agenda in a window has scheduled the node
/// in the calendar for that window; a port's bit is set in `inbound_mask` while something travels towards it, and in
/// `outbound_mask` while something waits at it; `due_at_ps` is never later than what a port can start.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "packet/agenda.hpp"
#include "packet/calendar.hpp"
#include "packet/ids.hpp"
#include "packet/input.hpp"
#include "packet/port_records.hpp"

namespace weftwork {

struct Schedule {
  Ps lookahead_ps;
  Calendar calendar;
  IdVector<PortId, Ps> due_at_ps;            // next instant at which the port can start something; never: nothing waits
  IdVector<NodeId, std::size_t> mask_base;   // first word of a node in the masks; one more at the end
  std::vector<std::uint64_t> inbound_mask;   // ports with something on the wire towards them
  std::vector<std::uint64_t> frame_mask;     // of those, ports towards which a flow-control frame travels
  std::vector<std::uint64_t> outbound_mask;  // ports with something waiting
  IdVector<NodeId, Agenda> agendas;
  IdVector<NodeId, Ps> woken_from_at_ps, woken_until_ps;  // the window for which a node has last scheduled itself
  std::int64_t agenda_entries = 0;                        // handled in this window by this node
  std::size_t next_instant = 0;
  std::vector<std::uint64_t> keys, scratch;  // arrivals of a window
  std::vector<std::uint32_t> histogram;

  Schedule(const Input& input, Ps lookahead) : lookahead_ps(lookahead), calendar(input.node_kind.size(), lookahead) {}

  static void set_bit(std::vector<std::uint64_t>& mask, std::size_t base, LocalPort local) {
    mask[base + local.index() / 64] |= std::uint64_t{1} << (local.index() % 64);
  }
  /// A packet that leaves `out` arrives at `at_ps`: let the far end know, once for all that arrives in the same window.
  void announce(Port& out, Ps at_ps) {
    if (at_ps < out.announced_until_ps) [[likely]]
      return;
    set_bit(inbound_mask, mask_base[out.peer_node], out.peer_local);
    out.announced_until_ps = calendar.schedule(out.peer_node, at_ps);
  }
  /// A node has something to do of its own at `at_ps`.
  void wake_node(NodeId node, Ps at_ps) {
    if (at_ps >= kNeverPs || (at_ps >= woken_from_at_ps[node] && at_ps < woken_until_ps[node])) return;
    woken_until_ps[node] = calendar.schedule(node, at_ps);
    woken_from_at_ps[node] = woken_until_ps[node] - lookahead_ps;
  }
  /// The same for a flow-control frame.
  void announce_frame(const Port& out, Ps at_ps) {
    const std::size_t base = mask_base[out.peer_node];
    set_bit(inbound_mask, base, out.peer_local);
    set_bit(frame_mask, base, out.peer_local);
    calendar.schedule(out.peer_node, at_ps);
  }
  void set_outbound(LocalPort local, NodeId node, bool waits) {
    std::uint64_t& word = outbound_mask[mask_base[node] + local.index() / 64];
    const std::uint64_t mask = std::uint64_t{1} << (local.index() % 64);
    word = waits ? word | mask : word & ~mask;
  }
};

}  // namespace weftwork
