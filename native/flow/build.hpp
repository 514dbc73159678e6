/// From a job to its graph. Source of the rules: weftwork.spec.job; docs/models/flow-engine-folding.md.
#pragma once
#include <exception>

#include "base/ids.hpp"
#include "flow/fabric_view.hpp"
#include "flow/graph.hpp"
#include "flow/ids.hpp"
#include "flow/job.hpp"
#include "flow/links.hpp"
#include "flow/losses.hpp"
#include "flow/router.hpp"
#include "flow/slots.hpp"
#include "flow/wire_sizes.hpp"
#include "rows/transport.hpp"

namespace weftwork::flow {

/// Which NIC ports do not work, and what becomes of those that no path joins.
struct Outage {
  IdSpan<PortId, const char> down;  // not 0 for ports that were down at the last failover; empty: there was none
  LinkId nowhere;                   // a link that is never up: what has no path crosses it; none: `NoPath` is thrown
};

/// What is lost in an epoch, and what it costs; no record where nothing ever is.
struct Lossy {
  const IdVector<PortId, double>& loss;  // by port
  const LossRules& rules;
  const WireSizes& wire;
  const FabricView& fabric;
};

/// Two NIC ports that no path joins; the caller turns it into words.
struct NoPath : std::exception {
  PortId from, to;
  NoPath(PortId source, PortId destination) : from(source), to(destination) {}
  [[nodiscard]] const char* what() const noexcept override { return "no path joins two NIC ports"; }
};

/// The slots of every program. Rows of one program with the same peer, channel and NIC, or the same collective of one
/// group, share a slot.
Slots slots_of(const Job& job);

/// The graph of a job on a fabric. Throws NoPath where two ranks that talk are not joined, unless `outage` says what
/// they cross.
Graph build_graph(const Job& job, const Links& links, const Router& router, Wire wire, const Outage& outage = {},
                  const Lossy* lossy = nullptr);

}  // namespace weftwork::flow
