/// Routes that packets follow now, and the hash functions by which switches choose among them.
/// Invariants: `ways` of a group are those of its candidates that are up, one after the other in `candidates` and
/// `way_ports`; both are made anew whenever a link or the table changes (`use_routes`).
#pragma once
#include <vector>

#include "base/ids.hpp"
#include "packet/ids.hpp"
#include "packet/input.hpp"
#include "packet/routes.hpp"
#include "paths/hash_function.hpp"
#include "rows/policies.hpp"

namespace weftwork {

struct RoutingTables {
  RouteTableId route_table{0};  // that packets follow
  Routes routes;
  IdVector<CandidateId, Candidate> candidates;  // of every group, one after the other, as port selection sees them
  IdVector<GroupId, Ways> ways;                 // of every group, those candidates that are up
  IdVector<CandidateId, PortId> way_ports;      // ports of the candidates
  std::vector<Candidate> joined_candidates;     // of one packet, where they are no group of the table
  IdVector<DeviceId, HashFunction> hash_functions;

  explicit RoutingTables(const Input& input) : routes(input.routes[RouteTableId(0)], input.node_kind.size()) {}
};

}  // namespace weftwork
