// SPDX-License-Identifier: Apache-2.0
//
// `leat inspect`: shows the content of a file or folder, without a service.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/base/view.h"
#include "client/cli/session/session.h"

namespace leat::cli {

struct Inspection {
  View view;
  bool healthy = true;  // no problem found
};

// Result of an inspection without the worker's readers. kNotFound: no such
// path. kInvalidArgument: neither a file nor a folder.
struct Local {
  // Set for a JPEG, a file with a JPEG's name, a position (the bytes of
  // position(), in a file), or a folder.
  std::optional<Inspection> found;
  // It may be a dataset that a reader knows: a file of another type, a folder
  // without images, or with other files directly in it.
  bool maybe_dataset = false;
};
absl::StatusOr<Local> InspectLocal(const std::string& path);

// The same for every path and URI, also datasets of all readers: `leat-worker
// index` lists them, reading a few of many files. Errors: InspectLocal's and
// ListDataset's.
absl::StatusOr<Inspection> Inspect(const Session& session);

}  // namespace leat::cli
