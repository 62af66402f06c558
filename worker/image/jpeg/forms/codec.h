// SPDX-License-Identifier: Apache-2.0
//
// FormCodec: forms as bytes, for who keeps them on a disk and cannot look into
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/image/jpeg/forms/keeper.h"

namespace leat::worker {

// Thread-safe.
struct FormCodec {
  uint16_t version = 0;  // of the bytes
  // Errors: as JpegForm::Parse.
  std::function<absl::StatusOr<KeptForm>(std::vector<std::byte> bytes)> parse;
  // They live as long as the form.
  std::function<std::span<const std::byte>(const KeptForm& form)> bytes_of;
  // Whether it was made of these bytes, all of which it may read.
  std::function<bool(const KeptForm& form, std::span<const std::byte> file)>
      is_of;
};

// Returns the codec of real forms (form.h).
FormCodec JpegFormCodec();

}  // namespace leat::worker
