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

/// Rows by id.
template <typename I, typename T>
IdSpan<I, const T> rows_by(nb::handle input, const char* name) {
  return IdSpan<I, const T>(rows<T>(input, name));
}

/// The job of an input, which keeps the arrays alive.
inline flow::Job job_of(nb::handle input) {
  flow::Job job;
  job.seed = number<std::uint64_t>(input, "seed");
  job.ops = rows_by<OpId, OpRow>(input, "ops");
  job.streams = rows<StreamRow>(input, "streams");
  job.tables = rows<std::int64_t>(input, "tables");
  job.digits = rows<DigitRow>(input, "digits");
  job.collects = rows_by<flow::CollectId, flow::CollectRow>(input, "collects");
  job.axes = rows<flow::AxisRow>(input, "axes");
  job.rank_program = rows_by<RankId, ProgramId>(input, "rank_class");
  job.program_first_rank = rows_by<ProgramId, std::int64_t>(input, "class_first_rank");
  job.rank_host = rows_by<RankId, NodeId>(input, "rank_host");
  job.rank_ports = rows<PortId>(input, "rank_ports");
  job.rank_gpu = rows_by<RankId, GpuRow>(input, "rank_gpu");
  job.rank_factor = rows_by<RankId, double>(input, "rank_factor");
  return job;
}

/// The fabric of an input, which keeps the arrays alive.
inline flow::FabricView fabric_of(nb::handle input) {
  return {rows_by<NodeId, std::int8_t>(input, "node_kind"),      rows_by<NodeId, std::int8_t>(input, "node_tier"),
          rows_by<NodeId, DeviceId>(input, "node_device"),       rows_by<NodeId, std::int64_t>(input, "port_base"),
          rows_by<PortId, NodeId>(input, "port_node"),           rows_by<PortId, PortId>(input, "port_peer"),
          rows_by<PortId, std::int64_t>(input, "port_rate_bps"), rows_by<PortId, std::int64_t>(input, "port_delay_ps"),
          rows_by<DeviceId, SwitchRow>(input, "switches")};
}

}  // namespace python
}  // namespace weftwork
