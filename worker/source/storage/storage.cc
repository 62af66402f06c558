// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/storage.h"

#include <cstdlib>

#include "core/cluster/fault.h"
#include "core/observe/stages.h"
#include "core/status.h"
#include "worker/source/disk_cache/disk_cache.h"
#include "worker/source/storage/backend.h"
#include "worker/source/storage/base/allowed.h"
#include "worker/source/storage/base/identity.h"
#include "worker/source/storage/base/uri.h"
#include "worker/source/storage/local/local.h"

namespace leat::worker {
namespace {

absl::Status CheckConfig(const StorageConfig& config) {
  const auto check = [](std::string_view name, double value, double low,
                        double high) {
    if (value >= low && value <= high) return absl::OkStatus();
    return InvalidArgument("storage: {} is {}, want {} to {}", name, value, low,
                           high);
  };
  constexpr double kDayMs = 24 * 3600 * 1000;
  RETURN_IF_ERROR(check("connections", config.connections, 1, 10'000));
  RETURN_IF_ERROR(check("parallel_ranges", config.parallel_ranges, 1, 1000));
  RETURN_IF_ERROR(check("range_bytes", config.range_bytes, 1, 1ull << 32));
  RETURN_IF_ERROR(
      check("coalesce_gap_bytes", config.coalesce_gap_bytes, 0, 1ull << 32));
  RETURN_IF_ERROR(
      check("connect_timeout", config.connect_timeout.count(), 1, kDayMs));
  RETURN_IF_ERROR(
      check("request_timeout", config.request_timeout.count(), 1, kDayMs));
  RETURN_IF_ERROR(
      check("stall_timeout", config.stall_timeout.count(), 1, kDayMs));
  RETURN_IF_ERROR(check("silence", config.silence.count(), 1, kDayMs));
  RETURN_IF_ERROR(check("deadline", config.deadline.count(), 1, kDayMs));
  RETURN_IF_ERROR(check("max_tries", config.max_tries, 1, 1000));
  RETURN_IF_ERROR(
      check("first_backoff", config.first_backoff.count(), 1, kDayMs));
  RETURN_IF_ERROR(check("max_backoff", config.max_backoff.count(), 1, kDayMs));
  RETURN_IF_ERROR(
      check("max_retry_after", config.max_retry_after.count(), 0, kDayMs));
  RETURN_IF_ERROR(check("hedge_after", config.hedge_after.count(), 1, kDayMs));
  RETURN_IF_ERROR(check("hedge_factor", config.hedge_factor, 1, 1000));
  RETURN_IF_ERROR(check("max_hedges", config.max_hedges, 0, 1000));
  RETURN_IF_ERROR(check("hedge_every", config.hedge_every, 1, 1e6));
  RETURN_IF_ERROR(check("max_open_files",
                        static_cast<double>(config.max_open_files), 0, 1e9));
  RETURN_IF_ERROR(check("max_list_entries", config.max_list_entries, 1, 1e10));
  RETURN_IF_ERROR(check("max_list_depth", config.max_list_depth, 1, 1000));
  return check("max_page_bytes", config.max_page_bytes, 1024, 1ull << 32);
}

}  // namespace

Storage::Storage(std::shared_ptr<StorageBackend> backend,
                 std::shared_ptr<DiskDataset> dataset)
    : backend_(std::move(backend)), dataset_(std::move(dataset)) {}
Storage::~Storage() = default;

absl::StatusOr<std::unique_ptr<Storage>> Storage::Create(
    const StorageConfig& config, StorageHooks hooks) {
  RETURN_IF_ERROR(CheckConfig(config));
  if (!hooks.getenv)
    hooks.getenv = [](const char* name) { return std::getenv(name); };
  ASSIGN_OR_RETURN(std::shared_ptr<const AllowedReads> allowed,
                   AllowedReads::Create(config.allow, hooks.getenv));
  std::shared_ptr<DiskCache> disk;
  if (!config.disk_cache.empty()) {
    ASSIGN_OR_RETURN(disk,
                     DiskCache::Open({.directory = config.disk_cache,
                                      .max_bytes = config.disk_cache_bytes,
                                      .uses = hooks.uses,
                                      .clock = hooks.clock,
                                      .write = nullptr}));
  }
  return std::unique_ptr<Storage>(new Storage(
      std::make_shared<StorageBackend>(config, std::move(hooks),
                                       std::move(allowed), std::move(disk)),
      nullptr));
}

std::unique_ptr<Storage> Storage::ForDataset(const Digest& key,
                                             const std::string& name) const {
  DiskCache* const disk = backend_->disk();
  return std::unique_ptr<Storage>(new Storage(
      backend_, disk == nullptr ? nullptr : disk->OpenDataset(key, name)));
}

namespace {

using Copy = std::pair<const std::string, std::string>;

// Returns nullptr if there is none.
const Copy* CopyOf(const StorageConfig& config, std::string_view path) {
  const Copy* longest = nullptr;
  for (const auto& copy : config.local_copies) {
    const size_t end = copy.first.size();
    const bool below = path.starts_with(copy.first) &&
                       (path.size() == end || path[end] == '/');
    if (below && (longest == nullptr || longest->first.size() < end))
      longest = &copy;
  }
  return longest;
}

std::string LocalPathOf(const StorageConfig& config, std::string path) {
  const Copy* const longest = CopyOf(config, path);
  if (longest == nullptr) return path;
  return longest->second + path.substr(longest->first.size());
}

// Replaces the path by this machine's copy, which errors then name.
StorageUri OnThisMachine(const StorageConfig& config, StorageUri uri) {
  std::string path = LocalPathOf(config, uri.path);
  if (path != uri.path) uri.name = path;
  uri.path = std::move(path);
  return uri;
}

absl::StatusOr<std::shared_ptr<const StorageFile>> OpenLocalAs(
    const StorageBackend& backend, const StorageUri& wanted,
    std::string_view expected, const std::string& folder) {
  const StorageConfig& config = backend.config();
  const StorageUri uri = OnThisMachine(config, wanted);
  std::string known;
  if (const auto parsed = ParseUri(folder);
      parsed.ok() && parsed->scheme == UriScheme::kLocal)
    known = LocalPathOf(config, parsed->path);
  ASSIGN_OR_RETURN(auto file, OpenLocal(backend.allowed(), backend.open_files(),
                                        uri.path, uri.name, known));
  if (!expected.empty() && file->identity() != expected &&
      WithoutTime(file->identity()) != expected) {
    RETURN_IF_ERROR(
        WithFault(ParseIdentity(expected, uri.name).status(), Fault::kSample));
    return WithFault(FailedPrecondition("{}: changed: was {}, is {}", uri.name,
                                        expected, file->identity()),
                     Fault::kObject);
  }
  return file;
}

}  // namespace

std::unique_ptr<Storage> Storage::Watched(StorageWatcher* watcher) const {
  auto watched = std::unique_ptr<Storage>(new Storage(backend_, dataset_));
  watched->watcher_ = watcher;
  return watched;
}

absl::StatusOr<std::shared_ptr<const StorageFile>> Storage::Open(
    std::string_view uri, std::string_view expected,
    const std::string& folder) const {
  const StageScope opening(Stage::kOpen);
  const absl::StatusOr<StorageUri> parsed = ParseUri(uri);
  // The URI is the job's or its index's, and so the same on every worker.
  if (!parsed.ok()) return WithFault(parsed.status(), Fault::kSample);
  auto file = parsed->scheme == UriScheme::kLocal
                  ? OpenLocalAs(*backend_, *parsed, expected, folder)
                  : backend_->OpenRemote(*parsed, expected, dataset_);
  if (!file.ok()) return WithDefaultFault(file.status(), Fault::kWorker);
  if (watcher_ != nullptr)
    watcher_->SawFile(std::string(uri), (*file)->identity());
  return file;
}

absl::StatusOr<StoredObject> Storage::LookAt(std::string_view uri) const {
  ASSIGN_OR_RETURN(const StorageUri parsed, ParseUri(uri));
  if (parsed.scheme == UriScheme::kLocal) {
    const StorageUri here = OnThisMachine(backend_->config(), parsed);
    return StatLocal(allowed(), here.path, here.name);
  }
  return backend_->StatRemote(parsed);
}

absl::StatusOr<StoredObject> Storage::Stat(std::string_view uri) const {
  auto object = LookAt(uri);
  if (watcher_ == nullptr) return object;
  if (object.ok())
    watcher_->SawFile(std::string(uri), object->identity);
  else if (absl::IsNotFound(object.status()))
    watcher_->SawNothing(std::string(uri));
  return object;
}

absl::StatusOr<StoredFolder> Storage::StatFolder(std::string_view uri) const {
  ASSIGN_OR_RETURN(const StorageUri parsed, ParseUri(uri));
  if (parsed.scheme != UriScheme::kLocal)
    return InvalidArgument("{}: want a local directory", parsed.name);
  const StorageUri here = OnThisMachine(backend_->config(), parsed);
  return StatLocalFolder(allowed(), here.path, here.name);
}

absl::StatusOr<std::vector<StoredObject>> Storage::List(
    std::string_view uri, const std::atomic<bool>* cancelled) const {
  ASSIGN_OR_RETURN(const StorageUri parsed, ParseUri(uri));
  if (parsed.scheme != UriScheme::kLocal) {
    auto objects = backend_->ListRemote(parsed, cancelled);
    if (watcher_ != nullptr && objects.ok())
      watcher_->SawPrefix(std::string(uri), *objects);
    return objects;
  }
  const std::string path = LocalPathOf(backend_->config(), parsed.path);
  if (watcher_ == nullptr)
    return ListLocal(allowed(), path, backend_->config(), cancelled);
  ASSIGN_OR_RETURN(const StoredFolder root, StatFolder(uri));
  watcher_->SawFolder(std::string(uri), root);
  auto objects =
      ListLocal(allowed(), path, backend_->config(), cancelled,
                [&](const std::string& below, int64_t modified_ns) {
                  if (!below.empty())
                    watcher_->SawFolder(JoinUri(uri, below), {modified_ns, ""});
                });
  if (!objects.ok()) return objects;
  for (const StoredObject& object : *objects)
    watcher_->SawFile(JoinUri(uri, object.name), object.identity);
  return objects;
}

std::string Storage::LocalPath(std::string path) const {
  return LocalPathOf(backend_->config(), std::move(path));
}

bool Storage::IsCopied(std::string_view uri) const {
  if (backend_->config().local_copies.empty()) return false;
  const auto parsed = ParseUri(uri);
  return parsed.ok() && parsed->scheme == UriScheme::kLocal &&
         CopyOf(backend_->config(), parsed->path) != nullptr;
}

const AllowedReads& Storage::allowed() const { return *backend_->allowed(); }

std::shared_ptr<DiskCache> Storage::disk() const {
  return backend_->shared_disk();
}

std::shared_ptr<OpenFileBudget> Storage::open_files() const {
  return backend_->open_files();
}

StorageCounters Storage::counters() const { return backend_->counters(); }

void Storage::Stop() const { backend_->Stop(); }

bool IsNetworkUri(std::string_view uri) {
  if (!IsLocalUri(uri)) return true;
  const auto parsed = ParseUri(uri);
  return parsed.ok() && IsOnNetwork(parsed->path);
}

}  // namespace leat::worker
