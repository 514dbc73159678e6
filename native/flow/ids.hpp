/// Ids that only the flow engine has; those of both engines are in base/ids.hpp.
#pragma once
#include "base/ids.hpp"

namespace weftwork::flow {

using ConstraintId = Id<struct ConstraintKind>;  // of the max-min core
using VariableId = Id<struct VariableKind>;      // of the max-min core

}  // namespace weftwork::flow
