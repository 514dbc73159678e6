/// The Python face of the packet engine, and the module. Arrays in, arrays out; the GIL is free while it runs.
#include "bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/flow_identity.hpp"
#include "base/invariant.hpp"
#include "base/version.hpp"
#include "bindings_flow.hpp"
#include "bindings_paths.hpp"
#include "packet/engine.hpp"
#include "packet/waits.hpp"

namespace {

using weftwork::python::fill;
using weftwork::python::named;
using weftwork::python::table;

template <typename Function>
Function function_at(std::uint64_t address) {
  return reinterpret_cast<Function>(static_cast<std::uintptr_t>(address));
}

weftwork::CongestionPolicy congestion_of(nb::handle row) {
  weftwork::CongestionPolicy policy;
  fill<weftwork::CongestionSettings>(policy, row);
  policy.step = function_at<weftwork::StepFunction>(policy.step_address);
  policy.receive = function_at<weftwork::ReceiveFunction>(policy.receive_address);
  return policy;
}

weftwork::PathPolicy path_of(nb::handle row) {
  weftwork::PathPolicy policy;
  fill<weftwork::PathSettings>(policy, row);
  policy.step = function_at<weftwork::StepFunction>(policy.step_address);
  return policy;
}

weftwork::PortPolicy port_of(nb::handle row) {
  weftwork::PortPolicy policy;
  fill<weftwork::PortSettings>(policy, row);
  policy.step = function_at<weftwork::PortFunction>(policy.step_address);
  return policy;
}

weftwork::Input input_of(nb::dict arrays) {
  weftwork::Input in;
  fill<weftwork::PacketInputRows>(in, arrays);
  in.channels = {.next = in.channel_rule, .kinds = in.link_kinds};
  in.detours = {.order = in.detour_order,
                .base = in.detour_base,
                .group = in.detour_group,
                .node = in.attach_node,
                .by_group = in.detour_by_group};
  for (const nb::handle table : nb::cast<nb::list>(arrays["routes"]))
    in.routes.push_back(named<weftwork::RouteTable>(table));
  in.transport = named<weftwork::TransportRow>(arrays["transport"]);
  in.congestion = congestion_of(arrays["congestion_control"]);
  in.keeps_segments = in.keeps_segments || in.congestion.moves_departures;
  in.path = path_of(arrays["path_selection"]);
  in.port = port_of(arrays["port_selection"]);
  in.series = named<weftwork::SeriesRequest>(arrays["series"]);
  in.capture = named<weftwork::CaptureRequest>(arrays["capture"]);
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

  /// The step that stopped the run, by the names of `PolicyFailure`, or None; the records are empty where the run did
  /// not stop before a call.
  [[nodiscard]] nb::object failure() const {
    if (!failure_) return nb::none();
    const auto raw = [](const std::vector<std::uint8_t>& v) { return nb::bytes(v.data(), v.size()); };
    nb::dict failure;
    failure["kind"] = failure_->kind;
    failure["of_receiver"] = failure_->of_receiver;
    failure["call"] = failure_->call;
    failure["state"] = raw(failure_->state);
    failure["shared"] = raw(failure_->shared);
    failure["signal"] = raw(failure_->signal);
    failure["candidates"] = raw(failure_->candidates);
    failure["ports"] = raw(failure_->ports);
    failure["via_changes"] = failure_->via_changes;
    failure["stands_still"] = failure_->stands_still;
    return failure;
  }

  /// One row.
  [[nodiscard]] auto progress() const {
    return table<weftwork::python::ProgressRow>(1, [&](weftwork::python::ProgressRow& row, std::size_t) {
      row = {.simulated_ps = engine_.simulated_ps(),
             .packet_hops = engine_.state().recordings.count.packet_hops,
             .delivered_bytes = engine_.state().job.delivered_bytes};
    });
  }

  [[nodiscard]] bool has_work() const { return engine_.has_work(); }

  [[nodiscard]] auto messages() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::python::MessageRow>(
        s.job.messages.size(), [&](weftwork::python::MessageRow& row, std::size_t i) {
          const weftwork::Message& m = s.job.messages[weftwork::MessageId(i)];
          const auto [source, destination, channel] = weftwork::flow_ends(flow_of(s.hosts, s.job, m));
          row = {.source = source,
                 .destination = destination,
                 .channel = channel,
                 .ordinal = m.ordinal,
                 .size_bytes = m.size_bytes,
                 .posted_at_ps = m.posted_at_ps,
                 .delivered_at_ps = m.delivered_at_ps,
                 .acked_at_ps = m.acked_at_ps};
        });
  }

  /// What the engine counts as it goes, and what stands in records that a packet touches.
  [[nodiscard]] auto ports() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::PortCounters>(s.fabric.ports.size(), [&](weftwork::PortCounters& row, std::size_t i) {
      const weftwork::PortId port(i);
      row = s.recordings.port_counters[port];
      row.frames = s.fabric.ports[port].frames;
      row.bytes = s.fabric.ports[port].bytes;
      for (const weftwork::TrafficClass klass : s.setup.classes()) {
        const weftwork::QueueId place = s.setup.at(port, klass);
        row.max_queue_bytes = std::max<std::int64_t>(row.max_queue_bytes, s.fabric.queues[place].max_bytes);
        row.max_ingress_bytes = std::max<std::int64_t>(row.max_ingress_bytes, s.fabric.ingresses[place].max_bytes);
      }
    });
  }

  [[nodiscard]] auto milestones() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::MilestoneRecord>(
        s.job.milestones.size(), [&](weftwork::MilestoneRecord& row, std::size_t i) { row = s.job.milestones[i]; });
  }

  [[nodiscard]] auto series() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::SeriesRow>(s.recordings.series.size(),
                                      [&](weftwork::SeriesRow& row, std::size_t i) { row = s.recordings.series[i]; });
  }

  /// Interval of the samples that were kept; longer than what was asked for where there would have been too many.
  [[nodiscard]] std::int64_t series_every_ps() const { return engine_.state().recordings.sample_every_ps; }

  [[nodiscard]] auto events() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::EventRow>(s.recordings.events.size(),
                                     [&](weftwork::EventRow& row, std::size_t i) { row = s.recordings.events[i]; });
  }

  [[nodiscard]] std::int64_t events_left_out() const { return engine_.state().recordings.events_left_out; }

  /// What started at the captured ports: the first rows of each, port after port.
  [[nodiscard]] auto captured() const {
    std::vector<weftwork::CaptureRow> found;
    for (const weftwork::CapturedPort& each : engine_.state().recordings.captured)
      found.insert(found.end(), each.rows.begin(), each.rows.end());
    return table<weftwork::CaptureRow>(found.size(), [&](weftwork::CaptureRow& row, std::size_t i) { row = found[i]; });
  }

  /// How many more started there.
  [[nodiscard]] std::int64_t captured_left_out() const {
    std::int64_t count = 0;
    for (const weftwork::CapturedPort& each : engine_.state().recordings.captured) count += each.left_out;
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
      row = {.at_ps = at_ps,
             .port = from.port,
             .bytes = from.bytes,
             .queue_bytes = from.queue_bytes,
             .marks = from.marks,
             .drops = from.drops,
             .pauses = from.pauses,
             .paused_ps = from.paused_ps};
    });
  }

  /// Length of a bin of the timeline; 0 without one.
  [[nodiscard]] std::int64_t timeline_bin_ps() { return engine_.timeline().bin_ps(); }

  /// Which egress ports the sampled packets of each queue pair took.
  [[nodiscard]] auto paths() const {
    std::vector<weftwork::python::PathRow> found;
    const auto& paths = engine_.state().recordings.paths;
    for (const weftwork::QueuePairId id : paths.ids())
      for (const weftwork::PathUse& use : paths[id])
        found.push_back(
            {.queue_pair = id.value, .port = use.port, .packets = use.packets, .queue_bytes = use.queue_bytes});
    return table<weftwork::python::PathRow>(found.size(),
                                            [&](weftwork::python::PathRow& row, std::size_t i) { row = found[i]; });
  }

  /// Source, destination and channel of every queue pair, in the order in which series name them.
  [[nodiscard]] auto queue_pairs() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::python::QueuePairRow>(
        s.hosts.queue_pairs.size(), [&](weftwork::python::QueuePairRow& row, std::size_t i) {
          const weftwork::QueuePair& qp = s.hosts.queue_pairs[weftwork::QueuePairId(i)];
          row = {.source = qp.source_rank.value, .destination = qp.destination_rank.value, .channel = qp.channel};
        });
  }

  [[nodiscard]] auto counters() const {
    const weftwork::State& s = engine_.state();
    return table<weftwork::Counters>(1, [&](weftwork::Counters& row, std::size_t) { row = s.recordings.count; });
  }

  /// What every stream still waits for.
  [[nodiscard]] auto waits() const {
    const std::vector<weftwork::WaitRow> found =
        weftwork::waits_of(engine_.state().setup, engine_.state().hosts, engine_.state().job);
    return table<weftwork::WaitRow>(found.size(), [&](weftwork::WaitRow& row, std::size_t i) { row = found[i]; });
  }

  /// The cycle of ports that ended the run, in order; empty where none did.
  [[nodiscard]] auto deadlock() const {
    const std::vector<weftwork::DeadlockRow>& found = engine_.state().recordings.deadlock;
    return table<weftwork::DeadlockRow>(found.size(),
                                        [&](weftwork::DeadlockRow& row, std::size_t i) { row = found[i]; });
  }

  /// Whether every program has run to its end and every message is acknowledged.
  [[nodiscard]] bool finished() const { return engine_.state().job.open_work == 0; }

  /// Whether something would have to be done after the end of simulated time.
  [[nodiscard]] bool clock_ended() const {
    return std::ranges::any_of(engine_.state().schedule.agendas, &weftwork::Agenda::outlasts_the_clock);
  }

 private:
  nb::dict input_;  // keeps the arrays alive
  weftwork::Engine engine_;
  std::optional<weftwork::PolicyFailure> failure_;
};

/// Bytes and fields of every record that crosses, by its struct.
nb::dict records() {
  nb::dict found;
  const auto add = [&]<typename Record>(std::type_identity<Record>) {
    using Known = weftwork::python::Description<Record>;
    nb::list fields;
    for (const weftwork::python::Field& each : Known::kFields) {
      nb::dict field;
      field["name"] = each.name;
      field["offset"] = each.offset;
      field["kind"] = std::string(1, each.kind);
      field["bytes"] = each.bytes;
      field["count"] = each.count;
      fields.append(field);
    }
    nb::dict record;
    record["bytes"] = sizeof(Record);
    record["fields"] = fields;
    found[Known::kRecord] = record;
  };
  [&]<typename... Record>(std::type_identity<std::tuple<Record...>>) {
    (add(std::type_identity<Record>()), ...);
  }(std::type_identity<weftwork::python::Records>());
  return found;
}

/// The sentence of every invariant, by its name.
nb::dict invariants() {
  nb::dict sentences;
  for (const weftwork::InvariantRow& row : weftwork::kInvariants)
    sentences[nb::str(row.name.data(), row.name.size())] = nb::str(row.sentence.data(), row.sentence.size());
  return sentences;
}

/// Members of every input that crosses by name, by its struct.
nb::dict inputs() {
  nb::dict found;
  const auto add = [&]<typename Input>(std::type_identity<Input>) {
    nb::list members;
    Input input{};
    weftwork::python::Members<Input>::each(input, [&](const char* name, const auto&) { members.append(name); });
    found[weftwork::python::Members<Input>::kInput] = members;
  };
  [&]<typename... Input>(std::type_identity<std::tuple<Input...>>) {
    (add(std::type_identity<Input>()), ...);
  }(std::type_identity<weftwork::python::Inputs>());
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
  nb::exception<weftwork::BrokenInvariant>(module, "BrokenInvariant");  // the engine is at fault, in its own words
  module.def("invariants", &invariants, nb::sig("def invariants() -> dict[str, str]"),
             "What always holds in a run: the sentence of each invariant, by its name.");
  module.def("records", &records, nb::sig("def records() -> dict[str, dict[str, object]]"),
             "Every record that crosses between Python and the core, by its struct: bytes and fields.");
  module.def("inputs", &inputs, nb::sig("def inputs() -> dict[str, list[str]]"),
             "Every input that crosses into the core by name, by its struct: members.");
  module.def("version", &weftwork::version, "The version of Weftwork that this core was built as.");
  nb::class_<PacketEngine>(module, "PacketEngine", "The packet engine on one input; see weftwork.engine.packet.")
      .def(nb::init<nb::dict>(), nb::arg("arrays"), nb::sig("def __init__(self, arrays: dict[str, object]) -> None"))
      .def("advance", &PacketEngine::advance, nb::arg("budget_s"))
      .def("failure", &PacketEngine::failure, nb::sig("def failure(self) -> dict[str, object] | None"))
      .def("progress", &PacketEngine::progress)
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
