// SPDX-License-Identifier: Apache-2.0
#include "worker/source/file_set.h"

#include <limits>

#include "absl/strings/numbers.h"
#include "core/cluster/fault.h"
#include "core/status.h"
#include "core/utf8.h"
#include "worker/source/own_copy.h"
#include "worker/source/storage/base/identity.h"

namespace leat::worker {
namespace {

constexpr int64_t kNoTimeYet = std::numeric_limits<int64_t>::min();

// Returns when a local file was last written.
absl::StatusOr<int64_t> TimeOf(const StorageFile& file) {
  ASSIGN_OR_RETURN(const Identity identity,
                   ParseIdentity(file.identity(), file.name()));
  int64_t ns = kNoTimeYet;
  if (!absl::SimpleAtoi(identity.version, &ns))
    return Internal("{}: a local file of identity {}", file.name(),
                    file.identity());
  return ns;
}

// `folder` may end with a slash.
bool IsBelow(std::string_view uri, std::string_view folder) {
  return uri.starts_with(folder) &&
         (folder.ends_with('/') || uri.substr(folder.size()).starts_with('/'));
}

}  // namespace

absl::Status FileSet::Add(std::string_view name, uint64_t size,
                          std::string_view identity) {
  RETURN_IF_ERROR(CheckName(name));
  if (size > UINT64_MAX - total_bytes_)
    return DataLoss("{}: a size of {} bytes", ToUtf8(RedactedUri(name)), size);
  File file;
  text_ += name;
  file.name_end = text_.size();
  text_ += identity;
  file.end = text_.size();
  file.size = size;
  files_.push_back(file);
  total_bytes_ += size;
  return absl::OkStatus();
}

std::string_view FileSet::name(size_t i) const {
  return std::string_view(text_).substr(Begin(i),
                                        files_[i].name_end - Begin(i));
}

std::string_view FileSet::identity(size_t i) const {
  return std::string_view(text_).substr(files_[i].name_end,
                                        files_[i].end - files_[i].name_end);
}

std::string FileSet::Uri(size_t i) const {
  return root_.empty() ? std::string(name(i)) : JoinUri(root_, name(i));
}

absl::StatusOr<std::shared_ptr<const StorageFile>> FileSet::Open(
    const Storage& storage, size_t i) const {
  const std::string uri = Uri(i);
  // A list may name files anywhere; of those outside it, the dataset's folder
  // tells nothing.
  const std::string& known = folder_.empty() ? root_ : folder_;
  const std::string folder = IsBelow(uri, known) ? known : std::string();
  const bool copied = storage.IsCopied(uri);
  if (copied)
    absl::call_once(seen_->once, [&] { LookWhetherCopy(storage, i); });
  if (!copied || seen_->times == nullptr)
    return storage.Open(uri, identity(i), folder);
  ASSIGN_OR_RETURN(auto file,
                   storage.Open(uri, WithoutTime(identity(i)), folder));
  ASSIGN_OR_RETURN(const int64_t now, TimeOf(*file));
  int64_t first = kNoTimeYet;
  if (seen_->times[i].compare_exchange_strong(first, now) || first == now)
    return file;
  return WithFault(
      FailedPrecondition("{}: changed since it was read first: written at {} "
                         "ns, was {} ns",
                         file->name(), now, first),
      Fault::kObject);
}

void FileSet::LookWhetherCopy(const Storage& storage, size_t copied) const {
  // A file of another folder says nothing about the copy.
  const auto is_listed = [&](uint64_t i) {
    if (!storage.IsCopied(Uri(i))) return false;
    const auto now = storage.Stat(Uri(i));
    return now.ok() && now->identity == identity(i);
  };
  if (is_listed(copied) || !HasOwnTimes(count(), Shown(copied), is_listed))
    return;
  seen_->times = std::make_unique<std::atomic<int64_t>[]>(count());
  for (size_t i = 0; i < count(); ++i) seen_->times[i] = kNoTimeYet;
}

void FileSet::UpdateHash(Sha256* hash, size_t begin) const {
  for (size_t i = begin; i < count(); ++i)
    hash->UpdateField(name(i)).UpdateU64(size(i)).UpdateField(identity(i));
}

void FileSet::ShrinkToFit() {
  text_.shrink_to_fit();
  files_.shrink_to_fit();
}

absl::Status CheckName(std::string_view name) {
  if (IsUtf8(name)) return absl::OkStatus();
  return FailedPrecondition("the name \"{}\" is not UTF-8: rename it",
                            ToUtf8(RedactedUri(name)));
}

bool StaysBelow(std::string_view name) {
  if (name.empty() || name.starts_with('/') ||
      name.find('\0') != std::string_view::npos)
    return false;
  while (!name.empty()) {
    const size_t slash = name.find('/');
    if (name.substr(0, slash) == "..") return false;
    name.remove_prefix(slash == std::string_view::npos ? name.size()
                                                       : slash + 1);
  }
  return true;
}

}  // namespace leat::worker
