/// The Python face of the flow engine. Arrays in, arrays out; the GIL is free while it runs.
#include <algorithm>
#include <string>
#include <utility>

#include "base/limit_error.hpp"
#include "bindings.hpp"
#include "bindings_flow.hpp"
#include "flow/engine.hpp"
#include "flow/waits.hpp"

namespace {

using weftwork::python::detours_of;
using weftwork::python::fabric_of;
using weftwork::python::fill;
using weftwork::python::job_of;
using weftwork::python::layers_of;
using weftwork::python::named;
using weftwork::python::rule_of;
using weftwork::python::table;
using weftwork::python::taken;

weftwork::flow::Input flow_input_of(nb::dict input) {
  weftwork::flow::Input in;
  fill<weftwork::flow::FlowInputRows>(in, input);
  in.job = job_of(input);
  in.fabric = fabric_of(input);
  in.layers = layers_of(input);
  const auto routes = named<weftwork::flow::RouteRuleRows>(input);
  in.rule = rule_of(routes);
  in.detours = detours_of(routes);
  in.adapts = routes.adapts;
  fill<weftwork::flow::WireSizesRow>(in.wire, input["wire"]);
  in.losses = in.loss_rules[0];
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
    const auto* network = engine_.state().setup.network;
    return network != nullptr && network->approximate;
  }

  /// One row.
  [[nodiscard]] auto folding() const {
    const auto* folded = engine_.state().setup.ground.folded.get();
    const weftwork::flow::FoldFacts f = folded == nullptr ? weftwork::flow::FoldFacts{} : folded->facts;
    return table<weftwork::python::FoldedRow>(1, [&](weftwork::python::FoldedRow& row, std::size_t) {
      row = {.ranks = f.ranks,
             .actors = f.actors,
             .activities = f.activities,
             .activity_cells = f.activity_cells,
             .links = f.links,
             .link_cells = f.link_cells,
             .kept = f.kept,
             .rounds = f.rounds};
    });
  }

  /// Which ports the messages of each connection between servers took, the last path of each; none where they are
  /// spread.
  [[nodiscard]] auto paths() const {
    const weftwork::flow::State& s = engine_.state();
    std::vector<weftwork::python::LaneRow> found;
    for (const weftwork::flow::Lane& lane : s.job.lanes) {
      if (s.traffic.router->splits() || lane.inside || lane.path.is_none()) continue;
      for (const weftwork::flow::Hop& hop : s.traffic.paths[lane.path].path.hops)
        if (s.traffic.links.is_port(hop.link))
          found.push_back({.source = lane.source.value,
                           .destination = lane.destination.value,
                           .channel = lane.channel,
                           .port = hop.link.value,
                           .packets = lane.packets});
    }
    return table<weftwork::python::LaneRow>(found.size(),
                                            [&](weftwork::python::LaneRow& row, std::size_t i) { row = found[i]; });
  }

  /// Bytes of each bin and tier, then flows on it (mean over the bin), row by row.
  [[nodiscard]] auto tiers() const {
    const weftwork::flow::State& s = engine_.state();
    const auto columns = static_cast<std::size_t>(s.setup.in.tiers);
    return table<weftwork::python::TierRow>(
        s.recordings.tier_bytes.count() * columns, [&](weftwork::python::TierRow& row, std::size_t i) {
          const std::size_t bin = i / columns;
          const double bin_ps = static_cast<double>(s.recordings.tier_flows.bin_ps());
          row = {.start_ps = static_cast<std::int64_t>(bin) * s.recordings.tier_bytes.bin_ps(),
                 .at_ps = std::min(static_cast<std::int64_t>(bin + 1) * s.recordings.tier_bytes.bin_ps(),
                                   std::max(s.clock.now_ps, s.clock.end_ps)),
                 .tier = static_cast<std::int64_t>(i % columns),
                 .bytes = s.recordings.tier_bytes.at(bin, i % columns),
                 .flows = bin < s.recordings.tier_flows.count() ? s.recordings.tier_flows.at(bin, i % columns) / bin_ps
                                                                : 0.0};
        });
  }

  /// Bytes of each bin and port, gaps included; a bin and a port are a row, bins of one length.
  [[nodiscard]] auto timeline() const {
    const weftwork::flow::State& s = engine_.state();
    const std::size_t ports = s.setup.in.fabric.port_rate_bps.size();
    return table<double>(s.recordings.port_bytes.count() * ports, [&](double& bytes, std::size_t i) {
      const weftwork::PortId bundle = s.traffic.router->bundle_of_port(weftwork::PortId(i % ports));
      bytes = s.recordings.port_bytes.at(i / ports, bundle.index());
    });
  }
  [[nodiscard]] std::int64_t timeline_bin_ps() const { return engine_.state().recordings.port_bytes.bin_ps(); }

  [[nodiscard]] bool finished() const { return engine_.finished(); }

  [[nodiscard]] bool clock_ended() const { return engine_.clock_ended(); }

  /// One row.
  [[nodiscard]] auto progress() const {
    const weftwork::flow::State& s = engine_.state();
    return table<weftwork::python::FlowProgressRow>(1, [&](weftwork::python::FlowProgressRow& row, std::size_t) {
      row = {.simulated_ps = s.clock.now_ps,
             .end_ps = s.clock.end_ps,
             .events = s.clock.events,
             .solves = s.clock.solves,
             .delivered_bytes = s.job.delivered_bytes};
    });
  }

  [[nodiscard]] auto messages() const {
    const weftwork::flow::State& s = engine_.state();
    return table<weftwork::python::MessageRow>(s.setup.network != nullptr ? 0 : s.job.messages.size(),
                                               [&](weftwork::python::MessageRow& row, std::size_t i) {
                                                 const weftwork::flow::Message& m = s.job.messages.items()[i];
                                                 const weftwork::flow::Lane& lane = s.job.lanes[m.lane];
                                                 row = {.source = lane.source.value,
                                                        .destination = lane.destination.value,
                                                        .channel = lane.channel,
                                                        .ordinal = m.ordinal,
                                                        .size_bytes = m.size_bytes,
                                                        .posted_at_ps = m.posted_at_ps,
                                                        .delivered_at_ps = m.delivered_at_ps,
                                                        .acked_at_ps = m.acked_at_ps};
                                               });
  }

  [[nodiscard]] auto carried() {
    const auto found = engine_.carried();
    return table<weftwork::flow::Carried>(found.size(),
                                          [&](weftwork::flow::Carried& row, std::size_t i) { row = found.items()[i]; });
  }

  [[nodiscard]] auto milestones() const {
    const auto& milestones = engine_.state().recordings.milestones;
    return table<weftwork::flow::MilestoneRow>(
        milestones.size(), [&](weftwork::flow::MilestoneRow& row, std::size_t i) { row = milestones[i]; });
  }

  /// The engine keeps none of them.
  [[nodiscard]] auto take_segments() { return taken(engine_.take_segments()); }

  /// The engine keeps none of them.
  [[nodiscard]] auto take_activities() { return taken(engine_.take_activities()); }

  /// What every stream still waits for.
  [[nodiscard]] auto waits() const {
    const std::vector<weftwork::WaitRow> found = weftwork::flow::waits_of(engine_.state().setup, engine_.state().job);
    return table<weftwork::WaitRow>(found.size(), [&](weftwork::WaitRow& row, std::size_t i) { row = found[i]; });
  }

  [[nodiscard]] auto actors() const {
    const weftwork::flow::State& s = engine_.state();
    return table<weftwork::python::ActorRow>(s.job.actors().size(),
                                             [&](weftwork::python::ActorRow& row, std::size_t i) {
                                               const weftwork::flow::ActorId actor(i);
                                               row = {.rank = s.setup.rank_of(actor).value,
                                                      .ranks = s.setup.ranks_of(actor),
                                                      .program = s.setup.program_of(actor).value};
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
      .def("folding", &FlowEngine::folding)
      .def("paths", &FlowEngine::paths)
      .def("tiers", &FlowEngine::tiers)
      .def("timeline", &FlowEngine::timeline)
      .def("timeline_bin_ps", &FlowEngine::timeline_bin_ps)
      .def("finished", &FlowEngine::finished)
      .def("clock_ended", &FlowEngine::clock_ended)
      .def("progress", &FlowEngine::progress)
      .def("messages", &FlowEngine::messages)
      .def("carried", &FlowEngine::carried)
      .def("milestones", &FlowEngine::milestones)
      .def("take_segments", &FlowEngine::take_segments)
      .def("take_activities", &FlowEngine::take_activities)
      .def("actors", &FlowEngine::actors)
      .def("waits", &FlowEngine::waits);
}
