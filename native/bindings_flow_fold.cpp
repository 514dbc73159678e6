/// The Python face of folding: a job's graph, its classes and the network that the executor would run, as arrays; for
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
#include "flow/routed.hpp"

namespace {

using namespace weftwork::flow;
using weftwork::python::fabric_of;
using weftwork::python::job_of;
using weftwork::python::rows;

template <typename T>
auto array_of(std::vector<T> values) {
  auto owner = std::make_unique<std::vector<T>>(std::move(values));
  T* data = owner->data();
  const std::size_t size = owner->size();
  nb::capsule capsule(owner.release(), [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {size}, capsule);
}

/// One member of each row as an array.
template <typename Row, typename T>
auto column(const std::vector<Row>& rows, T Row::* member) {
  std::vector<T> values;
  values.reserve(rows.size());
  for (const Row& row : rows) values.push_back(row.*member);
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
  out["actors"] = array_of(network.participants);
  out["communicator"] = column(network.operations, &Operation::communicator);
  out["first_activity"] = column(network.operations, &Operation::first_activity);
  out["activities"] = column(network.operations, &Operation::activities);
  out["companions"] = column(network.operations, &Operation::companions);
  out["flows"] = column(network.operations, &Operation::flows);
  return out;
}

nb::dict network_of(const Network& network) {
  nb::dict out;
  out["capacity"] = array_of(network.capacity);
  out["link_class"] = array_of(network.link_class);
  out["link_count"] = array_of(network.link_count);
  out["hop_ptr"] = array_of(network.hop_ptr);
  out["hop_link"] = column(network.hops, &Hop::link);
  out["hop_weight"] = column(network.hops, &Hop::weight);
  out["latency_ps"] = array_of(network.latency_ps);
  out["activity_instances"] = array_of(network.activity_instances);
  out["actor_rank"] = array_of(network.actor_rank);
  out["actor_program"] = array_of(network.actor_program);
  out["actor_ranks"] = array_of(network.actor_ranks);
  out["actor_factor"] = array_of(network.actor_factor);
  out["rank_actor"] = array_of(network.rank_actor);
  out["op_slot"] = array_of(network.op_slot);
  out["slot_ptr"] = array_of(network.slot_ptr);
  out["slots"] = array_of(network.slots);
  out["connections"] = connections_of(network);
  out["collectives"] = collectives_of(network);
  out["folded"] = network.folded;
  out["approximate"] = network.approximate;
  return out;
}

nb::dict graph_of(const Folded& folded) {
  const Graph& graph = folded.graph;
  nb::dict out;
  out["hop_ptr"] = array_of(graph.hop_ptr);
  out["hop_link"] = column(graph.hops, &Share::link);
  std::vector<double> weights;
  weights.reserve(graph.hops.size());
  for (const Share& share : graph.hops) weights.push_back(graph.weights[share.weight]);
  out["hop_weight"] = array_of(std::move(weights));
  out["latency_ps"] = array_of(graph.latency_ps);
  out["source"] = array_of(graph.source);
  out["destination"] = array_of(graph.destination);
  out["channel"] = array_of(graph.channel);
  out["member_ptr"] = array_of(graph.member_ptr);
  out["members"] = array_of(graph.members);
  out["communicator"] = array_of(graph.communicator);
  std::vector<std::int64_t> channel;
  for (const std::int32_t rule : graph.group)
    channel.push_back(graph.meaning.groups[static_cast<std::size_t>(rule)].channel);
  out["communicator_channel"] = array_of(std::move(channel));
  out["flows"] = array_of(graph.flows);
  out["slot_ptr"] = array_of(graph.slot_ptr);
  out["slots"] = array_of(graph.slots);
  out["activity_class"] = array_of(folded.classes.activity);
  out["rank_class"] = array_of(folded.classes.rank);
  out["communicator_class"] = array_of(folded.classes.communicator);
  return out;
}

nb::dict facts_of(const FoldFacts& facts) {
  nb::dict out;
  out["ranks"] = facts.ranks;
  out["actors"] = facts.actors;
  out["activities"] = facts.activities;
  out["activity_classes"] = facts.activity_classes;
  out["links"] = facts.links;
  out["link_classes"] = facts.link_classes;
  out["hops"] = facts.hops;
  out["kept"] = facts.kept;
  out["replicas"] = facts.replicas;
  out["rounds"] = facts.rounds;
  return out;
}

/// Folds the job of a plan; keeps no part of it.
class FlowFold {
 public:
  FlowFold(nb::dict plan, std::int64_t folding, std::int64_t class_limit, std::int64_t core_slots,
           std::int32_t core_few, std::vector<std::uint64_t> link_fate) {
    const Job job = job_of(plan);
    const FabricView fabric = fabric_of(plan);
    const auto mode = static_cast<Mode>(nb::cast<int>(plan["mode"]));
    const auto factor = nb::cast<double>(plan["wire_factor"]);
    const auto host_rate_bps = rows<std::int64_t>(plan, "host_rate_bps");
    const FoldOptions options{static_cast<Folding>(folding),
                              class_limit,
                              {.slots = core_slots, .few = core_few},
                              {factor, factor},
                              link_fate};
    const nb::gil_scoped_release released;
    const Links links = links_of(job, fabric.port_rate_bps, host_rate_bps);
    const Router router(fabric, mode);
    capacity_ = links.capacity;
    try {
      folded_ = fold(job, links, Routed(router), options);
    } catch (const NoPath& none) {
      throw std::invalid_argument("no path from NIC port " + std::to_string(none.from) + " to " +
                                  std::to_string(none.to));
    }
  }
  [[nodiscard]] nb::dict network() const { return network_of(folded_.network); }
  [[nodiscard]] nb::dict fastest() const { return network_of(folded_.fastest); }
  [[nodiscard]] nb::dict slowest() const { return network_of(folded_.slowest); }
  [[nodiscard]] nb::dict graph() const { return graph_of(folded_); }
  [[nodiscard]] nb::dict facts() const { return facts_of(folded_.facts); }
  [[nodiscard]] auto capacity() const { return array_of(capacity_); }
  [[nodiscard]] auto carried(const std::vector<double>& amount) const {
    return array_of(weftwork::flow::carried(folded_.graph, folded_.classes.activity, amount, capacity_.size()));
  }

 private:
  std::vector<double> capacity_;
  Folded folded_;
};

}  // namespace

namespace weftwork {

void bind_flow_fold(nb::module_& module) {
  nb::class_<FlowFold>(module, "FlowFold", "What a job folds into, for tests; see native/flow/fold.hpp.")
      .def(nb::init<nb::dict, std::int64_t, std::int64_t, std::int64_t, std::int32_t, std::vector<std::uint64_t>>(),
           nb::arg("plan"), nb::arg("folding"), nb::arg("class_limit"), nb::arg("core_slots"), nb::arg("core_few"),
           nb::arg("link_fate"),
           nb::sig("def __init__(self, plan: dict[str, object], folding: int, class_limit: int, core_slots: int, "
                   "core_few: int, "
                   "link_fate: list[int]) -> None"))
      .def("network", &FlowFold::network, nb::sig("def network(self) -> dict[str, object]"))
      .def("fastest", &FlowFold::fastest, nb::sig("def fastest(self) -> dict[str, object]"))
      .def("slowest", &FlowFold::slowest, nb::sig("def slowest(self) -> dict[str, object]"))
      .def("graph", &FlowFold::graph, nb::sig("def graph(self) -> dict[str, object]"))
      .def("facts", &FlowFold::facts, nb::sig("def facts(self) -> dict[str, int]"))
      .def("capacity", &FlowFold::capacity)
      .def("carried", &FlowFold::carried, nb::arg("amount"));
}

}  // namespace weftwork
