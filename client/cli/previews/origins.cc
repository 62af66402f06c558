// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/origins.h"

#include <algorithm>

#include "core/counted.h"
#include "fmt/format.h"

namespace leat::cli {

Origins::Origins(const Json& job) : mixed_(!Items(job, "datasets").empty()) {
  if (!mixed_) classes_.push_back(Strings(job, "dataset.classes"));
  uint64_t end = 0;
  for (const Json& dataset : Items(job, "datasets")) {
    classes_.push_back(Strings(dataset, "classes"));
    ends_.push_back(end += Whole(dataset, "shards.num_samples"));
  }
  for (const Json& source : Items(job, "spec.sources"))
    names_.push_back(Text(source, "name"));
}

RowOrigin Origins::Of(uint64_t sample) const {
  if (!mixed_) return {"", classes_[0]};
  const size_t source = static_cast<size_t>(
      std::ranges::upper_bound(ends_, sample) - ends_.begin());
  if (source >= ends_.size() || source >= names_.size()) return {};
  return {names_[source], classes_[source]};
}

std::string DatasetsText(const Json& job) {
  const size_t mixed = Items(job, "datasets").size();
  if (mixed > 0) return Counted(mixed, "dataset");
  return fmt::format("dataset {}", Text(job, "dataset.name"));
}

}  // namespace leat::cli
