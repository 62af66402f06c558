// SPDX-License-Identifier: Apache-2.0
//
// Ranges are sorted and grouped: neighbours with small gaps are one request,
// whose bytes are then distributed; large ranges are divided into parts that
// are requested in parallel, in place. Before that, ranges in the disk cache
// are taken from it; ranges that came are offered to it. It is not used for
// objects without a version.
#include <algorithm>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/source/storage/remote/range_task.h"
#include "worker/source/storage/remote/remote.h"

namespace leat::worker {
namespace {

class RemoteFile : public StorageFile {
 public:
  RemoteFile(std::shared_ptr<Remote> remote, Target target, Identity identity,
             DiskCache::DatasetPtr dataset)
      : remote_(std::move(remote)),
        target_(std::move(target)),
        identity_(std::move(identity)),
        identity_text_(identity_.Text()),
        disk_(HasVersion(identity_) ? remote_->disk() : nullptr),
        disk_name_(disk_ == nullptr ? "" : target_.url + ' ' + identity_text_),
        dataset_(std::move(dataset)) {}

  const std::string& name() const override { return target_.name; }
  uint64_t size() const override { return identity_.size; }
  const std::string& identity() const override { return identity_text_; }

  absl::Status ReadAt(uint64_t offset,
                      std::span<std::byte> into) const override {
    const ReadRange range = {offset, into};
    return ReadRanges({&range, 1});
  }

  absl::Status ReadRanges(std::span<const ReadRange> ranges) const override {
    std::vector<ReadRange> sorted;
    for (const ReadRange& range : ranges) {
      if (range.offset > size() || range.into.size() > size() - range.offset) {
        return WithFault(
            OutOfRange("{}: want {} bytes at {}, the object has {}", name(),
                       range.into.size(), range.offset, size()),
            Fault::kSample);
      }
      if (!range.into.empty()) sorted.push_back(range);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const ReadRange& a, const ReadRange& b) {
                       return a.offset < b.offset;
                     });
    if (disk_ != nullptr) TakeKept(&sorted);
    std::vector<std::unique_ptr<HttpTask>> tasks;
    for (size_t begin = 0; begin < sorted.size();) {
      begin = AddGroup(sorted, begin, &tasks);
    }
    const MonotonicTime began = remote_->clock().Now();
    const Verdict verdict = remote_->Run(tasks);
    if (verdict.changed) return Changed(verdict.status);
    if (disk_ != nullptr && verdict.kind == Verdict::Kind::kDone) {
      if (!sorted.empty())
        disk_->Took(dataset_, remote_->clock().Now() - began);
      Keep(sorted);
    }
    return WithDefaultFault(verdict.status, Fault::kWorker);
  }

 private:
  static bool HasVersion(const Identity& identity) {
    return identity.kind == Identity::Kind::kEtag ||
           identity.kind == Identity::Kind::kModified;
  }
  RangeKey KeyOf(const ReadRange& range) const {
    return RangeKey::Of(disk_name_, range.offset, range.into.size());
  }

  // Fills the ranges that the disk cache has, and leaves the others; divides
  // large ones into the parts that they are kept in.
  void TakeKept(std::vector<ReadRange>* ranges) const {
    const uint64_t part_bytes =
        std::min(remote_->config().range_bytes, disk_->max_range_bytes());
    std::vector<ReadRange> left;
    for (const ReadRange& range : *ranges) {
      for (uint64_t at = 0; at < range.into.size(); at += part_bytes) {
        const uint64_t size = std::min(part_bytes, range.into.size() - at);
        const ReadRange part = {range.offset + at,
                                range.into.subspan(at, size)};
        if (!disk_->Get(dataset_, KeyOf(part), part.into)) left.push_back(part);
      }
    }
    *ranges = std::move(left);
  }

  void Keep(const std::vector<ReadRange>& ranges) const {
    for (const ReadRange& range : ranges)
      disk_->Put(dataset_, KeyOf(range), range.into);
  }

  // Adds the tasks of the group that begins with range `begin`; returns where
  // the next one begins.
  size_t AddGroup(const std::vector<ReadRange>& sorted, size_t begin,
                  std::vector<std::unique_ptr<HttpTask>>* tasks) const {
    const StorageConfig& config = remote_->config();
    const uint64_t offset = sorted[begin].offset;
    uint64_t size = sorted[begin].into.size();
    size_t end = begin + 1;
    for (; end < sorted.size(); ++end) {
      const uint64_t next_begin = sorted[end].offset - offset;
      const uint64_t next_size =
          std::max(size, next_begin + sorted[end].into.size());
      if (next_begin > size + config.coalesce_gap_bytes ||
          next_size > config.range_bytes) {
        break;
      }
      size = next_size;
    }
    if (end > begin + 1) {
      tasks->push_back(std::make_unique<RangeTask>(
          *remote_, target_, identity_, offset, size,
          std::span(sorted).subspan(begin, end - begin)));
      return end;
    }
    for (uint64_t part = 0; part < size; part += config.range_bytes) {
      const uint64_t length = std::min(config.range_bytes, size - part);
      tasks->push_back(std::make_unique<RangeTask>(
          *remote_, target_, identity_,
          ReadRange{offset + part, sorted[begin].into.subspan(part, length)}));
    }
    return end;
  }

  // The server refused the version, or has fewer bytes: returns what it has.
  absl::Status Changed(const absl::Status& refused) const {
    const auto now = ProbeObject(*remote_, target_);
    if (!now.ok()) return Annotate(now.status(), Message(refused));
    // A server that refuses the object that it has.
    if (*now == identity_) return WithFault(refused, Fault::kWorker);
    return WithFault(
        FailedPrecondition("{}: it changed since it was opened: was {}, is {}",
                           Message(refused), identity_text_, now->Text()),
        Fault::kObject);
  }

  const std::shared_ptr<Remote> remote_;
  const Target target_;
  const Identity identity_;
  const std::string identity_text_;
  DiskCache* const disk_;  // nullptr: nothing of this object is kept
  const std::string disk_name_;
  const DiskCache::DatasetPtr dataset_;  // nullptr: not known
};

}  // namespace

std::shared_ptr<const StorageFile> OpenRemoteFile(
    std::shared_ptr<Remote> remote, Target target, Identity identity,
    DiskCache::DatasetPtr dataset) {
  return std::make_shared<RemoteFile>(std::move(remote), std::move(target),
                                      std::move(identity), std::move(dataset));
}

}  // namespace leat::worker
