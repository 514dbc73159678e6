/// The Python face of the flow engine's router; see weftwork.engine.flow.paths. Included by bindings.cpp alone.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "bindings_flow.hpp"
#include "flow/router.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/flow_run.hpp"

namespace weftwork {

namespace nb = nanobind;

/// The links that flows cross, for flows given as arrays.
class FlowRouter {
 public:
  explicit FlowRouter(nb::dict fabric)
      : FlowRouter(fabric, python::named<flow::RouteRuleRows>(fabric), python::named<flow::RouterRows>(fabric)) {}

  void use(const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& live) {
    if (live.shape(0) != router_.fabric().port_node.size()) throw nb::value_error("wanted one byte for each port");
    router_.use({live.data(), live.shape(0)});
  }

  /// Rows of flows as bytes, to the first hop of each and one more, the hops, and what each path is besides, as bytes.
  [[nodiscard]] nb::dict paths(nb::dict asked) const {
    const std::span<const python::FlowEndsRow> flows = python::rows<python::FlowEndsRow>(asked, "flows");
    std::vector<std::int64_t> first{0};
    std::vector<flow::Hop> hops;
    std::vector<python::RouteRow> about;
    {
      const nb::gil_scoped_release released;
      flow::PathFacts facts;
      for (const python::FlowEndsRow& ends : flows) {
        router_.path(PortId(ends.source_port), PortId(ends.destination_port), static_cast<std::uint16_t>(ends.entropy),
                     static_cast<std::uint32_t>(ends.destination_qp), ends.queue_pair_hash, hops, facts);
        first.push_back(static_cast<std::int64_t>(hops.size()));
        about.push_back({.reachable = facts.reachable ? 1 : 0,
                         .links = facts.links,
                         .latency_ps = facts.latency_ps,
                         .rate_bps = facts.rate_bps});
      }
    }
    nb::dict found;
    found["hop_ptr"] = bytes(first);
    found["hops"] = bytes(hops);
    found["about"] = bytes(about);
    return found;
  }

  [[nodiscard]] auto bundles() const {
    std::vector<PortId> found;
    for (const PortId port : router_.fabric().ports()) found.push_back(router_.bundle_of_port(port));
    return bytes(found);
  }

 private:
  FlowRouter(nb::dict fabric, const flow::RouteRuleRows& routes, const flow::RouterRows& rows)
      : fabric_(std::move(fabric)),
        router_(python::fabric_of(fabric_), rows.mode, python::layers_of(fabric_), python::rule_of(routes),
                python::detours_of(routes), rows.most_steps) {}

  template <typename T>
  static python::Bytes bytes(const std::vector<T>& values) {
    python::Bytes bytes = python::new_bytes(values.size() * sizeof(T));
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
    return bytes;
  }

  nb::dict fabric_;  // keeps the arrays alive
  flow::Router router_;
};

inline void bind_paths(nb::module_& module) {
  nb::class_<FlowRouter>(module, "FlowRouter", "The links that flows cross; see weftwork.engine.flow.paths.")
      .def(nb::init<nb::dict>(), nb::arg("arrays"), nb::sig("def __init__(self, arrays: dict[str, object]) -> None"))
      .def("use", &FlowRouter::use, nb::arg("live"))
      .def("paths", &FlowRouter::paths, nb::arg("flows"),
           nb::sig("def paths(self, flows: dict[str, object]) -> dict[str, NDArray[numpy.uint8]]"))
      .def("bundles", &FlowRouter::bundles);
}

}  // namespace weftwork
