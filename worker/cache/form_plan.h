// SPDX-License-Identifier: Apache-2.0
//
// FormPlan: of how many records of each dataset a cache keeps which form of
// their JPEG beside them.
//
// The nanoseconds that a form saves in a second, for each byte of it, decide:
// what is worth most comes first, while there is room. A record has one form,
// so that a larger one in place of a smaller one is worth, and costs, the
// difference. Where it is worth more for each byte than the smaller one itself,
// nothing is gained by keeping that first.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "worker/image/jpeg/forms/kinds.h"

namespace leat::worker {

// A dataset of JPEG files.
struct FormDemand {
  double records = 0;  // that are kept, or will be
  double decodes = 0;  // of them in a second
  double plain_ns = 0;
  // The size of a record's form, and the time of a decode by it.
  struct Form {
    double bytes = 0;
    double ns = 0;
  };
  Form seek_index, coefficients, pixels;

  const Form& of(JpegFormKind kind) const {
    return kind == JpegFormKind::kSeekIndex      ? seek_index
           : kind == JpegFormKind::kCoefficients ? coefficients
                                                 : pixels;
  }
};

// Forms go to the records of the lowest ranks: what share of them has a form of
// a kind or of a larger one.
struct FormShare {
  std::array<double, kDecodeWays> from{};  // by WayOf(kind)

  double any() const { return from[WayOf(JpegFormKind::kSeekIndex)]; }
  double coefficients() const {
    return from[WayOf(JpegFormKind::kCoefficients)];
  }
  double pixels() const { return from[WayOf(JpegFormKind::kPixels)]; }
};

// By demand. `kinds`: what may be kept.
std::vector<FormShare> PlanForms(std::span<const FormDemand> demands,
                                 FormKinds kinds, double room_bytes);

}  // namespace leat::worker
