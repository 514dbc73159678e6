/// One link that an activity crosses.
#pragma once
#include "flow/ids.hpp"

namespace weftwork::flow {

/// An activity puts `weight` bytes on `link` for each byte (unit of service) that it gets done.
struct Hop {
  LinkId link;
  double weight;
};

}  // namespace weftwork::flow
