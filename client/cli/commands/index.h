// SPDX-License-Identifier: Apache-2.0
//
// `leat index`: shows the content of a dataset, without a service. The readers
// belong to the worker, so `leat-worker index` lists it, and its JSON is shown
// here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/base/view.h"
#include "client/cli/session/session.h"

namespace leat::cli {

// `report`: the output of `leat-worker index`.
View IndexView(Json report);

struct Listing {
  uint64_t read_records = 100;
  absl::Duration within = absl::Minutes(5);
  // Reads a few of many files, and reports what is known when `within` is over.
  bool look = false;
  // `uri` is a file with a pipeline or a job: the rows that it packs.
  bool pipeline = false;
};

// Runs `leat-worker index` for `uri`, with the session's options about its
// reader. `on_err`, unless null, gets lines about the progress. Errors: the
// worker's; kDeadlineExceeded: longer than `within`.
absl::StatusOr<Json> ListDataset(
    const Session& session, const std::string& uri, const Listing& listing,
    const std::function<void(std::string_view)>& on_err);

// The same, with a line on the terminal that shows the progress, and is removed
// at the end.
absl::StatusOr<Json> ListDatasetAloud(const Session& session,
                                      const std::string& uri,
                                      const Listing& listing);

}  // namespace leat::cli
