// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// Members of all inputs that cross by name. Included by bindings_records.hpp alone.
#pragma once
#include <array>
#include <cstddef>
#include <tuple>

#include "base/crossing.hpp"
#include "rows/fabric.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/flow_run.hpp"
#include "rows/job.hpp"
#include "rows/outcome.hpp"
#include "rows/packet_run.hpp"
#include "rows/policies.hpp"
#include "rows/transport.hpp"
#include "rows/waits.hpp"

namespace weftwork::python {

template <>
struct Members<TransportRow> {
  static constexpr const char* kInput = "TransportRow";
  template <typename Visit>
  static void each(TransportRow& input, const Visit& visit) {
    visit("mtu_bytes", input.mtu_bytes);
    visit("data_overhead_bytes", input.data_overhead_bytes);
    visit("first_extra_bytes", input.first_extra_bytes);
    visit("telemetry_bytes", input.telemetry_bytes);
    visit("ack_bytes", input.ack_bytes);
    visit("cnp_bytes", input.cnp_bytes);
    visit("credit_bytes", input.credit_bytes);
    visit("pause_frame_bytes", input.pause_frame_bytes);
    visit("interframe_bytes", input.interframe_bytes);
    visit("go_back_n", input.go_back_n);
    visit("reorder_tolerant", input.reorder_tolerant);
    visit("reorder_window_packets", input.reorder_window_packets);
    visit("ack_every", input.ack_every);
    visit("retransmission_timeout_ps", input.retransmission_timeout_ps);
    visit("retry_limit", input.retry_limit);
    visit("end_to_end_credits", input.end_to_end_credits);
    visit("selective_repeat", input.selective_repeat);
    visit("reorder_threshold_packets", input.reorder_threshold_packets);
    visit("resends_at_once", input.resends_at_once);
    visit("telemetry_hop_bytes", input.telemetry_hop_bytes);
    visit("echo_bytes", input.echo_bytes);
    visit("trim_bytes", input.trim_bytes);
    visit("timeout_low_ps", input.timeout_low_ps);
    visit("timeout_low_packets", input.timeout_low_packets);
    visit("link_credits", input.link_credits);
    visit("credit_quantum_bytes", input.credit_quantum_bytes);
    visit("in_any_order", input.in_any_order);
    visit("matches_any", input.matches_any);
    visit("inflight_cap_bytes", input.inflight_cap_bytes);
    visit("connection_state_bytes", input.connection_state_bytes);
    visit("host_packet_ps", input.host_packet_ps);
    visit("host_byte_ps", input.host_byte_ps);
    visit("replies_follow", input.replies_follow);
  }
};

template <>
struct Members<flow::WireSizesRow> {
  static constexpr const char* kInput = "flow::WireSizesRow";
  template <typename Visit>
  static void each(flow::WireSizesRow& input, const Visit& visit) {
    visit("mtu_bytes", input.mtu_bytes);
    visit("overhead_bytes", input.overhead_bytes);
    visit("first_extra_bytes", input.first_extra_bytes);
    visit("gap_bytes", input.gap_bytes);
    visit("ack_bytes", input.ack_bytes);
    visit("ack_every", input.ack_every);
  }
};

template <>
struct Members<RouteTable> {
  static constexpr const char* kInput = "RouteTable";
  template <typename Visit>
  static void each(RouteTable& input, const Visit& visit) {
    visit("group_of", input.group_of);
    visit("group_ptr", input.group_ptr);
    visit("group_ports", input.group_ports);
    visit("group_weights", input.group_weights);
    visit("second_of", input.second_of);
    visit("distance", input.distance);
    visit("layer_group", input.layer_group);
    visit("layer_of", input.layer_of);
    visit("pinned_ways", input.pinned_ways);
    visit("ways", input.ways);
  }
};

template <>
struct Members<PacketInputRows> {
  static constexpr const char* kInput = "PacketInputRows";
  template <typename Visit>
  static void each(PacketInputRows& input, const Visit& visit) {
    visit("seed", input.seed);
    visit("until_ps", input.until_ps);
    visit("node_kind", input.node_kind);
    visit("node_device", input.node_device);
    visit("port_base", input.port_base);
    visit("port_node", input.port_node);
    visit("port_peer", input.port_peer);
    visit("port_rate_bps", input.port_rate_bps);
    visit("port_delay_ps", input.port_delay_ps);
    visit("port_loss", input.port_loss);
    visit("port_corruption", input.port_corruption);
    visit("port_headroom_bytes", input.port_headroom_bytes);
    visit("port_kmin_bytes", input.port_kmin_bytes);
    visit("port_kmax_bytes", input.port_kmax_bytes);
    visit("port_credit_bytes", input.port_credit_bytes);
    visit("shared_bytes", input.shared_bytes);
    visit("node_tier", input.node_tier);
    visit("node_group", input.node_group);
    visit("attachment", input.attachment);
    visit("destination_number", input.destination_number);
    visit("port_stride", input.port_stride);
    visit("attach_node", input.attach_node);
    visit("port_kind", input.port_kind);
    visit("channel_rule", input.channel_rule);
    visit("detour_order", input.detour_order);
    visit("detour_base", input.detour_base);
    visit("detour_group", input.detour_group);
    visit("detour_by_group", input.detour_by_group);
    visit("switches", input.switches);
    visit("nics", input.nics);
    visit("class_priority", input.class_priority);
    visit("class_lossless", input.class_lossless);
    visit("control_class", input.control_class);
    visit("trim_class", input.trim_class);
    visit("virtual_channels", input.virtual_channels);
    visit("fabric_base_rtt_ps", input.fabric_base_rtt_ps);
    visit("instants", input.instants);
    visit("ops", input.ops);
    visit("streams", input.streams);
    visit("tables", input.tables);
    visit("digits", input.digits);
    visit("rank_program", input.rank_program);
    visit("rank_ports", input.rank_ports);
    visit("rank_gpu", input.rank_gpu);
    visit("tokens", input.tokens);
    visit("has_receives", input.has_receives);
    visit("pins", input.pins);
    visit("link_kinds", input.link_kinds);
    visit("has_telemetry", input.has_telemetry);
    visit("has_path_load", input.has_path_load);
    visit("echoes_time", input.echoes_time);
    visit("echoes_entropy", input.echoes_entropy);
    visit("extended", input.extended);
    visit("wide", input.wide);
    visit("keeps_segments", input.keeps_segments);
    visit("watch_ps", input.watch_ps);
    visit("stop_before_call", input.stop_before_call);
  }
};

template <>
struct Members<CongestionSettings> {
  static constexpr const char* kInput = "CongestionSettings";
  template <typename Visit>
  static void each(CongestionSettings& input, const Visit& visit) {
    visit("step_address", input.step_address);
    visit("receive_address", input.receive_address);
    visit("signals", input.signals);
    visit("receive_all", input.receive_all);
    visit("moves_departures", input.moves_departures);
    visit("params", input.params);
    visit("state", input.state);
    visit("receiver_state", input.receiver_state);
    visit("shared_state", input.shared_state);
  }
};

template <>
struct Members<PathSettings> {
  static constexpr const char* kInput = "PathSettings";
  template <typename Visit>
  static void each(PathSettings& input, const Visit& visit) {
    visit("step_address", input.step_address);
    visit("signals", input.signals);
    visit("per_message", input.per_message);
    visit("params", input.params);
    visit("state", input.state);
  }
};

template <>
struct Members<PortSettings> {
  static constexpr const char* kInput = "PortSettings";
  template <typename Visit>
  static void each(PortSettings& input, const Visit& visit) {
    visit("step_address", input.step_address);
    visit("queue", input.queue);
    visit("paused", input.paused);
    visit("origin", input.origin);
    visit("plain_ecmp", input.plain_ecmp);
    visit("hops_left", input.hops_left);
    visit("non_minimal", input.non_minimal);
    visit("channel", input.channel);
    visit("detour", input.detour);
    visit("via", input.via);
    visit("always", input.always);
    visit("at_delivery", input.at_delivery);
    visit("waits_for_routes", input.waits_for_routes);
    visit("layer_by_word", input.layer_by_word);
    visit("params", input.params);
    visit("state", input.state);
    visit("port_state", input.port_state);
  }
};

template <>
struct Members<SeriesRequest> {
  static constexpr const char* kInput = "SeriesRequest";
  template <typename Visit>
  static void each(SeriesRequest& input, const Visit& visit) {
    visit("every_ps", input.every_ps);
    visit("all_flows", input.all_flows);
    visit("row_limit", input.row_limit);
    visit("event_limit", input.event_limit);
    visit("timeline_bins", input.timeline_bins);
    visit("path_sample", input.path_sample);
    visit("ports", input.ports);
    visit("flows", input.flows);
    visit("state", input.state);
  }
};

template <>
struct Members<CaptureRequest> {
  static constexpr const char* kInput = "CaptureRequest";
  template <typename Visit>
  static void each(CaptureRequest& input, const Visit& visit) {
    visit("ports", input.ports);
    visit("row_limit", input.row_limit);
  }
};

template <>
struct Members<flow::FabricRows> {
  static constexpr const char* kInput = "flow::FabricRows";
  template <typename Visit>
  static void each(flow::FabricRows& input, const Visit& visit) {
    visit("node_kind", input.node_kind);
    visit("node_tier", input.node_tier);
    visit("node_device", input.node_device);
    visit("port_base", input.port_base);
    visit("port_node", input.port_node);
    visit("port_peer", input.port_peer);
    visit("port_rate_bps", input.port_rate_bps);
    visit("port_delay_ps", input.port_delay_ps);
    visit("switches", input.switches);
  }
};

template <>
struct Members<flow::JobRows> {
  static constexpr const char* kInput = "flow::JobRows";
  template <typename Visit>
  static void each(flow::JobRows& input, const Visit& visit) {
    visit("seed", input.seed);
    visit("ops", input.ops);
    visit("streams", input.streams);
    visit("tables", input.tables);
    visit("digits", input.digits);
    visit("collects", input.collects);
    visit("axes", input.axes);
    visit("rank_program", input.rank_program);
    visit("program_first_rank", input.program_first_rank);
    visit("rank_host", input.rank_host);
    visit("rank_ports", input.rank_ports);
    visit("rank_gpu", input.rank_gpu);
    visit("rank_factor", input.rank_factor);
    visit("pins", input.pins);
  }
};

template <>
struct Members<flow::RouteRuleRows> {
  static constexpr const char* kInput = "flow::RouteRuleRows";
  template <typename Visit>
  static void each(flow::RouteRuleRows& input, const Visit& visit) {
    visit("up_down", input.up_down);
    visit("dimension_order", input.dimension_order);
    visit("fewest_global_hops", input.fewest_global_hops);
    visit("port_dimension", input.port_dimension);
    visit("global_dimension", input.global_dimension);
    visit("detour_order", input.detour_order);
    visit("detour_base", input.detour_base);
    visit("detour_group", input.detour_group);
    visit("detour_by_group", input.detour_by_group);
    visit("adapts", input.adapts);
    visit("node_group", input.node_group);
  }
};

template <>
struct Members<flow::LayerTable> {
  static constexpr const char* kInput = "flow::LayerTable";
  template <typename Visit>
  static void each(flow::LayerTable& input, const Visit& visit) {
    visit("next_port", input.next_port);
    visit("layer_of", input.layer_of);
    visit("ways", input.ways);
    visit("pinned_ways", input.pinned_ways);
  }
};

template <>
struct Members<flow::LayersRows> {
  static constexpr const char* kInput = "flow::LayersRows";
  template <typename Visit>
  static void each(flow::LayersRows& input, const Visit& visit) {
    visit("node_attachment", input.node_attachment);
    visit("attachments", input.attachments);
    visit("spreads_ways", input.spreads_ways);
  }
};

template <>
struct Members<flow::FlowInputRows> {
  static constexpr const char* kInput = "flow::FlowInputRows";
  template <typename Visit>
  static void each(flow::FlowInputRows& input, const Visit& visit) {
    visit("until_ps", input.until_ps);
    visit("mode", input.mode);
    visit("tolerance", input.tolerance);
    visit("nics", input.nics);
    visit("live", input.live);
    visit("instants", input.instants);
    visit("tokens", input.tokens);
    visit("tier_of_port", input.tier_of_port);
    visit("port_loss", input.port_loss);
    visit("loss_rules", input.loss_rules);
    visit("folding", input.folding);
    visit("tiers", input.tiers);
    visit("tier_bins", input.tier_bins);
    visit("timeline_bins", input.timeline_bins);
    visit("has_details", input.has_details);
  }
};

template <>
struct Members<flow::RouterRows> {
  static constexpr const char* kInput = "flow::RouterRows";
  template <typename Visit>
  static void each(flow::RouterRows& input, const Visit& visit) {
    visit("mode", input.mode);
    visit("most_steps", input.most_steps);
  }
};

template <>
struct Members<flow::FoldRows> {
  static constexpr const char* kInput = "flow::FoldRows";
  template <typename Visit>
  static void each(flow::FoldRows& input, const Visit& visit) {
    visit("mode", input.mode);
    visit("folding", input.folding);
    visit("cell_limit", input.cell_limit);
    visit("core_slots", input.core_slots);
    visit("core_few", input.core_few);
    visit("link_fate", input.link_fate);
    visit("wire_factor", input.wire_factor);
    visit("host_rate_bps", input.host_rate_bps);
  }
};

template <>
struct Members<flow::FluidInput> {
  static constexpr const char* kInput = "flow::FluidInput";
  template <typename Visit>
  static void each(flow::FluidInput& input, const Visit& visit) {
    visit("capacity", input.capacity);
    visit("variable_ptr", input.variable_ptr);
    visit("hop_constraint", input.hop_constraint);
    visit("hop_weight", input.hop_weight);
    visit("start_at_ps", input.start_at_ps);
    visit("start_variable", input.start_variable);
    visit("start_amount", input.start_amount);
    visit("tolerance", input.tolerance);
    visit("check_every", input.check_every);
  }
};

/// All of them.
using Inputs = std::tuple<
      TransportRow, flow::WireSizesRow, RouteTable, PacketInputRows, CongestionSettings, PathSettings, PortSettings,
      SeriesRequest, CaptureRequest, flow::FabricRows, flow::JobRows, flow::RouteRuleRows, flow::LayerTable,
      flow::LayersRows, flow::FlowInputRows, flow::RouterRows, flow::FoldRows, flow::FluidInput>;

}  // namespace weftwork::python
