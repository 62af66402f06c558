// SPDX-License-Identifier: Apache-2.0
//
// Checks an archive's index, which must hold for every archive.
#pragma once

#include <string>
#include <vector>

#include "tests/fuzz/target.h"
#include "worker/source/webdataset/samples.h"

namespace leat::worker {

inline const std::vector<std::string>& TarExtensions() {
  static const std::vector<std::string>& extensions =
      *new std::vector<std::string>{"jpg;png", "cls", "a.b"};
  return extensions;
}

// All components lie within the archive.
inline void CheckPlaces(const ComponentPlaces& places, uint64_t bytes) {
  fuzz::Require(places.blocks.size() == places.sizes.size() &&
                places.blocks.size() % TarExtensions().size() == 0);
  for (size_t i = 0; i < places.blocks.size(); ++i)
    fuzz::Require(places.blocks[i] * kTarBlock + places.sizes[i] <= bytes);
}

}  // namespace leat::worker
