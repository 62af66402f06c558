// SPDX-License-Identifier: Apache-2.0
#include "server/membership/unreached.h"

#include <algorithm>
#include <utility>

namespace leat::server {

std::vector<UnreachedWorker> UnreachedTable::Say(const std::string& consumer,
                                                 Consumer said) {
  std::erase_if(consumers_, [&](const auto& each) {
    return said.said_at - each.second.said_at > kKept;
  });
  const auto known = consumers_.find(consumer);
  std::vector<UnreachedWorker> fresh;
  for (const UnreachedWorker& worker : said.workers)
    if (known == consumers_.end() ||
        std::ranges::find(known->second.workers, worker) ==
            known->second.workers.end())
      fresh.push_back(worker);
  if (said.workers.empty())
    consumers_.erase(consumer);
  else if (known != consumers_.end() || consumers_.size() < kMostConsumers)
    consumers_[consumer] = std::move(said);
  return fresh;
}

}  // namespace leat::server
