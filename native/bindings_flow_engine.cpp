/// The Python face of the flow engine. Arrays in, arrays out; the GIL is free while it runs.
#include "bindings.hpp"
#include "bindings_flow.hpp"
#include "flow/engine.hpp"
#include "flow/waits.hpp"
#include "packet/failures.hpp"

namespace {

using weftwork::python::borrow;
using weftwork::python::detours_of;
using weftwork::python::fabric_of;
using weftwork::python::job_of;
using weftwork::python::layers_of;
using weftwork::python::number;
using weftwork::python::rows;
using weftwork::python::rule_of;
using weftwork::python::table;

weftwork::flow::Input flow_input_of(nb::dict input) {
  weftwork::flow::Input in;
  in.job = job_of(input);
  in.until_ps = number<std::int64_t>(input, "until_ps");
  in.mode = static_cast<weftwork::flow::Mode>(number<std::int64_t>(input, "mode"));
  in.tolerance = number<double>(input, "tolerance");
  in.fabric = fabric_of(input);
  borrow(in.nics, input, "nics");
  in.live = rows<std::uint8_t>(input, "live");
  in.layers = layers_of(input);
  in.rule = rule_of(input);
  in.detours = detours_of(input);
  in.adapts = number<std::int64_t>(input, "adapts") != 0;
  in.instants = rows<weftwork::InstantRow>(input, "instants");
  in.tokens = number<std::int64_t>(input, "tokens");
  in.wire = weftwork::python::named<weftwork::flow::WireSizes>(input["wire"]);
  in.folding = static_cast<weftwork::flow::Folding>(number<std::int64_t>(input, "folding"));
  in.tiers = number<std::int64_t>(input, "tiers");
  borrow(in.tier_of_port, input, "tier_of_port");
  in.tier_bins = number<std::int64_t>(input, "tier_bins");
  in.timeline_bins = number<std::int64_t>(input, "timeline_bins");
  return in;
}

weftwork::flow::Engine made(weftwork::flow::Input input) {
  try {
    return weftwork::flow::Engine(std::move(input));
  } catch (const weftwork::flow::NoPath& none) {
    throw weftwork::LimitError("no path leads from NIC port " + std::to_string(none.from.value) + " to " +
                               std::to_string(none.to.value) + ", between which the job sends");
  }
}

class FlowEngine {
 public:
  explicit FlowEngine(nb::dict input) : input_(std::move(input)), engine_(made(flow_input_of(input_))) {}

  bool advance(double budget_s) {
    const nb::gil_scoped_release released;
    return engine_.advance(budget_s);
  }

  void restart(std::int64_t variant) { engine_.restart(static_cast<weftwork::flow::Variant>(variant)); }

  [[nodiscard]] bool is_approximate() const {
    const auto* network = engine_.state().network;
    return network != nullptr && network->approximate;
  }

  /// (ranks, actors, activities, cells of them, links, cells of them, activities in the core, rounds); zeros where
  /// every message was posted by itself.
  [[nodiscard]] nb::tuple folding() const {
    const auto* folded = engine_.state().ground.folded.get();
    const weftwork::flow::FoldFacts f = folded == nullptr ? weftwork::flow::FoldFacts{} : folded->facts;
    return nb::make_tuple(f.ranks, f.actors, f.activities, f.activity_cells, f.links, f.link_cells, f.kept, f.rounds);
  }

  /// Which ports the messages of each connection between servers took, the last path of each; none where they are
  /// spread.
  [[nodiscard]] auto paths() const {
    const weftwork::flow::State& s = engine_.state();
    std::vector<weftwork::python::LaneRow> found;
    for (const weftwork::flow::Lane& lane : s.lanes) {
      if (s.router->splits() || lane.inside || lane.path.is_none()) continue;
      for (const weftwork::flow::Hop& hop : s.paths[lane.path].path.hops)
        if (s.links.is_port(hop.link))
          found.push_back({lane.source.value, lane.destination.value, lane.channel, hop.link.value, lane.packets});
    }
    return table<weftwork::python::LaneRow>(found.size(),
                                            [&](weftwork::python::LaneRow& row, std::size_t i) { row = found[i]; });
  }

  /// Bytes of each bin and tier, then flows on it (mean over the bin), row by row.
  [[nodiscard]] auto tiers() const {
    const weftwork::flow::State& s = engine_.state();
    const auto columns = static_cast<std::size_t>(s.in.tiers);
    return table<weftwork::python::TierRow>(
        s.tier_bytes.count() * columns, [&](weftwork::python::TierRow& row, std::size_t i) {
          const std::size_t bin = i / columns;
          const double bin_ps = static_cast<double>(s.tier_flows.bin_ps());
          row = {static_cast<std::int64_t>(bin) * s.tier_bytes.bin_ps(),
                 std::min(static_cast<std::int64_t>(bin + 1) * s.tier_bytes.bin_ps(), std::max(s.now_ps, s.end_ps)),
                 static_cast<std::int64_t>(i % columns), s.tier_bytes.at(bin, i % columns),
                 bin < s.tier_flows.count() ? s.tier_flows.at(bin, i % columns) / bin_ps : 0.0};
        });
  }

  /// Bytes of each bin and port, gaps included; a bin and a port are a row, bins of one length.
  [[nodiscard]] auto timeline() const {
    const weftwork::flow::State& s = engine_.state();
    const std::size_t ports = s.in.fabric.port_rate_bps.size();
    return table<double>(s.port_bytes.count() * ports, [&](double& bytes, std::size_t i) {
      const weftwork::PortId bundle = s.router->bundle_of_port(weftwork::PortId(i % ports));
      bytes = s.port_bytes.at(i / ports, bundle.index());
    });
  }
  [[nodiscard]] std::int64_t timeline_bin_ps() const { return engine_.state().port_bytes.bin_ps(); }

  [[nodiscard]] bool finished() const { return engine_.finished(); }

  [[nodiscard]] bool clock_ended() const { return engine_.clock_ended(); }

  /// (simulated_ps, end_ps, events, solves, delivered_bytes).
  [[nodiscard]] nb::tuple progress() const {
    const weftwork::flow::State& s = engine_.state();
    return nb::make_tuple(s.now_ps, s.end_ps, s.events, s.solves, s.delivered_bytes);
  }

  [[nodiscard]] auto messages() const {
    const weftwork::flow::State& s = engine_.state();
    return table<weftwork::python::MessageRow>(
        s.network != nullptr ? 0 : s.messages.size(), [&](weftwork::python::MessageRow& row, std::size_t i) {
          const weftwork::flow::Message& m = s.messages.items()[i];
          const weftwork::flow::Lane& lane = s.lanes[m.lane];
          row = {lane.source.value, lane.destination.value, lane.channel,      m.ordinal,
                 m.size_bytes,      m.posted_at_ps,         m.delivered_at_ps, m.acked_at_ps};
        });
  }

  [[nodiscard]] auto carried() {
    const auto found = engine_.carried();
    return table<weftwork::flow::Carried>(found.size(),
                                          [&](weftwork::flow::Carried& row, std::size_t i) { row = found.items()[i]; });
  }

  [[nodiscard]] auto milestones() const {
    const auto& milestones = engine_.state().milestones;
    return table<weftwork::flow::MilestoneRow>(
        milestones.size(), [&](weftwork::flow::MilestoneRow& row, std::size_t i) { row = milestones[i]; });
  }

  [[nodiscard]] auto segments() const {
    const auto& found = engine_.state().segments;
    return table<weftwork::flow::SegmentRow>(found.size(),
                                             [&](weftwork::flow::SegmentRow& row, std::size_t i) { row = found[i]; });
  }

  [[nodiscard]] auto activities() const {
    const auto& found = engine_.state().activities;
    return table<weftwork::flow::ActivityRow>(found.size(),
                                              [&](weftwork::flow::ActivityRow& row, std::size_t i) { row = found[i]; });
  }

  /// What every stream still waits for.
  [[nodiscard]] auto waits() const {
    const std::vector<weftwork::WaitRow> found = weftwork::flow::waits_of(engine_.state());
    return table<weftwork::WaitRow>(found.size(), [&](weftwork::WaitRow& row, std::size_t i) { row = found[i]; });
  }

  [[nodiscard]] auto actors() const {
    const weftwork::flow::State& s = engine_.state();
    return table<weftwork::python::ActorRow>(s.actors().size(), [&](weftwork::python::ActorRow& row, std::size_t i) {
      const weftwork::flow::ActorId actor(i);
      row = {s.rank_of(actor).value, s.ranks_of(actor), s.program_of(actor).value};
    });
  }

 private:
  nb::dict input_;  // keeps the arrays alive
  weftwork::flow::Engine engine_;
};

}  // namespace

void weftwork::python::bind_flow_engine(nb::module_& module) {
  nb::class_<FlowEngine>(module, "FlowEngine", "The flow engine on one input; see weftwork.engine.flow.run.")
      .def(nb::init<nb::dict>(), nb::arg("arrays"), nb::sig("def __init__(self, arrays: dict[str, object]) -> None"))
      .def("advance", &FlowEngine::advance, nb::arg("budget_s"))
      .def("restart", &FlowEngine::restart, nb::arg("variant"))
      .def("is_approximate", &FlowEngine::is_approximate)
      .def("folding", &FlowEngine::folding,
           nb::sig("def folding(self) -> tuple[int, int, int, int, int, int, int, int]"))
      .def("paths", &FlowEngine::paths)
      .def("tiers", &FlowEngine::tiers)
      .def("timeline", &FlowEngine::timeline)
      .def("timeline_bin_ps", &FlowEngine::timeline_bin_ps)
      .def("finished", &FlowEngine::finished)
      .def("clock_ended", &FlowEngine::clock_ended)
      .def("progress", &FlowEngine::progress, nb::sig("def progress(self) -> tuple[int, int, int, int, int]"))
      .def("messages", &FlowEngine::messages)
      .def("carried", &FlowEngine::carried)
      .def("milestones", &FlowEngine::milestones)
      .def("segments", &FlowEngine::segments)
      .def("activities", &FlowEngine::activities)
      .def("actors", &FlowEngine::actors)
      .def("waits", &FlowEngine::waits);
}
