/// Ids that only the flow engine has; those of both engines are in base/ids.hpp.
#pragma once
#include <type_traits>

#include "base/ids.hpp"

namespace weftwork::flow {

// The max-min core.
using ConstraintId = Id<struct ConstraintKind>;
using VariableId = Id<struct VariableKind>;

// The fabric.
using PodId = Id<struct PodKind>;        // switches with the same leaves below them, within their tier
using ColourId = Id<struct ColourKind>;  // switches that see the same
using DomainId = Id<struct DomainKind>;  // NVLink domains of a job's ranks; without NVLink, of a server
using ServerId = Id<struct ServerKind>;  // servers of a job's ranks
using BundleId = Id<struct BundleKind>;  // links from one colour to another, by colour

// The job.
using LinkId = Id<struct LinkKind>;                  // ports first, then what is inside servers: flow/links.hpp
using GroupId = Id<struct RankGroupKind>;            // rules by which ranks form communicators: Slots::groups
using ShapeId = Id<struct ShapeKind>;                // of collectives: Slots::shapes
using CollectId = Id<struct CollectKind>;            // rows of Job::collects
using SlotId = Id<struct SlotIdKind>;                // among the slots of one program
using ActivityId = Id<struct ActivityKind>;          // of the graph: its connections first, then its operations
using ConnectionId = Id<struct ConnectionKind>;      // of the graph
using OperationId = Id<struct OperationKind>;        // of the graph
using CommunicatorId = Id<struct CommunicatorKind>;  // of the graph
using PartyId = Id<struct PartyKind>;                // of replicas that run as one of them: flow/replicas.hpp
using ReplicaId = Id<struct ReplicaKind>;            // sets of ranks: flow/replicas.hpp
using WeightId = Id<struct WeightKind>;              // of distinct weights

// A run.
using PathId = Id<struct PathKind>;              // that messages share: Traffic::paths
using ServerPortId = Id<struct ServerPortKind>;  // of a rank inside its server: flow/server_links.hpp

/// The link that leaves a port.
constexpr LinkId link_of(PortId port) {
  return LinkId(port.value);
}

/// Cells of an equitable partition: what is alike runs as one. The network is made of cells.
template <typename I>
struct CellKind;
using LinkCell = Id<CellKind<LinkId>>;
using ActivityCell = Id<CellKind<ActivityId>>;
using ConnectionCell = Id<CellKind<ConnectionId>>;
using OperationCell = Id<CellKind<OperationId>>;
using CommunicatorCell = Id<CellKind<CommunicatorId>>;
using ActorId = Id<CellKind<RankId>>;

// No kind turns into another by itself: a link into a constraint, a port into its link, a part into its cell.
static_assert(!std::is_constructible_v<ConstraintId, LinkId> && !std::is_constructible_v<LinkId, PortId> &&
              !std::is_constructible_v<ActivityCell, ActivityId> && !std::is_constructible_v<ActorId, RankId>);

}  // namespace weftwork::flow
