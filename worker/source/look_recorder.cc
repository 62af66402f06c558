// SPDX-License-Identifier: Apache-2.0
#include "worker/source/look_recorder.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>

#include "worker/source/storage/base/identity.h"

namespace leat::worker {
namespace {

// A file system's clock ticks every few milliseconds. A directory that changed
// in the tick in which it was listed may change again in it, unnoticed.
constexpr Duration kTick = std::chrono::milliseconds(50);

// The time of a directory, without its path, which is known only of roots.
std::string_view TimeOfFolder(const DatasetLook::Entry& entry) {
  return std::string_view(entry.seen).substr(0, entry.seen.find(' '));
}

// Adds what was seen of the same name once more. If a list, a directory or a
// prefix changed in between, the listing may have something of both states: then
// no state is equal to what is kept. A file that changed cannot be read by its
// listing.
void Merge(DatasetLook::Entry entry, DatasetLook::Entry* kept) {
  if (entry.kind != kept->kind || entry.kind == SeenKind::kFile) {
    *kept = std::move(entry);
    return;
  }
  kept->young |= entry.young;
  if (entry.kind == SeenKind::kFolder &&
      TimeOfFolder(entry) == TimeOfFolder(*kept)) {
    if (entry.seen.size() > kept->seen.size())
      kept->seen = std::move(entry.seen);
  } else if (entry.seen != kept->seen) {
    kept->seen.clear();
  }
}

}  // namespace

void LookRecorder::Note(Lowest* to, DatasetLook::Entry entry) {
  const uint64_t hash = std::hash<std::string>()(entry.uri);
  if (hash >= to->too_high) {
    ++to->seen;
    return;
  }
  MutexLock lock(&mu_);
  std::pair key(hash, entry.uri);
  if (const auto kept = to->entries.find(key); kept != to->entries.end())
    return Merge(std::move(entry), &kept->second);
  to->entries.emplace(std::move(key), std::move(entry));
  ++to->seen;
  if (to->entries.size() <= to->max_entries) return;
  const auto last = std::prev(to->entries.end());
  to->too_high = last->first.first;
  to->entries.erase(last);
}

void LookRecorder::SawFolder(const std::string& uri,
                             const StoredFolder& folder) {
  const bool copy = storage_->IsCopied(uri);
  const int64_t now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          clock_->WallNow().time_since_epoch())
                          .count();
  const int64_t age = now - folder.modified_ns;
  const bool young = !copy && age >= 0 && Duration(age) < kTick;
  Note(&folders_, {.kind = SeenKind::kFolder,
                   .uri = uri,
                   .seen = copy ? SeenCopiedFolder() : SeenFolder(folder),
                   .young = young});
}

void LookRecorder::SawFile(const std::string& uri, std::string_view identity) {
  ++num_files_;
  Note(&files_, {.kind = SeenKind::kFile,
                 .uri = uri,
                 .seen = storage_->IsCopied(uri) ? WithoutTime(identity)
                                                 : std::string(identity)});
}

// Uses a separate key: the same name may be looked at as something else.
void LookRecorder::SawNothing(const std::string& uri) {
  Note(&others_, {.kind = SeenKind::kNothing, .uri = uri, .seen = ""});
}

void LookRecorder::SawPrefix(const std::string& uri,
                             std::span<const StoredObject> objects) {
  num_files_ += objects.size();
  Note(&others_,
       {.kind = SeenKind::kPrefix, .uri = uri, .seen = SeenPrefix(objects)});
}

void LookRecorder::SawText(const std::string& uri, const Digest& sha256) {
  Note(&others_, {.kind = SeenKind::kText, .uri = uri, .seen = ToHex(sha256)});
}

DatasetLook LookRecorder::Take() {
  DatasetLook look;
  MutexLock lock(&mu_);
  // For a text its bytes count, and not that it was rewritten.
  for (const auto& [key, entry] : others_.entries)
    if (entry.kind == SeenKind::kText) files_.seen -= files_.entries.erase(key);
  for (Lowest* from : {&folders_, &files_, &others_}) {
    look.total += from->seen;
    for (auto& [key, entry] : from->entries)
      look.entries.push_back(std::move(entry));
    from->entries.clear();
  }
  std::sort(look.entries.begin(), look.entries.end(),
            [](const DatasetLook::Entry& a, const DatasetLook::Entry& b) {
              return std::tie(a.uri, a.kind) < std::tie(b.uri, b.kind);
            });
  return look;
}

}  // namespace leat::worker
