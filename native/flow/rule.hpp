/// The rule of routes: which paths between two switches count.
///   shortest            all paths of the least number of hops
///   up-down             never down and then up: where anything leads down to the attachment, the shortest ways down;
///                       else up to where the fewest hops are left
///   fewest global hops  all paths of the fewest links between groups, and of these those of the fewest links
/// Dimension order keeps, of the ports by which such paths leave a switch, those of the lowest dimension.
///
/// Source: topology/routing.py, `hops_left`.
#pragma once
#include <cstdint>

#include "base/ids.hpp"
#include "paths/detours.hpp"

namespace weftwork::flow {

enum class Order : std::uint8_t { kShortest, kUpDown, kFewestGlobalHops };

struct Rule {
  static constexpr std::int16_t kGlobalLength = 32;  // GLOBAL_COST of topology/routing.py

  Order order = Order::kShortest;
  bool in_dimension_order = false;
  IdSpan<PortId, const std::int8_t> dimension;  // of each port's link; empty where no route depends on it
  std::int64_t global = -2;                     // the dimension of links between groups; -2: there are none

  /// Of the link of a port, in the unit of the rule.
  [[nodiscard]] std::int16_t length(PortId port) const {
    return order == Order::kFewestGlobalHops && dimension[port] == global ? kGlobalLength : std::int16_t{1};
  }
};

/// Detours by an intermediate switch, see flow/detours.hpp.
struct DetourRule {
  weftwork::Detours among;                        // empty: there are no detours
  IdSpan<NodeId, const std::int32_t> node_group;  // in which detours turn; empty: at the intermediate itself

  [[nodiscard]] bool empty() const { return among.order.empty(); }
  /// Whether a detour by an intermediate ends at a switch.
  [[nodiscard]] bool turns(NodeId node, NodeId via) const {
    return node == via || (!node_group.empty() && node_group[node] == node_group[via]);
  }
};

}  // namespace weftwork::flow
