// SPDX-License-Identifier: Apache-2.0
#include "server/state/kept_datasets.h"

#include <utility>

#include "core/status.h"
#include "fmt/ranges.h"
#include "server/state/job_check.h"

namespace leat::server {
namespace {

constexpr size_t kMinPrefix = 4;

}  // namespace

absl::Status KeptDatasets::Check(const DatasetIndexed& indexed) const {
  if (datasets_.contains(indexed.dataset.id))
    return AlreadyExists("dataset {} is indexed already", indexed.dataset.id);
  if (!indexed.base_id.empty() && !datasets_.contains(indexed.base_id))
    return NotFound("dataset {} arranges {}, which is not there",
                    indexed.dataset.id, indexed.base_id);
  return absl::OkStatus();
}

void KeptDatasets::Apply(WallTime at, const DatasetIndexed& indexed) {
  DatasetInfo info = indexed.dataset;
  std::string reader_id = ReaderId(info.reader);
  if (!indexed.base_id.empty()) {
    info.base = datasets_.at(indexed.base_id).info;
    reader_id = ArrangedId(info.reader, info.arrangement);
    arrangements_[indexed.base_id].insert(info.id);
  }
  listings_[reader_id].push_back(indexed.dataset.id);
  datasets_[indexed.dataset.id] = {
      std::make_shared<const DatasetInfo>(std::move(info)),
      indexed.index_bytes,
      indexed.index_sha256,
      at,
      indexed.blocks,
      indexed.look,
      indexed.passed_over,
      at,
      std::move(reader_id)};
}

absl::Status KeptDatasets::Check(const DatasetListedAgain& again) const {
  if (!datasets_.contains(again.id)) return NotFound("no dataset {}", again.id);
  return absl::OkStatus();
}

void KeptDatasets::Apply(WallTime at, const DatasetListedAgain& again) {
  DatasetRecord& dataset = datasets_.at(again.id);
  dataset.look = again.look;
  dataset.passed_over = again.passed_over;
  dataset.listed_at = at;
  std::vector<std::string>& listings = listings_.at(dataset.reader_id);
  std::erase(listings, again.id);
  listings.push_back(again.id);
}

absl::Status KeptDatasets::Check(const DatasetDeleted& deleted) const {
  if (!datasets_.contains(deleted.id))
    return NotFound("no dataset {}", deleted.id);
  const std::set<std::string>* const arrangements = ArrangementsOf(deleted.id);
  if (arrangements == nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  for (const std::string& id : *arrangements)
    names.push_back(fmt::format("\"{}\"", datasets_.at(id).info->name));
  return FailedPrecondition("dataset {} is arranged as {}: delete {} first",
                            datasets_.at(deleted.id).info->name,
                            fmt::join(names, ", "),
                            names.size() == 1 ? "that" : "those");
}

void KeptDatasets::Apply(WallTime, const DatasetDeleted& deleted) {
  const auto it = datasets_.find(deleted.id);
  if (const auto& base = it->second.info->base; base != nullptr) {
    const auto others = arrangements_.find(base->id);
    others->second.erase(deleted.id);
    if (others->second.empty()) arrangements_.erase(others);
  }
  const auto listings = listings_.find(it->second.reader_id);
  std::erase(listings->second, deleted.id);
  if (listings->second.empty()) listings_.erase(listings);
  datasets_.erase(it);
}

// Events are in the order in which a reader was listed, and bases come before
// what arranges them.
void KeptDatasets::AddEvents(std::vector<Event>* events) const {
  AddEvents(/*arranged=*/false, events);
  AddEvents(/*arranged=*/true, events);
}

void KeptDatasets::AddEvents(bool arranged, std::vector<Event>* events) const {
  for (const auto& [reader_id, listings] : listings_)
    for (const std::string& id : listings) {
      const DatasetRecord& dataset = datasets_.at(id);
      const auto& base = dataset.info->base;
      if (arranged != (base != nullptr)) continue;
      events->push_back(
          {dataset.indexed_at,
           DatasetIndexed{*dataset.info, dataset.index_bytes,
                          dataset.index_sha256, dataset.blocks, dataset.look,
                          dataset.passed_over, arranged ? base->id : ""}});
      if (dataset.listed_at != dataset.indexed_at)
        events->push_back(
            {dataset.listed_at,
             DatasetListedAgain{id, dataset.look, dataset.passed_over}});
    }
}

const DatasetRecord* KeptDatasets::Find(std::string_view id) const {
  const auto it = datasets_.find(std::string(id));
  return it == datasets_.end() ? nullptr : &it->second;
}

const DatasetRecord* KeptDatasets::Current(std::string_view reader_id) const {
  const auto it = listings_.find(reader_id);
  return it == listings_.end() ? nullptr : Find(it->second.back());
}

const std::set<std::string>* KeptDatasets::ArrangementsOf(
    std::string_view id) const {
  const auto it = arrangements_.find(id);
  return it == arrangements_.end() ? nullptr : &it->second;
}

bool KeptDatasets::IsCurrent(const DatasetRecord& dataset) const {
  return listings_.at(dataset.reader_id).back() == dataset.info->id;
}

const DatasetRecord* KeptDatasets::FindListing(
    std::string_view reader_id, const Digest& fingerprint) const {
  const auto it = listings_.find(reader_id);
  if (it == listings_.end()) return nullptr;
  for (const std::string& id : it->second)
    if (const DatasetRecord* dataset = Find(id);
        dataset->info->fingerprint == fingerprint)
      return dataset;
  return nullptr;
}

absl::StatusOr<const DatasetRecord*> KeptDatasets::Resolve(
    std::string_view key) const {
  if (const DatasetRecord* exact = Find(key)) return exact;
  std::vector<const DatasetRecord*> found;
  for (const auto& [id, dataset] : datasets_)
    if ((dataset.info->name == key && IsCurrent(dataset)) ||
        (key.size() >= kMinPrefix && id.compare(0, key.size(), key) == 0))
      found.push_back(&dataset);
  if (found.empty()) return NotFound("no dataset \"{}\"", key);
  if (found.size() == 1) return found[0];
  std::vector<std::string> names;
  for (const DatasetRecord* dataset : found)
    names.push_back(fmt::format("{} ({})", dataset->info->id.substr(0, 12),
                                dataset->info->name));
  return InvalidArgument("\"{}\" means {} datasets: {}; give an id", key,
                         found.size(), fmt::join(names, ", "));
}

}  // namespace leat::server
