/// The part of the Python face that belongs to the flow engine.
#pragma once
#include "base/job.hpp"
#include "bindings.hpp"
#include "flow/job.hpp"
#include "flow/paths.hpp"

namespace weftwork {

void bind_flow(nanobind::module_& module);
void bind_flow_fold(nanobind::module_& module);  // bindings_flow_fold.cpp

namespace python {

/// The job of a plan, which keeps the arrays alive.
inline flow::Job job_of(nb::handle plan) {
  flow::Job job;
  job.seed = number<std::uint64_t>(plan, "seed");
  job.ops = rows<OpRow>(plan, "ops");
  job.streams = rows<StreamRow>(plan, "streams");
  job.tables = rows<std::int64_t>(plan, "tables");
  job.digits = rows<DigitRow>(plan, "digits");
  job.collects = rows<flow::CollectRow>(plan, "collects");
  job.axes = rows<flow::AxisRow>(plan, "axes");
  job.rank_class = rows<std::int32_t>(plan, "rank_class");
  job.class_first_rank = rows<std::int64_t>(plan, "class_first_rank");
  job.rank_host = rows<std::int32_t>(plan, "rank_host");
  job.rank_ports = rows<std::int32_t>(plan, "rank_ports");
  job.rank_gpu = rows<GpuRow>(plan, "rank_gpu");
  job.rank_factor = rows<double>(plan, "rank_factor");
  return job;
}

/// The fabric of a plan, which keeps the arrays alive.
inline flow::FabricView fabric_of(nb::handle plan) {
  return {rows<std::int8_t>(plan, "node_kind"),      rows<std::int8_t>(plan, "node_tier"),
          rows<std::int32_t>(plan, "node_device"),   rows<std::int64_t>(plan, "port_base"),
          rows<std::int32_t>(plan, "port_node"),     rows<std::int32_t>(plan, "port_peer"),
          rows<std::int64_t>(plan, "port_rate_bps"), rows<std::int64_t>(plan, "port_delay_ps"),
          rows<SwitchRow>(plan, "switches")};
}

}  // namespace python
}  // namespace weftwork
