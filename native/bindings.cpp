/// The Python face of the core: the only file that includes nanobind.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include "base/version.hpp"

namespace nb = nanobind;

NB_MODULE(_native, module) {
  module.doc() = "Weft's native core.";
  module.def("version", &weft::version, "The version of Weft that this core was built as.");
}
