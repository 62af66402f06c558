// SPDX-License-Identifier: Apache-2.0
//
// `leat inspect`: what a file or folder holds, without a service.
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

// What a file or folder is without the worker's readers. kNotFound: no such
// path. kInvalidArgument: neither a file nor a folder.
struct Local {
  // Of a JPEG, a file with a JPEG's name, a token (the bytes of token(), in a
  // file), or a folder.
  std::optional<Inspection> found;
  // It may be a dataset that a reader knows: a file that is none of these, a
  // folder without images, or with other files directly in it.
  bool maybe_dataset = false;
};
absl::StatusOr<Local> InspectLocal(const std::string& path);

// The same of everything, datasets of all readers and URIs, too, which
// `leat-worker index` lists, a few of many files. Errors: InspectLocal's and
// ListDataset's.
absl::StatusOr<Inspection> Inspect(const Session& session);

}  // namespace leat::cli
