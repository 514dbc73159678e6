/// The input of the flow engine, arrays that Python makes (weftwork.engine.flow.flow_input), borrowed.
/// The owner (Python) keeps them alive as long as the engine.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/job.hpp"
#include "flow/fabric_view.hpp"
#include "flow/fold.hpp"
#include "flow/job.hpp"
#include "flow/layers.hpp"
#include "flow/losses.hpp"
#include "flow/router.hpp"
#include "flow/rule.hpp"
#include "flow/wire_sizes.hpp"
#include "rows/fabric.hpp"
#include "rows/flow_run.hpp"
#include "rows/transport.hpp"

namespace weftwork::flow {

struct Input : FlowInputRows {
  Job job;
  FabricView fabric;
  Layers layers;        // of the same tables as `live`; empty: there are none
  Rule rule;            // of routes where layers leave it open
  DetourRule detours;   // empty: there are none
  bool adapts = false;  // flows divide themselves between shortest paths and detours
  WireSizes wire{};
  LossRules losses{};

  [[nodiscard]] const NicRow& nic_behind(PortId port) const { return nics[fabric.node_device[fabric.owner(port)]]; }
};

}  // namespace weftwork::flow
