/// The Python face of the flow engine. Arrays in, arrays out; the GIL is free while it runs.
#include "bindings.hpp"
#include "flow/engine.hpp"

namespace {

using weft::python::number;
using weft::python::rows;
using weft::python::table;

weft::flow::Job job_of(nb::dict plan) {
  weft::flow::Job job;
  job.seed = number<std::uint64_t>(plan, "seed");
  job.ops = rows<weft::OpRow>(plan, "ops");
  job.streams = rows<weft::StreamRow>(plan, "streams");
  job.tables = rows<std::int64_t>(plan, "tables");
  job.digits = rows<weft::DigitRow>(plan, "digits");
  job.collects = rows<weft::flow::CollectRow>(plan, "collects");
  job.axes = rows<weft::flow::AxisRow>(plan, "axes");
  job.rank_class = rows<std::int32_t>(plan, "rank_class");
  job.class_first_rank = rows<std::int64_t>(plan, "class_first_rank");
  job.rank_host = rows<std::int32_t>(plan, "rank_host");
  job.rank_ports = rows<std::int32_t>(plan, "rank_ports");
  job.rank_gpu = rows<weft::GpuRow>(plan, "rank_gpu");
  job.rank_factor = rows<double>(plan, "rank_factor");
  return job;
}

weft::flow::Input input_of(nb::dict plan) {
  weft::flow::Input in;
  in.job = job_of(plan);
  in.until_ps = number<std::int64_t>(plan, "until_ps");
  in.mode = static_cast<weft::flow::Mode>(number<std::int64_t>(plan, "mode"));
  in.tolerance = number<double>(plan, "tolerance");
  in.fabric = {rows<std::int8_t>(plan, "node_kind"),      rows<std::int8_t>(plan, "node_tier"),
               rows<std::int32_t>(plan, "node_device"),   rows<std::int64_t>(plan, "port_base"),
               rows<std::int32_t>(plan, "port_node"),     rows<std::int32_t>(plan, "port_peer"),
               rows<std::int64_t>(plan, "port_rate_bps"), rows<std::int64_t>(plan, "port_delay_ps"),
               rows<weft::SwitchRow>(plan, "switches")};
  in.nics = rows<weft::NicRow>(plan, "nics");
  in.live = rows<std::uint8_t>(plan, "live");
  in.instants = rows<weft::InstantRow>(plan, "instants");
  in.tokens = number<std::int64_t>(plan, "tokens");
  const nb::handle wire = plan["wire"];
  in.wire = {number<std::int64_t>(wire, "mtu_bytes"),         number<std::int64_t>(wire, "overhead_bytes"),
             number<std::int64_t>(wire, "first_extra_bytes"), number<std::int64_t>(wire, "gap_bytes"),
             number<std::int64_t>(wire, "ack_bytes"),         number<std::int64_t>(wire, "ack_every")};
  in.timeline_bins = number<std::int64_t>(plan, "timeline_bins");
  return in;
}

struct MessageRow {  // MESSAGE_DTYPE
  std::int64_t source, destination, channel, ordinal, size_bytes, posted_at_ps, delivered_at_ps, acked_at_ps;
};

struct ActorRow {  // ACTOR_DTYPE
  std::int64_t rank, ranks, program;
};

class FlowEngine {
 public:
  explicit FlowEngine(nb::dict plan) : plan_(std::move(plan)), engine_(input_of(plan_)) {}

  bool advance(double budget_s) {
    const nb::gil_scoped_release released;
    return engine_.advance(budget_s);
  }

  [[nodiscard]] bool finished() const { return engine_.finished(); }

  /// (simulated_ps, end_ps, events, solves, delivered_bytes).
  [[nodiscard]] nb::tuple progress() const {
    const weft::flow::State& s = engine_.state();
    return nb::make_tuple(s.now_ps, s.end_ps, s.events, s.solves, s.delivered_bytes);
  }

  [[nodiscard]] auto messages() const {
    const weft::flow::State& s = engine_.state();
    return table<MessageRow>(s.has_network ? 0 : s.messages.size(), [&](MessageRow& row, std::size_t i) {
      const weft::flow::Message& m = s.messages[i];
      const weft::flow::Lane& lane = s.lanes[static_cast<std::size_t>(m.connection)];
      row = {lane.source,  lane.destination, lane.channel,      m.ordinal,
             m.size_bytes, m.posted_at_ps,   m.delivered_at_ps, m.acked_at_ps};
    });
  }

  [[nodiscard]] auto carried() {
    const auto found = engine_.carried();
    return table<weft::flow::Carried>(found.size(), [&](weft::flow::Carried& row, std::size_t i) { row = found[i]; });
  }

  [[nodiscard]] auto marks() const {
    const auto& marks = engine_.state().marks;
    return table<weft::flow::MarkRow>(marks.size(), [&](weft::flow::MarkRow& row, std::size_t i) { row = marks[i]; });
  }

  [[nodiscard]] auto segments() const {
    const auto& found = engine_.state().segments;
    return table<weft::flow::SegmentRow>(found.size(),
                                         [&](weft::flow::SegmentRow& row, std::size_t i) { row = found[i]; });
  }

  [[nodiscard]] auto activities() const {
    const auto& found = engine_.state().activities;
    return table<weft::flow::ActivityRow>(found.size(),
                                          [&](weft::flow::ActivityRow& row, std::size_t i) { row = found[i]; });
  }

  [[nodiscard]] auto actors() const {
    const weft::flow::State& s = engine_.state();
    return table<ActorRow>(static_cast<std::size_t>(s.actors()), [&](ActorRow& row, std::size_t i) {
      const auto actor = static_cast<std::int32_t>(i);
      row = {s.rank_of(actor), s.ranks_of(actor), s.program_of(actor)};
    });
  }

 private:
  nb::dict plan_;  // keeps the arrays alive
  weft::flow::Engine engine_;
};

}  // namespace

void weft::python::bind_flow_engine(nb::module_& module) {
  nb::class_<FlowEngine>(module, "FlowEngine", "The flow engine on one plan; see weft.engine.flow.")
      .def(nb::init<nb::dict>(), nb::arg("plan"), nb::sig("def __init__(self, plan: dict[str, object]) -> None"))
      .def("advance", &FlowEngine::advance, nb::arg("budget_s"))
      .def("finished", &FlowEngine::finished)
      .def("progress", &FlowEngine::progress, nb::sig("def progress(self) -> tuple[int, int, int, int, int]"))
      .def("messages", &FlowEngine::messages)
      .def("carried", &FlowEngine::carried)
      .def("marks", &FlowEngine::marks)
      .def("segments", &FlowEngine::segments)
      .def("activities", &FlowEngine::activities)
      .def("actors", &FlowEngine::actors);
}
