// SPDX-License-Identifier: Apache-2.0
#include "core/plan/passed_over.h"

#include <algorithm>

namespace leat {
namespace {

constexpr std::string_view kOthers = "others";

}  // namespace

void PassedOverCounts::Add(std::string_view what, std::string_view which,
                           uint64_t count) {
  if (count == 0) return;
  auto it = kinds_.find(what);
  if (it == kinds_.end() && kinds_.size() >= kMaxKinds) what = kOthers;
  if (it == kinds_.end()) it = kinds_.try_emplace(std::string(what)).first;
  Kind& kind = it->second;
  if (kind.count == 0 || which < kind.first) kind.first = std::string(which);
  kind.count += count;
}

void PassedOverCounts::Add(const PassedOverCounts& other) {
  for (const auto& [what, kind] : other.kinds_)
    Add(what, kind.first, kind.count);
}

std::vector<PassedOver> PassedOverCounts::Take() const {
  std::vector<PassedOver> sorted;
  for (const auto& [what, kind] : kinds_)
    sorted.push_back({what, kind.count, kind.first});
  std::stable_sort(
      sorted.begin(), sorted.end(),
      [](const auto& a, const auto& b) { return a.count > b.count; });
  if (sorted.size() <= kMaxPassedOver) return sorted;
  // Add may have counted kinds as others already.
  if (const auto known = std::ranges::find(sorted, kOthers, &PassedOver::what);
      known != sorted.end())
    std::rotate(known, known + 1, sorted.end());
  PassedOver others{std::string(kOthers), 0, sorted[kMaxPassedOver - 1].first};
  for (size_t i = kMaxPassedOver - 1; i < sorted.size(); ++i)
    others.count += sorted[i].count;
  sorted.resize(kMaxPassedOver - 1);
  sorted.push_back(std::move(others));
  return sorted;
}

}  // namespace leat
