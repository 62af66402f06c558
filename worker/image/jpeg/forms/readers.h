// SPDX-License-Identifier: Apache-2.0
//
// FormReaders: one reader per kind of form, so that beginning with a form
// allocates nothing.
#pragma once

#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/seek_index.h"

namespace leat::worker {

struct FormReaders {
  SeekReader seek;
  CoefficientReader coefficients;
};

}  // namespace leat::worker
