// SPDX-License-Identifier: Apache-2.0
//
// Whether the libjpeg that is loaded decodes at smaller scales as
// libjpeg-turbo does.
//
// The decoders' digest (decoder_digest.h), by which workers of other pixels are
// told apart, is about full resolution. Known files are decoded at all scales,
// and the pixels must be those that libjpeg-turbo makes on every processor.
#pragma once

#include "absl/status/status.h"

namespace leat::worker {

// kUnimplemented: it makes other pixels, so that this worker computes no
// pipeline with decode(reduce="auto"). The files are decoded once in a process.
absl::Status CheckScales();

}  // namespace leat::worker
