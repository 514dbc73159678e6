/// The input of the flow engine, arrays that Python makes (weftwork.engine.flow.flow_input), borrowed.
/// The owner (Python) keeps them alive as long as the engine.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/job.hpp"
#include "base/wiring.hpp"
#include "flow/fold.hpp"
#include "flow/job.hpp"
#include "flow/router.hpp"
#include "flow/wire_sizes.hpp"

namespace weftwork::flow {

struct Input {
  Job job;
  Ps until_ps = kNeverPs;
  Mode mode = Mode::kHashed;
  double tolerance = 1e-6;
  FabricView fabric;
  IdSpan<DeviceId, const NicRow> nics;
  std::span<const std::uint8_t> live;  // by table of routes and port: the links that it knows to be up
  Layers layers;                       // of the same tables; empty: there are none
  Rule rule;                           // of routes where layers leave it open
  DetourRule detours;                  // empty: there are none
  bool adapts = false;                 // flows divide themselves between shortest paths and detours
  std::span<const InstantRow> instants;
  std::int64_t tokens = 0;
  WireSizes wire{};
  Folding folding = Folding::kNever;
  std::int64_t timeline_bins = 0;  // of ports; 0: none
  std::int64_t tiers = 0;          // how many there are
  IdSpan<PortId, const std::int32_t> tier_of_port;
  std::int64_t tier_bins = 0;

  [[nodiscard]] const NicRow& nic_behind(PortId port) const { return nics[fabric.node_device[fabric.owner(port)]]; }
};

}  // namespace weftwork::flow
