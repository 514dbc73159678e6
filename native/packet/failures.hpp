/// Reasons of an early end of a run.
#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include "packet/policy.hpp"

namespace weftwork {

/// A policy's step has failed or has written what it may not, or is about to in a repeated run; the run stops.
struct PolicyStop : std::runtime_error {
  explicit PolicyStop(PolicyFailure what_failed) : std::runtime_error("policy"), failure(std::move(what_failed)) {}
  PolicyFailure failure;
};

}  // namespace weftwork
