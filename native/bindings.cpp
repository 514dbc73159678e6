/// The Python face of the packet engine, and the module. Arrays in, arrays out; the GIL is free while it runs.
#include "bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/flow_identity.hpp"
#include "base/version.hpp"
#include "bindings_flow.hpp"
#include "bindings_paths.hpp"
#include "packet/engine.hpp"
#include "packet/waits.hpp"

namespace {

using weftwork::python::borrow;
using weftwork::python::number;
using weftwork::python::rows;
using weftwork::python::table;

std::vector<std::uint8_t> bytes_of(nb::handle policy, const char* name) {
  const auto bytes = nb::cast<nb::bytes>(policy[name]);
  const auto* data = static_cast<const std::uint8_t*>(bytes.data());
  return {data, data + bytes.size()};
}

template <typename Function>
Function function_at(nb::handle policy, const char* name) {
  return reinterpret_cast<Function>(nb::cast<std::uintptr_t>(policy[name]));
}

weftwork::CongestionPolicy congestion_of(nb::handle row) {
  return {function_at<weftwork::StepFunction>(row, "step"),
          function_at<weftwork::ReceiveFunction>(row, "receive"),
          bytes_of(row, "params"),
          bytes_of(row, "state"),
          bytes_of(row, "receiver_state"),
          bytes_of(row, "shared_state"),
          number<std::uint32_t>(row, "signals"),
          number<bool>(row, "receive_all"),
          number<bool>(row, "moves_departures")};
}

weftwork::PathPolicy path_of(nb::handle row) {
  return {function_at<weftwork::StepFunction>(row, "step"), bytes_of(row, "params"), bytes_of(row, "state"),
          number<std::uint32_t>(row, "signals"), number<bool>(row, "per_message")};
}

weftwork::PortPolicy port_of(nb::handle row) {
  return {function_at<weftwork::PortFunction>(row, "step"),
          bytes_of(row, "params"),
          bytes_of(row, "state"),
          bytes_of(row, "port_state"),
          number<bool>(row, "queue"),
          number<bool>(row, "paused"),
          number<bool>(row, "origin"),
          number<bool>(row, "plain_ecmp"),
          number<bool>(row, "hops_left"),
          number<bool>(row, "non_minimal"),
          number<bool>(row, "channel"),
          number<bool>(row, "detour"),
          number<bool>(row, "via"),
          number<bool>(row, "always"),
          number<bool>(row, "at_delivery"),
          number<bool>(row, "waits_for_routes"),
          number<bool>(row, "layer_by_word")};
}

template <typename I>
std::vector<I> ids_of(nb::handle places) {
  std::vector<I> ids;
  for (const std::int32_t place : nb::cast<std::vector<std::int32_t>>(places)) ids.emplace_back(place);
  return ids;
}

std::vector<weftwork::StateField> state_of(nb::handle fields) {
  std::vector<weftwork::StateField> state;
  for (const nb::handle field : nb::cast<nb::list>(fields))
    state.push_back(
        {number<bool>(field, "of_path"), number<std::size_t>(field, "place"), number<bool>(field, "is_float")});
  return state;
}

weftwork::SeriesRequest series_of(nb::handle row) {
  return {number<std::int64_t>(row, "every_ps"),
          number<bool>(row, "all_flows"),
          number<std::int64_t>(row, "row_limit"),
          number<std::int64_t>(row, "event_limit"),
          number<std::int64_t>(row, "timeline_bins"),
          number<std::uint32_t>(row, "path_sample"),
          ids_of<weftwork::PortId>(row["ports"]),
          nb::cast<std::vector<std::uint64_t>>(row["flows"]),
          state_of(row["state"])};
}

weftwork::Input input_of(nb::dict arrays) {
  weftwork::Input in;
  in.seed = number<std::uint64_t>(arrays, "seed");
  in.until_ps = number<std::int64_t>(arrays, "until_ps");
  borrow(in.node_kind, arrays, "node_kind");
  borrow(in.node_device, arrays, "node_device");
  borrow(in.port_base, arrays, "port_base");
  borrow(in.port_node, arrays, "port_node");
  borrow(in.port_peer, arrays, "port_peer");
  borrow(in.port_rate_bps, arrays, "port_rate_bps");
  borrow(in.port_delay_ps, arrays, "port_delay_ps");
  borrow(in.port_loss, arrays, "port_loss");
  borrow(in.port_corruption, arrays, "port_corruption");
  borrow(in.port_headroom_bytes, arrays, "port_headroom_bytes");
  borrow(in.port_kmin_bytes, arrays, "port_kmin_bytes");
  borrow(in.port_kmax_bytes, arrays, "port_kmax_bytes");
  borrow(in.port_credit_bytes, arrays, "port_credit_bytes");
  borrow(in.shared_bytes, arrays, "shared_bytes");
  borrow(in.node_tier, arrays, "node_tier");
  borrow(in.node_group, arrays, "node_group");
  borrow(in.attachment, arrays, "attachment");
  borrow(in.destination_number, arrays, "destination_number");
  borrow(in.port_stride, arrays, "port_stride");
  borrow(in.port_kind, arrays, "port_kind");
  in.channels = {rows<std::int8_t>(arrays, "channel_rule"), number<std::int64_t>(arrays, "link_kinds")};
  in.detours = {rows<std::int32_t>(arrays, "detour_order"), rows<std::int64_t>(arrays, "detour_base"),
                rows<std::int32_t>(arrays, "detour_group"), rows<std::int32_t>(arrays, "attach_node"),
                number<bool>(arrays, "detour_by_group")};
  borrow(in.switches, arrays, "switches");
  borrow(in.nics, arrays, "nics");
  borrow(in.class_priority, arrays, "class_priority");
  borrow(in.class_lossless, arrays, "class_lossless");
  in.control_class = weftwork::TrafficClass(number<std::int64_t>(arrays, "control_class"));
  for (const nb::handle table : nb::cast<nb::list>(arrays["routes"]))
    in.routes.push_back({rows<std::int32_t>(table, "group_of"), rows<std::int64_t>(table, "group_ptr"),
                         rows<std::int32_t>(table, "group_ports"), rows<std::int32_t>(table, "group_weights"),
                         rows<std::int32_t>(table, "second_of"), rows<std::int16_t>(table, "distance"),
                         rows<std::int32_t>(table, "layer_group"), rows<std::int32_t>(table, "layer_of"),
                         number<std::int64_t>(table, "pinned_ways"), number<std::int64_t>(table, "ways")});
  in.pins = rows<weftwork::PinRow>(arrays, "pins");
  in.trim_class = weftwork::TrafficClass(number<std::int64_t>(arrays, "trim_class"));
  in.virtual_channels = number<std::int32_t>(arrays, "virtual_channels");
  in.instants = rows<weftwork::InstantRow>(arrays, "instants");
  in.ops = rows<weftwork::OpRow>(arrays, "ops");
  in.streams = rows<weftwork::StreamRow>(arrays, "streams");
  in.tables = rows<std::int64_t>(arrays, "tables");
  borrow(in.rank_program, arrays, "rank_program");
  in.rank_ports = rows<weftwork::PortId>(arrays, "rank_ports");
  in.digits = rows<weftwork::DigitRow>(arrays, "digits");
  borrow(in.rank_gpu, arrays, "rank_gpu");
  in.tokens = number<std::int64_t>(arrays, "tokens");
  in.has_receives = number<bool>(arrays, "has_receives");
  in.has_telemetry = number<bool>(arrays, "has_telemetry");
  in.has_path_load = number<bool>(arrays, "has_path_load");
  in.echoes_time = number<bool>(arrays, "echoes_time");
  in.echoes_entropy = number<bool>(arrays, "echoes_entropy");
  in.extended = number<bool>(arrays, "extended");
  in.wide = number<bool>(arrays, "wide");
  in.fabric_base_rtt_ps = number<std::int64_t>(arrays, "fabric_base_rtt_ps");
  in.watch_ps = number<std::int64_t>(arrays, "watch_ps");
  in.stop_before_call = number<std::int64_t>(arrays, "stop_before_call");
  in.transport = weftwork::python::named<weftwork::TransportRow>(arrays["transport"]);
  in.congestion = congestion_of(arrays["congestion_control"]);
  in.keeps_segments = in.congestion.moves_departures || number<bool>(arrays, "keeps_segments");
  in.path = path_of(arrays["path_selection"]);
  in.port = port_of(arrays["port_selection"]);
  in.series = series_of(arrays["series"]);
  in.capture = {ids_of<weftwork::PortId>(arrays["capture"]["ports"]),
                number<std::int64_t>(arrays["capture"], "row_limit")};
  return in;
}

class PacketEngine {
 public:
  explicit PacketEngine(nb::dict input) : input_(std::move(input)), engine_(input_of(input_)) {}

  /// About `budget_s` seconds of simulation; True at the end, False if there is more to do.
  bool advance(double budget_s) {
    const nb::gil_scoped_release released;
    try {
      return engine_.advance(budget_s);
    } catch (const weftwork::PolicyStop& stop) {
      failure_ = stop.failure;
      return true;
    }
  }

  /// (kind, of the receiver, call, state, shared, signal, candidates, ports, changes of `via` before) of the
  /// step that stopped the run, or None; the records are empty where the run did not stop before a call.
  [[nodiscard]] nb::object failure() const {
    if (!failure_) return nb::none();
    const auto raw = [](const std::vector<std::uint8_t>& v) { return nb::bytes(v.data(), v.size()); };
    return nb::make_tuple(failure_->kind, failure_->of_receiver, failure_->call, raw(failure_->state),
                          raw(failure_->shared), raw(failure_->signal), raw(failure_->candidates), raw(failure_->ports),
                          failure_->via_changes);
  }

  /// Whether the step that stopped the run set a timer to its own instant once too often.
  [[nodiscard]] bool stands_still() const { return failure_ && failure_->stands_still; }

  /// (simulated_ps, packet_hops, delivered_bytes).
  [[nodiscard]] nb::tuple progress() const {
    return nb::make_tuple(engine_.simulated_ps(), engine_.state().count.packet_hops, engine_.state().delivered_bytes);
  }

  [[nodiscard]] bool has_work() const { return engine_.has_work(); }

  [[nodiscard]] auto messages() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::python::MessageRow>(s.messages.size(), [&](weftwork::python::MessageRow& row,
                                                                      std::size_t i) {
      const weftwork::Message& m = s.messages[weftwork::MessageId(i)];
      const auto [source, destination, channel] = weftwork::flow_ends(s.flow_of(m));
      row = {source, destination, channel, m.ordinal, m.size_bytes, m.posted_at_ps, m.delivered_at_ps, m.acked_at_ps};
    });
  }

  [[nodiscard]] auto ports() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::python::PortRow>(s.ports.size(), [&](weftwork::python::PortRow& row, std::size_t i) {
      const weftwork::PortId port(i);
      const weftwork::PortCounters& c = s.port_counters[port];
      std::int64_t max_queue = 0;
      std::int64_t max_ingress = 0;
      for (const weftwork::TrafficClass klass : s.classes()) {
        max_queue = std::max<std::int64_t>(max_queue, s.queues[s.at(port, klass)].max_bytes);
        max_ingress = std::max<std::int64_t>(max_ingress, s.ingresses[s.at(port, klass)].max_bytes);
      }
      row = {s.ports[port].frames, s.ports[port].bytes, c.drops,     c.marks, c.pauses_sent,   c.resumes_sent,
             c.paused_ps,          max_queue,           max_ingress, c.trims, c.credit_frames, c.nic_state_bytes,
             c.max_early_packets};
    });
  }

  [[nodiscard]] auto milestones() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::MilestoneRecord>(
        s.milestones.size(), [&](weftwork::MilestoneRecord& row, std::size_t i) { row = s.milestones[i]; });
  }

  [[nodiscard]] auto series() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::SeriesRow>(s.series.size(),
                                      [&](weftwork::SeriesRow& row, std::size_t i) { row = s.series[i]; });
  }

  /// Interval of the samples that were kept; longer than what was asked for where there would have been too many.
  [[nodiscard]] std::int64_t series_every_ps() const { return engine_.state().sample_every_ps; }

  [[nodiscard]] auto events() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::EventRow>(s.events.size(),
                                     [&](weftwork::EventRow& row, std::size_t i) { row = s.events[i]; });
  }

  [[nodiscard]] std::int64_t events_left_out() const { return engine_.state().events_left_out; }

  /// What started at the captured ports: the first rows of each, port after port.
  [[nodiscard]] auto captured() const {
    std::vector<weftwork::CaptureRow> found;
    for (const weftwork::CapturedPort& each : engine_.state().captured)
      found.insert(found.end(), each.rows.begin(), each.rows.end());
    return table<weftwork::CaptureRow>(found.size(), [&](weftwork::CaptureRow& row, std::size_t i) { row = found[i]; });
  }

  /// How many more started there.
  [[nodiscard]] std::int64_t captured_left_out() const {
    std::int64_t count = 0;
    for (const weftwork::CapturedPort& each : engine_.state().captured) count += each.left_out;
    return count;
  }

  /// What every port did in each bin; asked for once, at the end of the run or where it was interrupted.
  [[nodiscard]] auto timeline() {
    const weftwork::Timeline& timeline = engine_.timeline();
    const auto& rows = timeline.rows();
    return table<weftwork::python::TimelineRow>(rows.size(), [&](weftwork::python::TimelineRow& row, std::size_t i) {
      const weftwork::Timeline::Row& from = rows[i];
      const weftwork::Ps at_ps =
          from.bin == rows.back().bin ? timeline.last_at_ps() : (from.bin + 1) * timeline.bin_ps();
      row = {at_ps, from.port, from.bytes, from.queue_bytes, from.marks, from.drops, from.pauses, from.paused_ps};
    });
  }

  /// Length of a bin of the timeline; 0 without one.
  [[nodiscard]] std::int64_t timeline_bin_ps() { return engine_.timeline().bin_ps(); }

  /// Which egress ports the sampled packets of each queue pair took.
  [[nodiscard]] auto paths() const {
    std::vector<weftwork::python::PathRow> found;
    const auto& paths = engine_.state().paths;
    for (const weftwork::QueuePairId id : paths.ids())
      for (const weftwork::PathUse& use : paths[id])
        found.push_back({id.value, use.port, use.packets, use.queue_bytes});
    return table<weftwork::python::PathRow>(found.size(),
                                            [&](weftwork::python::PathRow& row, std::size_t i) { row = found[i]; });
  }

  /// Source, destination and channel of every queue pair, in the order in which series name them.
  [[nodiscard]] auto queue_pairs() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::python::QueuePairRow>(
        s.queue_pairs.size(), [&](weftwork::python::QueuePairRow& row, std::size_t i) {
          const weftwork::QueuePair& qp = s.queue_pairs[weftwork::QueuePairId(i)];
          row = {qp.source_rank.value, qp.destination_rank.value, qp.channel};
        });
  }

  [[nodiscard]] auto counters() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::Counters>(1, [&](weftwork::Counters& row, std::size_t) { row = s.count; });
  }

  /// What every stream still waits for.
  [[nodiscard]] auto waits() const {
    const std::vector<weftwork::WaitRow> found = weftwork::waits_of(engine_.state());
    return table<weftwork::WaitRow>(found.size(), [&](weftwork::WaitRow& row, std::size_t i) { row = found[i]; });
  }

  /// The cycle of ports that ended the run, in order; empty where none did.
  [[nodiscard]] auto deadlock() const {
    const std::vector<weftwork::DeadlockRow>& found = engine_.state().deadlock;
    return table<weftwork::DeadlockRow>(found.size(),
                                        [&](weftwork::DeadlockRow& row, std::size_t i) { row = found[i]; });
  }

  /// Whether every program has run to its end and every message is acknowledged.
  [[nodiscard]] bool finished() const { return engine_.state().open_work == 0; }

  /// Whether something would have to be done after the end of simulated time.
  [[nodiscard]] bool clock_ended() const {
    return std::ranges::any_of(engine_.state().agendas, &weftwork::Agenda::outlasts_the_clock);
  }

 private:
  nb::dict input_;  // keeps the arrays alive
  weftwork::Engine engine_;
  std::optional<weftwork::PolicyFailure> failure_;
};

/// (struct, dtype, bytes, [(field, offset, kind, bytes, count), ...]) of every record that crosses.
nb::list records() {
  nb::list found;
  const auto add = [&]<typename Record>(std::type_identity<Record>) {
    using Known = weftwork::python::Description<Record>;
    nb::list fields;
    for (const weftwork::python::Field& each : Known::kFields)
      fields.append(nb::make_tuple(each.name, each.offset, std::string(1, each.kind), each.bytes, each.count));
    found.append(nb::make_tuple(Known::kRecord, Known::kDtype, sizeof(Record), fields));
  };
  [&]<typename... Record>(std::type_identity<std::tuple<Record...>>) {
    (add(std::type_identity<Record>()), ...);
  }(std::type_identity<weftwork::python::Records>());
  return found;
}

}  // namespace

std::pair<const void*, std::size_t> weftwork::python::column(nb::handle plan, const char* name,
                                                             nb::dlpack::dtype type) {
  using Column = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  Column array;
  if (!nb::try_cast<Column>(plan[name], array, false) || array.dtype() != type)
    throw nb::type_error((std::string("'") + name + "' has another type or shape than the engine's").c_str());
  return {array.data(), array.shape(0)};
}

weftwork::python::Bytes weftwork::python::new_bytes(std::size_t count) {
  auto owner = std::make_unique<std::uint8_t[]>(count);
  std::uint8_t* data = owner.get();
  nb::capsule capsule(owner.release(), [](void* p) noexcept { delete[] static_cast<std::uint8_t*>(p); });
  return {data, {count}, capsule};
}

NB_MODULE(_native, module) {
  module.doc() = "Weftwork's native core.";
  nb::exception<weftwork::LimitError>(module, "LimitError");  // what the engine cannot carry, in its own words
  module.def("records", &records,
             nb::sig("def records() -> list[tuple[str, str, int, list[tuple[str, int, str, int, int]]]]"),
             "Every record that crosses between Python and the core: struct, dtype, bytes and fields.");
  module.def("version", &weftwork::version, "The version of Weftwork that this core was built as.");
  nb::class_<PacketEngine>(module, "PacketEngine", "The packet engine on one input; see weftwork.engine.packet.")
      .def(nb::init<nb::dict>(), nb::arg("arrays"), nb::sig("def __init__(self, arrays: dict[str, object]) -> None"))
      .def("advance", &PacketEngine::advance, nb::arg("budget_s"))
      .def("failure", &PacketEngine::failure,
           nb::sig("def failure(self) -> tuple[str, bool, int, bytes, bytes, bytes, bytes, bytes, bool] | None"))
      .def("stands_still", &PacketEngine::stands_still)
      .def("progress", &PacketEngine::progress, nb::sig("def progress(self) -> tuple[int, int, int]"))
      .def("has_work", &PacketEngine::has_work)
      .def("finished", &PacketEngine::finished)
      .def("clock_ended", &PacketEngine::clock_ended)
      .def("messages", &PacketEngine::messages)
      .def("ports", &PacketEngine::ports)
      .def("milestones", &PacketEngine::milestones)
      .def("series", &PacketEngine::series)
      .def("series_every_ps", &PacketEngine::series_every_ps)
      .def("events", &PacketEngine::events)
      .def("events_left_out", &PacketEngine::events_left_out)
      .def("captured", &PacketEngine::captured)
      .def("captured_left_out", &PacketEngine::captured_left_out)
      .def("timeline", &PacketEngine::timeline)
      .def("timeline_bin_ps", &PacketEngine::timeline_bin_ps)
      .def("paths", &PacketEngine::paths)
      .def("queue_pairs", &PacketEngine::queue_pairs)
      .def("counters", &PacketEngine::counters)
      .def("waits", &PacketEngine::waits)
      .def("deadlock", &PacketEngine::deadlock);
  weftwork::bind_flow(module);
  weftwork::bind_flow_fold(module);
  weftwork::bind_paths(module);
  weftwork::python::bind_flow_engine(module);
}
