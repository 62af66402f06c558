// SPDX-License-Identifier: Apache-2.0
//
// FormPlan: decides for how many records of each dataset a cache keeps which
// form of their images beside them.
//
// It ranks forms by the nanoseconds that a form saves per second and per byte:
// the most valuable come first, while there is room. A file has one form, so
// a larger form in place of a smaller one is worth, and costs, the difference.
// If that is worth more per byte than the smaller form itself, keeping the
// smaller one first gains nothing.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "worker/image/jpeg/forms/kinds.h"

namespace leat::worker {

// A dataset of image files.
struct FormDemand {
  double files = 0;    // that are kept, or will be
  double decodes = 0;  // of these files, per second
  double plain_ns = 0;
  // The size of a file's form, and the time of a decode by it.
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

// Forms go to the records of the lowest ranks: the share of records that have a
// form of a kind or of a larger one.
struct FormShare {
  std::array<double, kDecodeWays> from{};  // by WayOf(kind)

  double any() const { return from[WayOf(JpegFormKind::kSeekIndex)]; }
  double coefficients() const {
    return from[WayOf(JpegFormKind::kCoefficients)];
  }
  double pixels() const { return from[WayOf(JpegFormKind::kPixels)]; }
};

// Returns one share per demand. `kinds`: those that may be kept.
std::vector<FormShare> PlanForms(std::span<const FormDemand> demands,
                                 FormKinds kinds, double room_bytes);

}  // namespace leat::worker
