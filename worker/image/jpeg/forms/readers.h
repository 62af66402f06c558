// SPDX-License-Identifier: Apache-2.0
//
// FormReaders: the state in which a decode reads a form, one reader for each
// kind of McuForm. A decoder keeps it (forms/decoding.h) and lends it to
// JpegForm::Begin, so that a decode with a form allocates nothing.
//
// One thread, the decoder's.
#pragma once

#include "worker/image/jpeg/forms/coefficients.h"
#include "worker/image/jpeg/forms/seek_index.h"

namespace leat::worker {

struct FormReaders {
  SeekReader seek;
  CoefficientReader coefficients;
};

}  // namespace leat::worker
