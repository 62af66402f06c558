// SPDX-License-Identifier: Apache-2.0
#include "server/unreached.h"

#include <algorithm>
#include <utility>

#include "server/convert.h"

namespace leat::server {
namespace {

constexpr int kMostWorkers = 8;  // of one consumer

}  // namespace

std::vector<UnreachedWorker> UnreachedOf(const v1::UnreachedWorkers& proto) {
  std::vector<UnreachedWorker> workers;
  for (int i = 0; i < std::min(proto.workers_size(), kMostWorkers); ++i)
    workers.push_back(
        {Cut(proto.workers(i).worker()), Cut(proto.workers(i).why())});
  return workers;
}

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
