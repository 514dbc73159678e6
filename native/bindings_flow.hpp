/// The part of the Python face that belongs to the flow engine.
#pragma once
#include "base/job.hpp"
#include "bindings.hpp"
#include "flow/job.hpp"
#include "flow/router.hpp"

namespace weftwork {

void bind_flow(nanobind::module_& module);
void bind_flow_fold(nanobind::module_& module);  // bindings_flow_fold.cpp

namespace python {

/// The job of an input, which keeps the arrays alive.
inline flow::Job job_of(nb::handle input) {
  flow::Job job;
  job.seed = number<std::uint64_t>(input, "seed");
  borrow(job.ops, input, "ops");
  job.streams = rows<StreamRow>(input, "streams");
  job.tables = rows<std::int64_t>(input, "tables");
  job.digits = rows<DigitRow>(input, "digits");
  borrow(job.collects, input, "collects");
  job.axes = rows<flow::AxisRow>(input, "axes");
  borrow(job.rank_program, input, "rank_program");
  borrow(job.program_first_rank, input, "program_first_rank");
  borrow(job.rank_host, input, "rank_host");
  job.rank_ports = rows<PortId>(input, "rank_ports");
  borrow(job.rank_gpu, input, "rank_gpu");
  borrow(job.rank_factor, input, "rank_factor");
  job.pins = Pins(rows<PinRow>(input, "pins"));
  return job;
}

/// The fabric of an input, which keeps the arrays alive.
inline flow::FabricView fabric_of(nb::handle input) {
  flow::FabricView fabric;
  borrow(fabric.node_kind, input, "node_kind");
  borrow(fabric.node_tier, input, "node_tier");
  borrow(fabric.node_device, input, "node_device");
  borrow(fabric.port_base, input, "port_base");
  borrow(fabric.port_node, input, "port_node");
  borrow(fabric.port_peer, input, "port_peer");
  borrow(fabric.port_rate_bps, input, "port_rate_bps");
  borrow(fabric.port_delay_ps, input, "port_delay_ps");
  borrow(fabric.switches, input, "switches");
  return fabric;
}

/// The layers of an input, which keeps the arrays alive.
inline flow::Layers layers_of(nb::handle input) {
  std::vector<flow::LayerTable> tables;
  for (const nb::handle each : nb::cast<nb::list>(input["layers"]))
    tables.push_back({rows<std::int32_t>(each, "next_port"), rows<std::int32_t>(each, "layer_of"),
                      number<std::int64_t>(each, "ways"), number<std::int64_t>(each, "pinned_ways")});
  IdSpan<NodeId, const std::int32_t> attachment;
  borrow(attachment, input, "node_attachment");
  return {std::move(tables), attachment, static_cast<std::size_t>(number<std::int64_t>(input, "attachments")),
          number<std::int64_t>(input, "spreads_ways") != 0};
}

/// The rule of an input's routes; the input keeps the arrays alive.
inline flow::Rule rule_of(nb::handle input) {
  flow::Rule rule;
  if (number<std::int64_t>(input, "up_down") != 0) rule.order = flow::Order::kUpDown;
  if (number<std::int64_t>(input, "fewest_global_hops") != 0) rule.order = flow::Order::kFewestGlobalHops;
  rule.in_dimension_order = number<std::int64_t>(input, "dimension_order") != 0;
  rule.global = number<std::int64_t>(input, "global_dimension");
  borrow(rule.dimension, input, "port_dimension");
  return rule;
}

/// The detours of an input, which keeps the arrays alive.
inline flow::DetourRule detours_of(nb::handle input) {
  flow::DetourRule detours;
  detours.among.order = rows<std::int32_t>(input, "detour_order");
  detours.among.base = rows<std::int64_t>(input, "detour_base");
  detours.among.group = rows<std::int32_t>(input, "detour_group");
  detours.among.by_group = number<std::int64_t>(input, "detour_by_group") != 0;
  borrow(detours.node_group, input, "node_group");
  return detours;
}

}  // namespace python
}  // namespace weftwork
