// SPDX-License-Identifier: Apache-2.0
#include "client/batch/absences.h"

#include <algorithm>

namespace leat::client {

Absences::Verdict Absences::Add(uint32_t row, const Report& report, bool alone,
                                size_t max_absent) {
  Entry& entry = entries_[row];
  const auto at =
      std::lower_bound(entry.agreed.begin(), entry.agreed.end(), report.sample);
  if (at != entry.agreed.end() && *at == report.sample) return Verdict::kKnown;
  const Duration apart = report.ask_again - report.at;
  const auto agrees = [&](const Report& other) {
    if (other.sample != report.sample) return false;
    return other.who != report.who || (alone && report.at - other.at >= apart);
  };
  if (std::any_of(entry.reports.begin(), entry.reports.end(), agrees)) {
    if (entry.agreed.size() >= max_absent) return Verdict::kTooMany;
    entry.agreed.insert(at, report.sample);
    std::erase_if(entry.reports, [&](const Report& other) {
      return other.sample == report.sample;
    });
    return Verdict::kAgreed;
  }
  const auto same = std::find_if(
      entry.reports.begin(), entry.reports.end(), [&](const Report& other) {
        return other.sample == report.sample && other.who == report.who;
      });
  if (same != entry.reports.end()) {
    same->ask_again = report.ask_again;  // `at` of the first report stays
    return Verdict::kOpen;
  }
  if (entry.reports.size() >= kMaxReports)
    entry.reports.erase(entry.reports.begin());
  entry.reports.push_back(report);
  return Verdict::kOpen;
}

std::span<const uint64_t> Absences::Of(uint32_t row) const {
  const auto entry = entries_.find(row);
  if (entry == entries_.end()) return {};
  return entry->second.agreed;
}

MonotonicTime Absences::NotBefore(uint32_t row, uint64_t who) const {
  MonotonicTime time{};
  const auto entry = entries_.find(row);
  if (entry == entries_.end()) return time;
  for (const Report& report : entry->second.reports)
    if (report.who == who) time = std::max(time, report.ask_again);
  return time;
}

MonotonicTime Absences::NextRequest(uint32_t row, MonotonicTime now) const {
  MonotonicTime next = MonotonicTime::max();
  const auto entry = entries_.find(row);
  if (entry == entries_.end()) return next;
  for (const Report& report : entry->second.reports)
    if (report.ask_again > now) next = std::min(next, report.ask_again);
  return next;
}

}  // namespace leat::client
