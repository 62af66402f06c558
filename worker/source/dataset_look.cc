// SPDX-License-Identifier: Apache-2.0
//
// Looking: threads take entries one by one, first those that reveal most
// (lists, prefixes, directories), then files. The caller waits until all are
// done or the patience is over, which also ends a listing of a remote prefix.
#include "worker/source/dataset_look.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "core/hash.h"
#include "core/mutex.h"
#include "core/redaction.h"
#include "core/status.h"
#include "core/thread.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/storage/base/identity.h"

namespace leat::worker {
namespace {

// A list that has grown beyond this has changed.
constexpr uint64_t kMaxTextBytes = 64 << 20;
constexpr std::string_view kCopiedFolder = "a copy";

// Copies of a dataset have different times, here or where it was listed.
bool IsOfCopy(const DatasetLook::Entry& entry, const Storage& storage) {
  return entry.seen == kCopiedFolder ||
         (entry.kind == SeenKind::kFile &&
          entry.seen == WithoutTime(entry.seen)) ||
         storage.IsCopied(entry.uri);
}

absl::StatusOr<std::string> SeenNow(const DatasetLook::Entry& entry,
                                    const Storage& storage,
                                    const std::atomic<bool>* cancelled) {
  switch (entry.kind) {
    case SeenKind::kFolder: {
      ASSIGN_OR_RETURN(StoredFolder folder, storage.StatFolder(entry.uri));
      if (IsOfCopy(entry, storage)) return entry.seen;
      // Only the root's was recorded.
      if (entry.seen.find(' ') == std::string::npos) folder.real_path.clear();
      return SeenFolder(folder);
    }
    case SeenKind::kFile: {
      ASSIGN_OR_RETURN(const StoredObject object, storage.Stat(entry.uri));
      if (IsOfCopy(entry, storage) &&
          WithoutTime(object.identity) == WithoutTime(entry.seen))
        return entry.seen;
      return object.identity;
    }
    case SeenKind::kText: {
      ASSIGN_OR_RETURN(const auto file, storage.Open(entry.uri));
      ASSIGN_OR_RETURN(const std::string text, ReadWhole(*file, kMaxTextBytes));
      return ToHex(HashOf(text));
    }
    case SeenKind::kPrefix: {
      ASSIGN_OR_RETURN(const std::vector<StoredObject> objects,
                       storage.List(entry.uri, cancelled));
      return SeenPrefix(objects);
    }
    case SeenKind::kNothing: {
      const absl::Status status = storage.Stat(entry.uri).status();
      if (absl::IsNotFound(status)) return std::string();
      RETURN_IF_ERROR(status);
      return std::string("something");
    }
  }
  return Internal("an entry of a look of kind {}",
                  static_cast<int>(entry.kind));
}

std::string ChangeOf(const DatasetLook::Entry& entry, const absl::Status& why) {
  const std::string name = RedactedUri(entry.uri);
  if (absl::IsNotFound(why)) return fmt::format("{}: it is gone", name);
  if (!why.ok()) return std::string(Message(why));
  switch (entry.kind) {
    case SeenKind::kFolder:
      return fmt::format("{}: names in this directory have changed", name);
    case SeenKind::kFile:
      return fmt::format("{}: it was written anew", name);
    case SeenKind::kText:
      return fmt::format("{}: its text has changed", name);
    case SeenKind::kPrefix:
      return fmt::format("{}: objects below it have changed", name);
    case SeenKind::kNothing:
      return fmt::format("{}: it is there now", name);
  }
  return name;
}

class Look {
 public:
  Look(const DatasetLook& look, const Storage& storage,
       const LookOptions& options)
      : look_(look), storage_(storage), options_(options) {
    // The numbers of entries, those that reveal most first.
    static constexpr SeenKind kOrder[] = {SeenKind::kText, SeenKind::kNothing,
                                          SeenKind::kPrefix, SeenKind::kFolder,
                                          SeenKind::kFile};
    for (const SeenKind kind : kOrder)
      for (size_t i = 0; i < look.entries.size(); ++i)
        if (look.entries[i].kind == kind) order_.push_back(i);
  }

  Looked Run() {
    const MonotonicTime until = Clock::Real().Now() + options_.patience;
    std::vector<std::thread> threads(std::min<size_t>(
        order_.size(), static_cast<size_t>(std::max(options_.threads, 1))));
    for (std::thread& thread : threads) {
      {
        MutexLock lock(&mu_);
        ++running_;
      }
      if (StartThread(
              "look", [this] { Work(); }, &thread)
              .ok())
        continue;
      MutexLock lock(&mu_);
      --running_;
      break;
    }
    {
      MutexLock lock(&mu_);
      while (running_ > 0 && ended_.WaitUntil(&mu_, until)) {
      }
    }
    stop_ = true;
    for (std::thread& thread : threads)
      if (thread.joinable()) thread.join();
    MutexLock lock(&mu_);
    return std::move(looked_);
  }

 private:
  void Work() {
    for (size_t i = next_++; i < order_.size() && !stop_; i = next_++) {
      const DatasetLook::Entry& entry = look_.entries[order_[i]];
      const auto now = SeenNow(entry, storage_, &stop_);
      if (absl::IsCancelled(now.status())) continue;
      MutexLock lock(&mu_);
      ++looked_.entries;
      if (now.ok() && *now == entry.seen) {
        looked_.unsure |= entry.young;
        continue;
      }
      looked_.changes.push_back(ChangeOf(entry, now.status()));
      if (looked_.changes.size() >= options_.max_changes) stop_ = true;
    }
    MutexLock lock(&mu_);
    if (--running_ == 0) ended_.NotifyAll();
  }

  const DatasetLook& look_;
  const Storage& storage_;
  const LookOptions& options_;
  std::vector<size_t> order_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> stop_{false};
  Mutex mu_;
  CondVar ended_;
  size_t running_ ABSL_GUARDED_BY(mu_) = 0;
  Looked looked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace

std::string DatasetLook::Serialize() const {
  stored::v1::DatasetLook proto;
  proto.set_total(total);
  const std::string* before = nullptr;
  for (const Entry& entry : entries) {
    size_t shared = 0;
    if (before != nullptr)
      shared =
          static_cast<size_t>(std::mismatch(before->begin(), before->end(),
                                            entry.uri.begin(), entry.uri.end())
                                  .first -
                              before->begin());
    stored::v1::LookEntry& to = *proto.add_entries();
    to.set_kind(static_cast<uint32_t>(entry.kind));
    to.set_shared(static_cast<uint32_t>(shared));
    to.set_rest(entry.uri.substr(shared));
    to.set_seen(entry.seen);
    to.set_young(entry.young);
    before = &entry.uri;
  }
  return proto.SerializeAsString();
}

absl::StatusOr<DatasetLook> DatasetLook::Parse(std::string_view bytes) {
  stored::v1::DatasetLook proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return DataLoss("what a listing saw of its storage is malformed");
  DatasetLook look;
  look.total = proto.total();
  std::string before;
  uint64_t address_bytes = 0;
  for (stored::v1::LookEntry& from : *proto.mutable_entries()) {
    if (from.kind() < 1 ||
        from.kind() > static_cast<uint32_t>(SeenKind::kNothing) ||
        from.shared() > before.size())
      return DataLoss("what a listing saw of its storage is malformed");
    // A few bytes of an entry stand for the whole URI before it.
    address_bytes += from.shared() + from.rest().size();
    if (address_bytes > kMaxAddressBytes)
      return DataLoss(
          "what a listing saw of its storage has over {} bytes of addresses",
          kMaxAddressBytes);
    Entry& entry = look.entries.emplace_back();
    entry.kind = static_cast<SeenKind>(from.kind());
    entry.uri = before.substr(0, from.shared()) + from.rest();
    entry.seen = std::move(*from.mutable_seen());
    entry.young = from.young();
    before = entry.uri;
  }
  return look;
}

Looked LookAgain(const DatasetLook& look, const Storage& storage,
                 const LookOptions& options) {
  return Look(look, storage, options).Run();
}

std::string SeenFolder(const StoredFolder& folder) {
  if (folder.real_path.empty()) return fmt::format("{}", folder.modified_ns);
  return fmt::format("{} {}", folder.modified_ns, folder.real_path);
}

std::string SeenCopiedFolder() { return std::string(kCopiedFolder); }

std::string SeenPrefix(std::span<const StoredObject> objects) {
  Sha256 hash;
  for (const StoredObject& object : objects)
    hash.UpdateField(object.name).UpdateField(object.identity);
  return fmt::format("{} {}", objects.size(), ToHex(hash.Finish()));
}

}  // namespace leat::worker
