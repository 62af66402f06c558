// SPDX-License-Identifier: Apache-2.0
//
// Limit: what a verdict says that limits a job, and its names.
#pragma once

#include <cstdint>
#include <string_view>

namespace leat {

enum class Limit : uint8_t {
  kUnknown,
  kTrainer,
  kNetwork,
  kStorage,
  kDecodeCpu,
  kDecodeGpu,
  kStraggler,
  kWindow,
  kSource,   // the script's own (leat.external_source)
  kWorkers,  // there are no workers
};

// "decode_cpu".
std::string_view Name(Limit limit);
// For people: "decode and augment".
std::string_view Title(Limit limit);
// Returns the title of the limit of this name; an unknown name as it is.
std::string_view TitleOf(std::string_view name);

}  // namespace leat
