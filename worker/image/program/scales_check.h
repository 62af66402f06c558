// SPDX-License-Identifier: Apache-2.0
//
// CheckScales: checks that the loaded libjpeg decodes at smaller scales as
// libjpeg-turbo does.
//
// The decoders' digest (decoder_digest.h), which tells apart workers that
// decode to different pixels, covers full resolution. This check decodes known
// files at all scales, and compares with the pixels of libjpeg-turbo, which are
// the same on every processor.
#pragma once

#include "absl/status/status.h"

namespace leat::worker {

// kUnimplemented: the pixels differ, so that this worker computes no pipeline
// with decode(reduce="auto"). The files are decoded once per process.
absl::Status CheckScales();

}  // namespace leat::worker
