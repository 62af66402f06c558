// SPDX-License-Identifier: Apache-2.0
//
// Fault says where the cause of a failed record or row lies. It travels with
// the status as a payload, and is set where it is known: by storage, by a
// reader, by a decoder. A status code alone is not enough: if a file is not
// found, it may have been deleted, or this worker may lack the mount.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace leat {

// The values are those of v1::Fault.
enum class Fault : uint8_t {
  // The bytes that were read are bad: every worker would report this.
  kSample = 1,
  kObject,  // an indexed object is missing, as seen from here
  kWorker,  // specific to this worker: no mount, no permission, EIO, no memory
  // Storage or the worker does not answer, is full or stops: try again.
  kTransient,
};
std::string_view Name(Fault fault);

// Returns the status with this fault, which replaces any other. OK stays OK.
absl::Status WithFault(absl::Status status, Fault fault);
// Returns nullopt if the status names no fault.
std::optional<Fault> FaultOf(const absl::Status& status);
// Returns the status with `fault` if it names no fault.
absl::Status WithDefaultFault(absl::Status status, Fault fault);

// Adds the number of the sample that made the row fail: the row's own sample, a
// substitute or a partner.
absl::Status WithSample(absl::Status status, uint64_t sample);
std::optional<uint64_t> SampleOf(const absl::Status& status);

}  // namespace leat
