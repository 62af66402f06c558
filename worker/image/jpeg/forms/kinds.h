// SPDX-License-Identifier: Apache-2.0
//
// The kinds of decoded forms, for code that neither makes nor reads one
// (form.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace leat::worker {

class JpegForm;

// In the order of their speed: a decode by a larger kind is faster.
enum class JpegFormKind : uint8_t {
  kSeekIndex = 1,
  kCoefficients = 2,
  kPixels = 3
};

inline constexpr std::array kJpegFormKinds = {JpegFormKind::kSeekIndex,
                                              JpegFormKind::kCoefficients,
                                              JpegFormKind::kPixels};

// Ways to decode a file, as an index: 0 is without a form, others are kinds.
inline constexpr size_t kDecodeWays = 4;
inline constexpr size_t WayOf(JpegFormKind kind) {
  return static_cast<size_t>(kind);
}

inline std::string_view FormName(JpegFormKind kind) {
  switch (kind) {
    case JpegFormKind::kSeekIndex:
      return "seek index";
    case JpegFormKind::kCoefficients:
      return "coefficients";
    case JpegFormKind::kPixels:
      return "pixels";
  }
  return "";
}

// A set of kinds.
struct FormKinds {
  bool seek_index = false;
  bool coefficients = false;
  bool pixels = false;

  static FormKinds Only(JpegFormKind kind) {
    FormKinds kinds;
    kinds.Add(kind);
    return kinds;
  }

  bool any() const { return seek_index || coefficients || pixels; }
  bool Has(JpegFormKind kind) const {
    return kind == JpegFormKind::kSeekIndex      ? seek_index
           : kind == JpegFormKind::kCoefficients ? coefficients
                                                 : pixels;
  }
  void Add(JpegFormKind kind) {
    (kind == JpegFormKind::kSeekIndex      ? seek_index
     : kind == JpegFormKind::kCoefficients ? coefficients
                                           : pixels) = true;
  }
  void Add(const FormKinds& others) {
    for (const JpegFormKind kind : kJpegFormKinds)
      if (others.Has(kind)) Add(kind);
  }
};

}  // namespace leat::worker
