// SPDX-License-Identifier: Apache-2.0
//
// JPEG files that decoders are tried by, drawn when they are first asked for.
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

// In colours with halved and with whole chroma, gray, and one in colours of
// more than a million pixels. They have slopes, of which every scale has the
// means, and which no turn or mirror leaves as they are. kInternal: libjpeg
// does not encode them.
const absl::StatusOr<std::vector<TrialPicture>>& TrialPictures();

}  // namespace leat::worker
