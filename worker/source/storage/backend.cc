// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/backend.h"

#include <random>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/source/storage/http/curl_transport.h"

namespace leat::worker {
namespace {

// Spreads retries; decides nothing else.
uint64_t RealRandom() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

}  // namespace

StorageBackend::StorageBackend(const StorageConfig& config, StorageHooks hooks,
                               std::shared_ptr<const AllowedReads> allowed,
                               std::shared_ptr<DiskCache> disk)
    : config_(config),
      hooks_(std::move(hooks)),
      allowed_(std::move(allowed)),
      disk_(std::move(disk)),
      open_files_(std::make_shared<OpenFileBudget>(
          config.max_open_files > 0 ? config.max_open_files
                                    : OpenFileBudget::MostOfThisProcess())) {
  if (hooks_.clock == nullptr) hooks_.clock = &StorageClock::Real();
  if (!hooks_.random) hooks_.random = &RealRandom;
  const char* const bundle = hooks_.getenv("AWS_CA_BUNDLE");
  if (config_.ca_bundle.empty() && bundle != nullptr) {
    config_.ca_bundle = bundle;
  }
}

StorageCounters StorageBackend::counters() const {
  StorageCounters counters;
  {
    const MutexLock lock(&mu_);
    if (remote_ != nullptr) counters = remote_->counters();
  }
  if (disk_ == nullptr) return counters;
  DiskCacheStats kept = disk_->stats();
  counters.disk_hits = kept.hits;
  counters.disk_misses = kept.misses;
  counters.disk_bytes = kept.bytes;
  counters.disk_datasets = std::move(kept.datasets);
  return counters;
}

absl::StatusOr<std::shared_ptr<Remote>> StorageBackend::GetRemote() {
  const MutexLock lock(&mu_);
  if (remote_ != nullptr) return remote_;
  if (stopped_)
    return WithFault(Cancelled("the worker stops"), Fault::kTransient);
  ASSIGN_OR_RETURN(auto transport, CurlTransport::Create(config_, allowed_));
  remote_ = std::make_shared<Remote>(config_, std::move(transport),
                                     hooks_.clock, hooks_.random, disk_);
  return remote_;
}

void StorageBackend::Stop() {
  std::shared_ptr<Remote> remote;
  {
    const MutexLock lock(&mu_);
    stopped_ = true;
    remote = remote_;
  }
  if (remote != nullptr) remote->Stop();
}

absl::StatusOr<std::shared_ptr<S3Account>> StorageBackend::AccountOf(
    UriScheme scheme) {
  if (scheme == UriScheme::kHttp) return nullptr;
  {
    const MutexLock lock(&mu_);
    const auto found = accounts_.find(scheme);
    if (found != accounts_.end()) return found->second;
  }
  ASSIGN_OR_RETURN(auto account,
                   S3Account::Create(scheme, config_, hooks_.getenv));
  const MutexLock lock(&mu_);
  return accounts_.emplace(scheme, std::move(account)).first->second;
}

absl::StatusOr<std::shared_ptr<const StorageFile>> StorageBackend::OpenRemote(
    const StorageUri& uri, std::string_view expected,
    DiskCache::DatasetPtr dataset) {
  RETURN_IF_ERROR(allowed_->CheckRemote(uri));
  ASSIGN_OR_RETURN(auto remote, GetRemote());
  ASSIGN_OR_RETURN(auto account, AccountOf(uri.scheme));
  if (uri.scheme != UriScheme::kHttp && uri.path.empty()) {
    return WithFault(InvalidArgument("{}: no key after the bucket", uri.name),
                     Fault::kSample);
  }
  Target target = ObjectTarget(uri, std::move(account));
  Identity identity;
  if (expected.empty()) {
    ASSIGN_OR_RETURN(identity, ProbeObject(*remote, target));
  } else {
    ASSIGN_OR_RETURN(identity, ParseIdentity(expected, uri.name));
    if (identity.kind == Identity::Kind::kMtimeNs) {
      return WithFault(
          InvalidArgument("{}: '{}' is the identity of a local file", uri.name,
                          expected),
          Fault::kSample);
    }
  }
  return OpenRemoteFile(std::move(remote), std::move(target),
                        std::move(identity), std::move(dataset));
}

absl::StatusOr<StoredObject> StorageBackend::StatRemote(const StorageUri& uri) {
  ASSIGN_OR_RETURN(const auto file, OpenRemote(uri, "", nullptr));
  return StoredObject{uri.name, file->size(), file->identity()};
}

absl::StatusOr<std::vector<StoredObject>> StorageBackend::ListRemote(
    const StorageUri& uri, const std::atomic<bool>* cancelled) {
  if (uri.scheme == UriScheme::kHttp) {
    return Unimplemented("{}: http has no listing; name the files, or use s3",
                         uri.name);
  }
  RETURN_IF_ERROR(allowed_->CheckRemote(uri));
  ASSIGN_OR_RETURN(auto remote, GetRemote());
  ASSIGN_OR_RETURN(const auto account, AccountOf(uri.scheme));
  return ListBucket(*remote, uri, account, cancelled);
}

}  // namespace leat::worker
