// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/device/error.h"

#include "absl/strings/cord.h"

namespace leat::worker {
namespace {

constexpr char kPoisonedPayload[] = "leat.gpu.poisoned";

}  // namespace

bool IsPoisoned(const absl::Status& status) {
  return status.GetPayload(kPoisonedPayload).has_value();
}

absl::Status Poisoned(absl::Status status) {
  status.SetPayload(kPoisonedPayload, absl::Cord("1"));
  return status;
}

}  // namespace leat::worker
