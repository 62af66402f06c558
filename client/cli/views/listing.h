// SPDX-License-Identifier: Apache-2.0
//
// The coordinator's lists as Views. Pure functions of its answers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/base/view.h"

namespace leat::cli {

// A kind of entity that `get` lists.
struct Kind {
  std::string_view plural;    // "workers": also the field of the answer
  std::string_view singular;  // "worker"
  std::string_view shorter;   // "w"
  std::string_view name;      // path of an item's name: "job.spec.name"
};

// Returns nullptr if there is no such kind. Accepts plural, singular and short
// forms.
const Kind* FindKind(std::string_view word);
// Returns all of them, in the order of the help.
std::string_view KindList();

// Keeps the items of `answer` that match `names`, in that order and each once:
// by name or unique prefix, a dataset also by ID. Returns an error like
// FindName's for each name without a match.
std::vector<absl::Status> KeepNamed(const Kind& kind,
                                    const std::vector<std::string>& names,
                                    Json& answer);

// `answer`: from the List call for that kind.
View ListingView(const Kind& kind, Json answer, absl::Time now);

// Parts that other views share.
Table WorkersTable(const Json& workers, absl::Time now);
Table JobsTable(const Json& jobs, absl::Time now);
Table ConsumersTable(const Json& consumers, absl::Time now);
uint64_t NumShards(const Json& dataset);
// Returns a line about skipped files: "12 HEIC images (.heic): cats/a.heic,
// ..."
std::string PassedOverLine(const Json& each);

}  // namespace leat::cli
