// SPDX-License-Identifier: Apache-2.0
//
// `leat index`: what a dataset holds, without a service. Readers are the
// worker's, so `leat-worker index` lists it, and its JSON is shown here.
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

// `report`: what `leat-worker index` printed.
View IndexView(Json report);

struct Listing {
  uint64_t read_records = 100;
  absl::Duration within = absl::Minutes(5);
  // A few files of many, and what is known when the time is over.
  bool look = false;
};

// What `leat-worker index` says of `uri`, with the options that say what is
// known of its reader. `on_err` unless null: gets lines that say how far it is.
// Errors: the worker's; kDeadlineExceeded: not `within`.
absl::StatusOr<Json> ListDataset(
    const Session& session, const std::string& uri, const Listing& listing,
    const std::function<void(std::string_view)>& on_err);

// The same, with a line on a terminal that says how far it is, and is away in
// the end.
absl::StatusOr<Json> ListDatasetAloud(const Session& session,
                                      const std::string& uri,
                                      const Listing& listing);

// The program `name` in `daemon_dir` if that is not empty, else beside this
// program (`program_dir`) if it is there, else the name, for PATH.
std::string DaemonProgram(const std::string& name,
                          const std::string& daemon_dir,
                          const std::string& program_dir);

}  // namespace leat::cli
