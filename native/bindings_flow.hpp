/// The part of the Python face that belongs to the flow engine.
#pragma once
#include <nanobind/nanobind.h>

namespace weft {

void bind_flow(nanobind::module_& module);

}  // namespace weft
