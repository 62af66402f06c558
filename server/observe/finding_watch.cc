// SPDX-License-Identifier: Apache-2.0
#include "server/observe/finding_watch.h"

namespace leat::server {

FindingWatch::Key FindingWatch::KeyOf(const Finding& finding) {
  return {finding.code,
          finding.subjects.empty() ? "" : finding.subjects.front()};
}

std::vector<FindingWatch::Change> FindingWatch::Look(
    const std::vector<Finding>& findings, MonotonicTime now) {
  // Findings without a subject may share a key: the first of the worst counts.
  std::map<Key, const Finding*> worst;
  for (const Finding& finding : findings) {
    const auto [it, added] = worst.try_emplace(KeyOf(finding), &finding);
    if (finding.severity == "error" && it->second->severity == "warn")
      it->second = &finding;
  }
  std::vector<Change> changes;
  for (const Finding& finding : findings) {
    const Key key = KeyOf(finding);
    if (worst.at(key) != &finding) continue;
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
