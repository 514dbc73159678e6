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
      : links_(capacity.shape(0)), fluid_(view(capacity), tolerance) {}

  std::int32_t add_class(const Array<std::int32_t>& link, const Array<double>& weight) {
    fluid_.add_class(hops(link, weight));
    return static_cast<std::int32_t>(classes_++);
  }
  void start(std::int32_t cls, std::int64_t activity, double amount, double now_ps) {
    check_range(cls, classes_, "no such class");
    fluid_.start(cls, activity, amount, now_ps);
  }
  double stop(std::int32_t cls, std::int64_t activity, double now_ps) {
    check_range(cls, classes_, "no such class");
    return fluid_.stop(cls, activity, now_ps);
  }
  void set_capacity(std::int32_t link, double capacity, double now_ps) {
    check_range(link, links_, "no such link");
    fluid_.set_capacity(link, capacity, now_ps);
  }
  void set_hops(std::int32_t cls, const Array<std::int32_t>& link, const Array<double>& weight, double now_ps) {
    check_range(cls, classes_, "no such class");
    fluid_.set_hops(cls, hops(link, weight), now_ps);
  }
  [[nodiscard]] double next() const { return fluid_.next(); }
  std::vector<std::int64_t> advance(double now_ps) {
    std::vector<std::int64_t> finished;
    fluid_.advance(now_ps, finished);
    return finished;
  }
  void solve(double now_ps) { fluid_.solve(now_ps); }
  [[nodiscard]] auto rates() const {
    std::vector<double> rates(classes_);
    for (std::size_t cls = 0; cls < classes_; ++cls) rates[cls] = fluid_.rate(static_cast<std::int32_t>(cls));
    return doubles(std::move(rates));
  }
  [[nodiscard]] auto loads() const {
    std::vector<double> loads(links_);
    for (std::size_t link = 0; link < links_; ++link) loads[link] = fluid_.load(static_cast<std::int32_t>(link));
    return doubles(std::move(loads));
  }
  [[nodiscard]] auto carried(double now_ps) const {
    std::vector<double> units(links_);
    for (std::size_t link = 0; link < links_; ++link)
      units[link] = fluid_.carried(static_cast<std::int32_t>(link), now_ps);
    return doubles(std::move(units));
  }
  [[nodiscard]] double worst_error() const { return fluid_.worst_error(); }
  [[nodiscard]] nb::dict stats() const { return stats_of(fluid_.stats()); }

 private:
  static std::vector<weftwork::flow::Hop> hops(const Array<std::int32_t>& link, const Array<double>& weight) {
    if (link.shape(0) != weight.shape(0)) throw nb::value_error("as many weights as links");
    std::vector<weftwork::flow::Hop> result;
    for (std::size_t i = 0; i < link.shape(0); ++i) result.push_back({link(i), weight(i)});
    return result;
  }

  std::size_t links_;
  std::size_t classes_ = 0;
  weftwork::flow::Fluid fluid_;
};

nb::tuple fluid_run(const Array<double>& capacity, const Array<std::int64_t>& class_ptr,
                    const Array<std::int32_t>& class_link, const Array<double>& class_weight,
                    const Array<double>& start_at_ps, const Array<std::int32_t>& start_class,
                    const Array<double>& start_amount, double tolerance, std::int64_t check_every) {
  if (class_ptr.shape(0) == 0 || class_ptr(class_ptr.shape(0) - 1) != static_cast<std::int64_t>(class_link.shape(0)) ||
      class_link.shape(0) != class_weight.shape(0) || start_at_ps.shape(0) != start_class.shape(0) ||
      start_at_ps.shape(0) != start_amount.shape(0))
    throw nb::value_error("the lengths of the arrays do not fit each other");
  for (std::size_t i = 0; i < start_class.shape(0); ++i)
    check_range(start_class(i), class_ptr.shape(0) - 1, "no such class");
  const weftwork::flow::FluidPlan plan{view(capacity),     view(class_ptr),   view(class_link),
                                       view(class_weight), view(start_at_ps), view(start_class),
                                       view(start_amount), tolerance,         check_every};
  weftwork::flow::FluidReport report;
  {
    const nb::gil_scoped_release released;
    report = weftwork::flow::run_fluid(plan);
  }
  nb::dict stats = stats_of(report.stats);
  stats["cpu_s"] = report.cpu_s;
  stats["most_alive"] = report.most_alive;
  return nb::make_tuple(doubles(std::move(report.completed_at_ps)), doubles(std::move(report.carried_units)),
                        report.worst_rate_error, stats);
}

}  // namespace

namespace weftwork {

void bind_flow(nb::module_& module) {
  nb::class_<Fluid>(module, "Fluid", "Max-min fair sharing from event to event; for tests.")
      .def(nb::init<const Array<double>&, double>(), nb::arg("capacity"), nb::arg("tolerance"))
      .def("add_class", &Fluid::add_class, nb::arg("link"), nb::arg("weight"))
      .def("start", &Fluid::start, nb::arg("cls"), nb::arg("activity"), nb::arg("amount"), nb::arg("now_ps"))
      .def("stop", &Fluid::stop, nb::arg("cls"), nb::arg("activity"), nb::arg("now_ps"))
      .def("set_capacity", &Fluid::set_capacity, nb::arg("link"), nb::arg("capacity"), nb::arg("now_ps"))
      .def("set_hops", &Fluid::set_hops, nb::arg("cls"), nb::arg("link"), nb::arg("weight"), nb::arg("now_ps"))
      .def("next", &Fluid::next)
      .def("advance", &Fluid::advance, nb::arg("now_ps"))
      .def("solve", &Fluid::solve, nb::arg("now_ps"))
      .def("rates", &Fluid::rates)
      .def("loads", &Fluid::loads)
      .def("carried", &Fluid::carried, nb::arg("now_ps"))
      .def("worst_error", &Fluid::worst_error)
      .def("stats", &Fluid::stats, nb::sig("def stats(self) -> dict[str, int]"));
  module.def(
      "fluid_run", &fluid_run, nb::arg("capacity"), nb::arg("class_ptr"), nb::arg("class_link"),
      nb::arg("class_weight"), nb::arg("start_at_ps"), nb::arg("start_class"), nb::arg("start_amount"),
      nb::arg("tolerance"), nb::arg("check_every"),
      nb::sig("def fluid_run(capacity: NDArray[numpy.float64], class_ptr: NDArray[numpy.int64], class_link: ND"
              "Array[numpy.int32], class_weight: NDArray[numpy.float64], start_at_ps: NDArray[numpy.float64], "
              "start_class: NDArray[numpy.int32], start_amount: NDArray[numpy.float64], tolerance: float, chec"
              "k_every: int) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64], float, dict[str, float]]"),
      "Run starts that are known beforehand: completions by start, units carried by link, worst rate error, stats.");
}

}  // namespace weftwork
