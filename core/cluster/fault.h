// SPDX-License-Identifier: Apache-2.0
//
// Fault says where the cause of a failed record or row lies. It travels with
// the status as a payload, and is set where it is known: by storage, by a
// reader, by a decoder. A status code alone never says it: a file that is not
// found may be gone, or this worker may lack the mount.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace leat {

// The values are those of v1::Fault.
enum class Fault : uint8_t {
  kSample = 1,  // the bytes that were read are bad: every worker would say so
  kObject,      // what was indexed is not there, as seen from here
  kWorker,      // this worker's own: no mount, no right, EIO, no memory
  kTransient,   // it does not answer, is full or goes away: try again
};
std::string_view Name(Fault fault);

// Returns the status with this fault in place of any other. OK stays OK.
absl::Status WithFault(absl::Status status, Fault fault);
// Returns nullopt if the status names no fault.
std::optional<Fault> FaultOf(const absl::Status& status);
// Returns the status with `fault` if it names none.
absl::Status WithDefaultFault(absl::Status status, Fault fault);

// Names the sample without which the row failed: its own, a substitute or a
// partner.
absl::Status WithSample(absl::Status status, uint64_t sample);
std::optional<uint64_t> SampleOf(const absl::Status& status);

}  // namespace leat
