/// The Python face of the flow engine. Arrays in, arrays out; the GIL is free while it runs.
#include "bindings_flow.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "flow/fluid.hpp"
#include "flow/fluid_run.hpp"

namespace nb = nanobind;

namespace {

using weftwork::flow::ConstraintHop;
using weftwork::flow::ConstraintId;
using weftwork::flow::VariableId;
using weftwork::python::table;

template <typename T>
using Array = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
std::span<const T> view(const Array<T>& array) {
  return {array.data(), array.shape(0)};
}

nb::ndarray<nb::numpy, double, nb::ndim<1>> doubles(std::vector<double> values) {
  auto owner = std::make_unique<std::vector<double>>(std::move(values));
  double* data = owner->data();
  const std::size_t size = owner->size();
  nb::capsule capsule(owner.release(), [](void* p) noexcept { delete static_cast<std::vector<double>*>(p); });
  return {data, {size}, capsule};
}

nb::dict stats_of(const weftwork::flow::FluidStats& stats) {
  nb::dict result;
  result["events"] = stats.events;
  result["full"] = stats.full;
  result["links"] = stats.links;
  result["rates"] = stats.rates;
  result["moves"] = stats.moves;
  return result;
}

void check_range(std::int64_t index, std::size_t size, const char* what) {
  if (index < 0 || static_cast<std::size_t>(index) >= size) throw nb::index_error(what);
}

/// The fluid engine, one call at a time, with what tests may get wrong checked.
class Fluid {
 public:
  Fluid(const Array<double>& capacity, double tolerance)
      : constraints_(capacity.shape(0)), fluid_(view(capacity), tolerance) {}

  std::int32_t add_variable(const Array<std::int32_t>& constraint, const Array<double>& weight) {
    ++variables_;
    return fluid_.add_variable(hops(constraint, weight)).value;
  }
  void start(std::int32_t variable, std::int64_t activity, double amount, double now_ps) {
    check_range(variable, variables_, "no such variable");
    fluid_.start(VariableId(variable), activity, amount, now_ps);
  }
  double stop(std::int32_t variable, std::int64_t activity, double now_ps) {
    check_range(variable, variables_, "no such variable");
    return fluid_.stop(VariableId(variable), activity, now_ps);
  }
  void set_capacity(std::int32_t constraint, double capacity, double now_ps) {
    check_range(constraint, constraints_, "no such constraint");
    fluid_.set_capacity(ConstraintId(constraint), capacity, now_ps);
  }
  void set_hops(std::int32_t variable, const Array<std::int32_t>& constraint, const Array<double>& weight,
                double now_ps) {
    check_range(variable, variables_, "no such variable");
    fluid_.set_hops(VariableId(variable), hops(constraint, weight), now_ps);
  }
  [[nodiscard]] double next() const { return fluid_.next(); }
  std::vector<std::int64_t> advance(double now_ps) {
    std::vector<std::int64_t> finished;
    fluid_.advance(now_ps, finished);
    return finished;
  }
  void solve(double now_ps) { fluid_.solve(now_ps); }
  [[nodiscard]] auto rates() const {
    std::vector<double> rates;
    for (const VariableId variable : weftwork::id_range(VariableId(0), VariableId(variables_)))
      rates.push_back(fluid_.rate(variable));
    return doubles(std::move(rates));
  }
  [[nodiscard]] auto loads() const {
    std::vector<double> loads;
    for (const ConstraintId constraint : weftwork::id_range(ConstraintId(0), ConstraintId(constraints_)))
      loads.push_back(fluid_.load(constraint));
    return doubles(std::move(loads));
  }
  [[nodiscard]] auto carried(double now_ps) const {
    std::vector<double> units;
    for (const ConstraintId constraint : weftwork::id_range(ConstraintId(0), ConstraintId(constraints_)))
      units.push_back(fluid_.carried(constraint, now_ps));
    return doubles(std::move(units));
  }
  [[nodiscard]] double worst_error() const { return fluid_.worst_error(); }
  [[nodiscard]] nb::dict stats() const { return stats_of(fluid_.stats()); }

 private:
  static std::vector<ConstraintHop> hops(const Array<std::int32_t>& constraint, const Array<double>& weight) {
    if (constraint.shape(0) != weight.shape(0)) throw nb::value_error("as many weights as constraints");
    std::vector<ConstraintHop> result;
    for (std::size_t i = 0; i < constraint.shape(0); ++i) result.push_back({ConstraintId(constraint(i)), weight(i)});
    return result;
  }

  std::size_t constraints_;
  std::size_t variables_ = 0;
  weftwork::flow::Fluid fluid_;
};

/// A run out of the members of `FluidInput`: completions by start, units carried by constraint, and how it went.
nb::dict fluid_run(nb::dict from) {
  const auto input = weftwork::python::named<weftwork::flow::FluidInput>(from);
  if (input.variable_ptr.empty() ||
      input.variable_ptr.back() != static_cast<std::int64_t>(input.hop_constraint.size()) ||
      input.hop_constraint.size() != input.hop_weight.size() ||
      input.start_at_ps.size() != input.start_variable.size() || input.start_at_ps.size() != input.start_amount.size())
    throw nb::value_error("the lengths of the arrays do not fit each other");
  for (const VariableId variable : input.start_variable)
    check_range(variable.value, input.variable_ptr.size() - 1, "no such variable");
  weftwork::flow::FluidReport report;
  {
    const nb::gil_scoped_release released;
    report = weftwork::flow::run_fluid(input);
  }
  const auto bytes_of = [](const std::vector<double>& values) {
    return table<double>(values.size(), [&](double& value, std::size_t i) { value = values[i]; });
  };
  nb::dict found;
  found["completed_at_ps"] = bytes_of(report.completed_at_ps);
  found["carried_units"] = bytes_of(report.carried_units);
  found["report"] = table<weftwork::python::FluidReportRow>(1, [&](weftwork::python::FluidReportRow& row, std::size_t) {
    row = {.worst_rate_error = report.worst_rate_error,
           .cpu_s = report.cpu_s,
           .most_alive = report.most_alive,
           .events = report.stats.events,
           .full = report.stats.full,
           .links = report.stats.links,
           .rates = report.stats.rates,
           .moves = report.stats.moves};
  });
  return found;
}

}  // namespace

namespace weftwork {

void bind_flow(nb::module_& module) {
  nb::class_<Fluid>(module, "Fluid", "Max-min fair sharing from event to event; for tests.")
      .def(nb::init<const Array<double>&, double>(), nb::arg("capacity"), nb::kw_only(), nb::arg("tolerance"))
      .def("add_variable", &Fluid::add_variable, nb::kw_only(), nb::arg("constraint"), nb::arg("weight"))
      .def("start", &Fluid::start, nb::arg("variable"), nb::kw_only(), nb::arg("activity"), nb::arg("amount"),
           nb::arg("now_ps"))
      .def("stop", &Fluid::stop, nb::arg("variable"), nb::kw_only(), nb::arg("activity"), nb::arg("now_ps"))
      .def("set_capacity", &Fluid::set_capacity, nb::arg("constraint"), nb::kw_only(), nb::arg("capacity"),
           nb::arg("now_ps"))
      .def("set_hops", &Fluid::set_hops, nb::arg("variable"), nb::kw_only(), nb::arg("constraint"), nb::arg("weight"),
           nb::arg("now_ps"))
      .def("next", &Fluid::next)
      .def("advance", &Fluid::advance, nb::arg("now_ps"))
      .def("solve", &Fluid::solve, nb::arg("now_ps"))
      .def("rates", &Fluid::rates)
      .def("loads", &Fluid::loads)
      .def("carried", &Fluid::carried, nb::arg("now_ps"))
      .def("worst_error", &Fluid::worst_error)
      .def("stats", &Fluid::stats, nb::sig("def stats(self) -> dict[str, int]"));
  module.def("fluid_run", &fluid_run, nb::arg("arrays"),
             nb::sig("def fluid_run(arrays: dict[str, object]) -> dict[str, NDArray[numpy.uint8]]"),
             "Run starts that are known beforehand: completions by start, units carried by constraint, and a report.");
}

}  // namespace weftwork
