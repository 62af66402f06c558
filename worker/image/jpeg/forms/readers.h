// SPDX-License-Identifier: Apache-2.0
//
// FormReaders holds the state of a decode that reads a form: a reader for each
// kind of McuForm. A decoder keeps it (forms/decoding.h) and lends it to
// JpegForm::Begin, so that a decode with a form allocates nothing.
//
// Only the decoder's thread may use it.
#pragma once

#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/seek_index.h"

namespace leat::worker {

struct FormReaders {
  SeekReader seek;
  CoefficientReader coefficients;
};

}  // namespace leat::worker
