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

// One kind of thing that `get` lists.
struct Kind {
  std::string_view plural;    // "workers": also the field of the answer
  std::string_view singular;  // "worker"
  std::string_view shorter;   // "w"
  std::string_view name;      // where an item has its name: "job.spec.name"
};

// nullptr: no such kind. Plural, singular and short forms are known.
const Kind* FindKind(std::string_view word);
// All of them, in the order of the help.
std::string_view KindList();

// Keeps the items of `answer` that `names` find, in that order and each once:
// by name or unique beginning, a dataset also by id. Returns an error, as
// FindName's, of each name that finds none.
std::vector<absl::Status> KeepNamed(const Kind& kind,
                                    const std::vector<std::string>& names,
                                    Json& answer);

// `answer`: of the List call of that kind.
View ListingView(const Kind& kind, Json answer, absl::Time now);

// Parts that other views share.
Table WorkersTable(const Json& workers, absl::Time now);
Table JobsTable(const Json& jobs, absl::Time now);
Table ConsumersTable(const Json& consumers, absl::Time now);
uint64_t NumShards(const Json& dataset);
// Of what a listing did not take: "12 HEIC images (.heic): cats/a.heic, ..."
std::string PassedOverLine(const Json& each);

}  // namespace leat::cli
