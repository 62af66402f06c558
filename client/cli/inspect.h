// SPDX-License-Identifier: Apache-2.0
//
// `leat inspect`: what a file or folder holds, without a service.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/view.h"

namespace leat::cli {

struct Inspection {
  View view;
  bool healthy = true;  // no problem found
};

// A JPEG, a token (the bytes of token(), in a file), or a folder of images.
// kNotFound: no such path. kInvalidArgument: none of these.
absl::StatusOr<Inspection> Inspect(const std::string& path);

}  // namespace leat::cli
