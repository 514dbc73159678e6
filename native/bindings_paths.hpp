/// The Python face of the flow engine's router; see weftwork.engine.flow.paths. Included by bindings.cpp alone.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstring>
#include <vector>

#include "bindings_flow.hpp"
#include "flow/router.hpp"

namespace weftwork {

namespace nb = nanobind;

/// The links that flows cross, for flows given as arrays.
class FlowRouter {
 public:
  FlowRouter(nb::dict fabric, int mode, std::int64_t most_steps)
      : fabric_(std::move(fabric)),
        router_(python::fabric_of(fabric_), static_cast<flow::Mode>(mode), python::layers_of(fabric_),
                python::rule_of(fabric_), python::detours_of(fabric_), most_steps) {}

  void use(const nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& live) {
    if (live.shape(0) != router_.fabric().port_node.size()) throw nb::value_error("wanted one byte for each port");
    router_.use({live.data(), live.shape(0)});
  }

  /// Rows of (source port, destination port, entropy, destination queue pair, queue pair hash) to (first hop of each
  /// and one more, hops, what each path is besides), as bytes.
  [[nodiscard]] nb::tuple paths(
      const nb::ndarray<const std::int64_t, nb::shape<-1, 5>, nb::c_contig, nb::device::cpu>& flows) const {
    std::vector<std::int64_t> first{0};
    std::vector<flow::Hop> hops;
    std::vector<python::RouteRow> about;
    {
      const nb::gil_scoped_release released;
      flow::PathFacts facts;
      for (std::size_t i = 0; i < flows.shape(0); ++i) {
        const std::int64_t* row = flows.data() + 5 * i;
        router_.path(PortId(row[0]), PortId(row[1]), static_cast<std::uint16_t>(row[2]),
                     static_cast<std::uint32_t>(row[3]), row[4], hops, facts);
        first.push_back(static_cast<std::int64_t>(hops.size()));
        about.push_back({facts.reachable ? 1 : 0, facts.links, facts.latency_ps, facts.rate_bps});
      }
    }
    return nb::make_tuple(bytes(first), bytes(hops), bytes(about));
  }

  [[nodiscard]] auto bundles() const {
    std::vector<PortId> found;
    for (const PortId port : router_.fabric().ports()) found.push_back(router_.bundle_of_port(port));
    return bytes(found);
  }

 private:
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
      .def(nb::init<nb::dict, int, std::int64_t>(), nb::arg("fabric"), nb::arg("mode"), nb::arg("most_steps"),
           nb::sig("def __init__(self, fabric: dict[str, object], mode: int, most_steps: int) -> None"))
      .def("use", &FlowRouter::use, nb::arg("live"))
      .def("paths", &FlowRouter::paths, nb::arg("flows"),
           nb::sig("def paths(self, flows: NDArray[numpy.int64]) -> tuple[NDArray[numpy.uint8], ...]"))
      .def("bundles", &FlowRouter::bundles);
}

}  // namespace weftwork
