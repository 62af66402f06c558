// SPDX-License-Identifier: Apache-2.0
//
// The kinds of forms, for who neither makes nor reads one (jpeg_form.h).
#pragma once

#include <cstdint>
#include <string_view>

namespace leat::worker {

class JpegForm;

enum class JpegFormKind : uint8_t { kSeekIndex = 1, kCoefficients = 2 };

inline std::string_view FormName(JpegFormKind kind) {
  return kind == JpegFormKind::kSeekIndex ? "seek index" : "coefficients";
}

// A choice of them.
struct FormKinds {
  bool seek_index = false;
  bool coefficients = false;

  bool any() const { return seek_index || coefficients; }
  bool Has(JpegFormKind kind) const {
    return kind == JpegFormKind::kSeekIndex ? seek_index : coefficients;
  }
};

}  // namespace leat::worker
