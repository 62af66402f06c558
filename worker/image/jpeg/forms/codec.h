// SPDX-License-Identifier: Apache-2.0
//
// FormCodec: decoded forms as bytes, for code that stores them on disk and does
// not know their contents.
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
  uint16_t version = 0;  // version of the bytes
  // Errors: as JpegForm::Parse.
  std::function<absl::StatusOr<KeptForm>(std::vector<std::byte> bytes)> parse;
  // Returns bytes that live as long as the form.
  std::function<std::span<const std::byte>(const KeptForm& form)> bytes_of;
  // True if the form was made from these bytes. It may read all of them.
  std::function<bool(const KeptForm& form, std::span<const std::byte> file)>
      is_of;
};

// Returns the codec of real forms (form.h).
FormCodec JpegFormCodec();

}  // namespace leat::worker
