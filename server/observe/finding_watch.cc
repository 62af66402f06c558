// SPDX-License-Identifier: Apache-2.0
#include "server/observe/finding_watch.h"

namespace leat::server {

std::vector<FindingWatch::Change> FindingWatch::Look(
    const std::vector<Finding>& findings, MonotonicTime now) {
  std::vector<Change> changes;
  for (const Finding& finding : findings) {
    const Key key(finding.code,
                  finding.subjects.empty() ? "" : finding.subjects.front());
    const auto [it, added] = standing_.try_emplace(key);
    Standing& standing = it->second;
    const bool worse =
        finding.severity == "error" && standing.finding.severity == "warn";
    if (added) standing.since = now;
    if (added || worse) changes.push_back({true, finding, Duration(0)});
    standing.finding = finding;
    standing.seen = now;
  }
  for (auto it = standing_.begin(); it != standing_.end();) {
    const Standing& standing = it->second;
    if (now - standing.seen < gone_after_) {
      ++it;
      continue;
    }
    changes.push_back({false, standing.finding, now - standing.since});
    it = standing_.erase(it);
  }
  return changes;
}

}  // namespace leat::server
