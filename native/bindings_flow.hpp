/// The part of the Python face that belongs to the flow engine.
#pragma once
#include <nanobind/nanobind.h>

namespace weft {

void bind_flow(nanobind::module_& module);
void bind_flow_fold(nanobind::module_& module);  // bindings_flow_fold.cpp

}  // namespace weft
