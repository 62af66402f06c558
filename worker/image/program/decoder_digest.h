// SPDX-License-Identifier: Apache-2.0
//
// DecoderDigest: identifies how this worker decodes, as one number.
//
// The bytes of a batch depend on the libraries that decode images, and on our
// own kernels. Known images, some of every format, go through the same programs
// as rows, on this processor, with the loaded libraries; the digest is the hash
// of the pixels. Two workers with different digests would make different
// batches of one job.
//
//   KnownImages() ─► crop ─────────┐
//                 ─► enlarge ──────┤
//                 ─► shrink ───────┼─► pixels, or the error's code ─► SHA-256
//                 ─► crop, distort ┘
//
// jpeg_compression_distortion is among them for the sake of libjpeg's encoder.
// An image that cannot be decoded contributes its error's code to the digest: a
// library without a format gives another digest.
#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "core/hash.h"

namespace leat::worker {

// Takes some milliseconds. Fails only if one of the release's own programs
// cannot be compiled.
absl::StatusOr<Digest> DecoderDigest(std::span<const std::string> images);

}  // namespace leat::worker
