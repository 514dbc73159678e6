/// The Python face of folding: a job's graph, its cells and the network that the executor would run, as arrays; for
/// tests and benchmarks.
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "bindings_flow.hpp"
#include "flow/fold.hpp"
#include "flow/router.hpp"

namespace {

using namespace weftwork::flow;
using weftwork::python::fabric_of;
using weftwork::python::job_of;
using weftwork::python::layers_of;

template <typename T>
auto array_of(std::vector<T> values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owner->data();
  const std::size_t size = owner->size();
  nb::capsule capsule(owner.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, capsule);
}

/// A number as it is, an id as its place.
template <typename T>
T plain(T value) {
  return value;
}
template <typename Kind>
std::int32_t plain(weftwork::Id<Kind> id) {
  return id.value;
}

/// Elements by id, or ids, as an array of numbers.
template <typename Elements>
auto numbers(const Elements& elements) {
  std::vector<decltype(plain(*elements.begin()))> values;
  values.reserve(elements.size());
  for (const auto& element : elements) values.push_back(plain(element));
  return array_of(std::move(values));
}

/// One member of each row as an array.
template <typename Rows, typename Row, typename T>
auto column(const Rows& rows, T Row::* member) {
  std::vector<decltype(plain(T()))> values;
  values.reserve(rows.size());
  for (const Row& row : rows) values.push_back(plain(row.*member));
  return array_of(std::move(values));
}

nb::dict connections_of(const Network& network) {
  nb::dict out;
  const auto& rows = network.connections;
  out["source"] = column(rows, &Connection::source);
  out["destination"] = column(rows, &Connection::destination);
  out["first_activity"] = column(rows, &Connection::first_activity);
  out["activities"] = column(rows, &Connection::activities);
  out["channel"] = column(rows, &Connection::channel);
  out["instances"] = column(rows, &Connection::instances);
  out["companions"] = column(rows, &Connection::companions);
  return out;
}

nb::dict collectives_of(const Network& network) {
  nb::dict out;
  out["first_participant"] = column(network.communicators, &Communicator::first_participant);
  out["participants"] = column(network.communicators, &Communicator::participants);
  out["members"] = column(network.communicators, &Communicator::members);
  out["channel"] = column(network.communicators, &Communicator::channel);
  out["instances"] = column(network.communicators, &Communicator::instances);
  out["actors"] = numbers(network.participants);
  out["communicator"] = column(network.operations, &Operation::communicator);
  out["first_activity"] = column(network.operations, &Operation::first_activity);
  out["activities"] = column(network.operations, &Operation::activities);
  out["companions"] = column(network.operations, &Operation::companions);
  out["flows"] = column(network.operations, &Operation::flows);
  return out;
}

nb::dict network_of(const Network& network) {
  nb::dict out;
  out["capacity"] = numbers(network.capacity);
  out["link_cell"] = numbers(network.link_cell);
  out["link_count"] = numbers(network.link_count);
  out["hop_ptr"] = numbers(network.hop_ptr);
  out["hop_link"] = column(network.hops, &CellHop::link);
  out["hop_weight"] = column(network.hops, &CellHop::weight);
  out["latency_ps"] = numbers(network.latency_ps);
  out["activity_instances"] = numbers(network.activity_instances);
  out["actor_rank"] = numbers(network.actor_rank);
  out["actor_program"] = numbers(network.actor_program);
  out["actor_ranks"] = numbers(network.actor_ranks);
  out["actor_factor"] = numbers(network.actor_factor);
  out["rank_actor"] = numbers(network.rank_actor);
  out["op_slot"] = numbers(network.op_slot);
  out["slot_ptr"] = numbers(network.slot_ptr);
  out["slots"] = numbers(network.slots);
  out["connections"] = connections_of(network);
  out["collectives"] = collectives_of(network);
  out["folded"] = network.folded;
  out["approximate"] = network.approximate;
  return out;
}

nb::dict graph_of(const Folded& folded) {
  const Graph& graph = folded.graph;
  nb::dict out;
  out["hop_ptr"] = numbers(graph.hop_ptr);
  out["hop_link"] = column(graph.hops, &GraphHop::link);
  std::vector<double> weights;
  weights.reserve(graph.hops.size());
  for (const GraphHop& hop : graph.hops) weights.push_back(graph.weights[hop.weight]);
  out["hop_weight"] = array_of(std::move(weights));
  out["latency_ps"] = numbers(graph.latency_ps);
  out["source"] = numbers(graph.source);
  out["destination"] = numbers(graph.destination);
  out["channel"] = numbers(graph.channel);
  out["member_ptr"] = numbers(graph.member_ptr);
  out["members"] = numbers(graph.members);
  out["communicator"] = numbers(graph.communicator);
  std::vector<std::int64_t> channel;
  for (const GroupId rule : graph.group) channel.push_back(graph.meaning.groups[rule].channel);
  out["communicator_channel"] = array_of(std::move(channel));
  out["flows"] = numbers(graph.flows);
  out["slot_ptr"] = numbers(graph.slot_ptr);
  out["slots"] = numbers(graph.slots);
  out["activity_cell"] = numbers(folded.cells.activity);
  out["rank_cell"] = numbers(folded.cells.rank);
  out["communicator_cell"] = numbers(folded.cells.communicator);
  return out;
}

nb::dict facts_of(const FoldFacts& facts) {
  nb::dict out;
  out["ranks"] = facts.ranks;
  out["actors"] = facts.actors;
  out["activities"] = facts.activities;
  out["activity_cells"] = facts.activity_cells;
  out["links"] = facts.links;
  out["link_cells"] = facts.link_cells;
  out["hops"] = facts.hops;
  out["kept"] = facts.kept;
  out["replicas"] = facts.replicas;
  out["rounds"] = facts.rounds;
  return out;
}

/// Folds the job of an input; keeps no part of it.
class FlowFold {
 public:
  explicit FlowFold(nb::dict input) {
    const Job job = job_of(input);
    const FabricView fabric = fabric_of(input);
    const auto rows = weftwork::python::named<FoldRows>(input);
    const Layers layers = layers_of(input);
    const auto routes = weftwork::python::named<RouteRuleRows>(input);
    const weftwork::flow::Rule rule = weftwork::python::rule_of(routes);
    const DetourRule detours = weftwork::python::detours_of(routes);
    FoldOptions options;
    options.folding = rows.folding;
    options.cell_limit = rows.cell_limit;
    options.core = {.slots = rows.core_slots, .few = rows.core_few};
    options.wire = {rows.wire_factor, rows.wire_factor};
    options.link_fate = rows.link_fate;
    const nb::gil_scoped_release released;
    const Links links = links_of(job, fabric.port_rate_bps, rows.host_rate_bps);
    Router router(fabric, rows.mode, layers, rule, detours);
    router.tell_stages(false);
    capacity_ = links.capacity.items();
    try {
      folded_ = fold(job, links, router, options);
    } catch (const NoPath& none) {
      throw std::invalid_argument("no path from NIC port " + std::to_string(none.from.value) + " to " +
                                  std::to_string(none.to.value));
    }
  }
  [[nodiscard]] nb::dict network() const { return network_of(folded_.network); }
  [[nodiscard]] nb::dict fastest() const { return network_of(folded_.fastest); }
  [[nodiscard]] nb::dict slowest() const { return network_of(folded_.slowest); }
  [[nodiscard]] nb::dict graph() const { return graph_of(folded_); }
  [[nodiscard]] nb::dict facts() const { return facts_of(folded_.facts); }
  [[nodiscard]] auto capacity() const { return array_of(capacity_); }
  [[nodiscard]] auto carried(const std::vector<double>& amount) const {
    return numbers(weftwork::flow::carried(folded_.graph, folded_.cells.activity,
                                           weftwork::IdSpan<ActivityCell, const double>(amount), capacity_.size()));
  }

 private:
  std::vector<double> capacity_;
  Folded folded_;
};

}  // namespace

namespace weftwork {

void bind_flow_fold(nb::module_& module) {
  nb::class_<FlowFold>(module, "FlowFold", "What a job folds into, for tests; see native/flow/fold.hpp.")
      .def(nb::init<nb::dict>(), nb::arg("arrays"), nb::sig("def __init__(self, arrays: dict[str, object]) -> None"))
      .def("network", &FlowFold::network, nb::sig("def network(self) -> dict[str, object]"))
      .def("fastest", &FlowFold::fastest, nb::sig("def fastest(self) -> dict[str, object]"))
      .def("slowest", &FlowFold::slowest, nb::sig("def slowest(self) -> dict[str, object]"))
      .def("graph", &FlowFold::graph, nb::sig("def graph(self) -> dict[str, object]"))
      .def("facts", &FlowFold::facts, nb::sig("def facts(self) -> dict[str, int]"))
      .def("capacity", &FlowFold::capacity)
      .def("carried", &FlowFold::carried, nb::arg("amount"));
}

}  // namespace weftwork
