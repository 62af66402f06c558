// SPDX-License-Identifier: Apache-2.0
//
// Converts pictures to files.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "client/cli/base/environment.h"
#include "core/observe/previews.h"

namespace leat::cli {

// Borrows the field.
FieldRows RowsOf(const Field& field);

// kInternal: libpng's reason.
absl::StatusOr<std::string> EncodePng(const RgbImage& picture);

}  // namespace leat::cli
