// SPDX-License-Identifier: Apache-2.0
//
// Blame: whose trouble it is that a record or a row failed. It travels with
// the status, as payloads, and is set where it is known: by storage, by a
// reader, by a decoder. A status code alone never says it: a file that is not
// found may be gone, or this worker may lack the mount.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"

namespace leat {

// The values are those of v1::Blame.
enum class Blame : uint8_t {
  kSample = 1,  // bytes that were read are bad: every worker would say so
  kObject,      // what was indexed is not there, as seen from here
  kWorker,      // this worker's: no mount, no right, EIO, no memory
  kPassing,     // not now: it does not answer, is full, or goes away
};
std::string_view Name(Blame blame);

// The status with this blame, in place of any other. OK stays OK.
absl::Status WithBlame(absl::Status status, Blame blame);
// Nothing: nobody has said it.
std::optional<Blame> BlameOf(const absl::Status& status);
// The same where nobody has said it.
absl::Status WithDefaultBlame(absl::Status status, Blame blame);

// The sample that a failed row could not do without: its own, a substitute, or
// a partner.
absl::Status WithSample(absl::Status status, uint64_t sample);
std::optional<uint64_t> SampleOf(const absl::Status& status);

}  // namespace leat
