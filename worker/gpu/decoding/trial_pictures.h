// SPDX-License-Identifier: Apache-2.0
//
// JPEG files for trials of decoders, drawn at the first request.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace leat::worker {

struct TrialPicture {
  const char* name;
  int width, height;
  bool gray;
  std::string file;  // EXIF says that it is turned by a quarter
  bool large() const { return width * height > 1'000'000; }
};

// Returns pictures in colours with halved and with whole chroma, a gray one,
// and one in colours with more than a million pixels. They have slopes, so that
// every scale is a mean of them, and change under every turn or mirror.
// kInternal: libjpeg does not encode them.
const absl::StatusOr<std::vector<TrialPicture>>& TrialPictures();

}  // namespace leat::worker
