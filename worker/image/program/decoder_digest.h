// SPDX-License-Identifier: Apache-2.0
//
// The decoders' digest: how this worker decodes, as one number.
//
// The bytes of a batch depend on the libraries that decode images, and on our
// own kernels. Known images, some of every format, go through the programs that
// rows go through, on this processor, with the libraries that are loaded; the
// digest is the hash of the pixels. Two workers of different digests would make
// different batches of one job.
//
//   KnownImages() ─► crop ─┐
//                 ─► enlarge ─► pixels, or the code of the error ─► SHA-256
//                 ─► shrink ─┘
//
// An image that cannot be decoded goes into the digest by its error's code: a
// library without a format is another one.
#pragma once

#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "core/hash.h"

namespace leat::worker {

// Takes some milliseconds. An error: a program of the release's own cannot be
// compiled.
absl::StatusOr<Digest> DecoderDigest(std::span<const std::string> images);

}  // namespace leat::worker
