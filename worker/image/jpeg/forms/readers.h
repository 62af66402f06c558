// SPDX-License-Identifier: Apache-2.0
//
// FormReaders: of each kind of form one reader, so that to begin with a form
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
