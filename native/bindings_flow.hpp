/// The part of the Python face that belongs to the flow engine.
#pragma once
#include <cstddef>
#include <utility>
#include <vector>

#include "base/job.hpp"
#include "base/pins.hpp"
#include "bindings.hpp"
#include "flow/fabric_view.hpp"
#include "flow/job.hpp"
#include "flow/layers.hpp"
#include "flow/router.hpp"
#include "flow/rule.hpp"
#include "rows/flow_run.hpp"

namespace weftwork {

void bind_flow(nanobind::module_& module);
void bind_flow_fold(nanobind::module_& module);  // bindings_flow_fold.cpp

namespace python {

/// The job of an input, which keeps the arrays alive.
inline flow::Job job_of(nb::handle input) {
  flow::Job job;
  fill<flow::JobRows>(job, input);
  job.given = Pins(job.pins);
  return job;
}

/// The fabric of an input, which keeps the arrays alive.
inline flow::FabricView fabric_of(nb::handle input) {
  flow::FabricView fabric;
  fill<flow::FabricRows>(fabric, input);
  return fabric;
}

/// The layers of an input, which keeps the arrays alive.
inline flow::Layers layers_of(nb::handle input) {
  std::vector<flow::LayerTable> tables;
  for (const nb::handle each : nb::cast<nb::list>(input["layers"])) tables.push_back(named<flow::LayerTable>(each));
  const auto rows = named<flow::LayersRows>(input);
  return {std::move(tables), rows.node_attachment, static_cast<std::size_t>(rows.attachments), rows.spreads_ways};
}

/// The rule of an input's routes; the input keeps the arrays alive.
inline flow::Rule rule_of(const flow::RouteRuleRows& rows) {
  flow::Rule rule;
  if (rows.up_down) rule.order = flow::Order::kUpDown;
  if (rows.fewest_global_hops) rule.order = flow::Order::kFewestGlobalHops;
  rule.in_dimension_order = rows.dimension_order;
  rule.global = rows.global_dimension;
  rule.dimension = rows.port_dimension;
  return rule;
}

/// The detours of an input, which keeps the arrays alive.
inline flow::DetourRule detours_of(const flow::RouteRuleRows& rows) {
  flow::DetourRule detours;
  detours.among.order = rows.detour_order;
  detours.among.base = rows.detour_base;
  detours.among.group = rows.detour_group;
  detours.among.by_group = rows.detour_by_group;
  detours.node_group = rows.node_group;
  return detours;
}

}  // namespace python
}  // namespace weftwork
