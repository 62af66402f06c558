// SPDX-License-Identifier: Apache-2.0
//
// A record of readers.image_folder for tests: an encoded image and an int32
// label.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "worker/sample/stored_sample.h"

namespace leat::worker {

// Borrows the image; owns the label.
inline StoredSample StoredImage(std::span<const std::byte> encoded,
                                int32_t label) {
  const auto owned = std::make_shared<const int32_t>(label);
  StoredSample stored;
  stored.fields = {{encoded, {}},
                   {std::as_bytes(std::span(owned.get(), size_t{1})), {}}};
  stored.owner = owned;
  return stored;
}

inline int32_t LabelOf(std::span<const StoredField> fields) {
  int32_t label;
  std::memcpy(&label, fields[1].bytes.data(), sizeof label);
  return label;
}

}  // namespace leat::worker
