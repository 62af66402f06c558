// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/disk_forms.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/status.h"
#include "worker/sample/stored_bytes.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

constexpr uint64_t kRecordVersion = 1;
// A marker that no form can be made: shorter than any form.
constexpr size_t kRefusedBytes = 4;
// For a photo, a file has about this many times the bytes of its seek index,
// and its coefficients have this many times the bytes of the file, with some
// room.
constexpr size_t kUsualSeekOf = 32, kUsualCoefficients = 2;

// Pixels are not an McuForm, and reading that many bytes takes as long as a
// decode.
constexpr JpegFormKind kDiskKinds[] = {JpegFormKind::kSeekIndex,
                                       JpegFormKind::kCoefficients};

// Returns the key that entries of a kind and version are stored under.
Digest DiskKeyOf(const Digest& dataset, std::string_view what,
                 uint64_t version) {
  return Sha256()
      .UpdateField("leat: kept by record")
      .Update(std::as_bytes(std::span(dataset)))
      .UpdateField(what)
      .UpdateU64(version)
      .Finish();
}

}  // namespace

class DiskForms::Dataset {
 public:
  // Entries of one kind.
  struct Entries {
    Digest key{};
    DiskCache::DatasetPtr on_disk;  // nullptr: none are kept
  };

  explicit Dataset(const Digest& key) : key_(key) {}

  // The rank is the record's, for every kind.
  RangeKey KeyOf(const Entries& entries, uint64_t record) const {
    return {.high = RankOf(key_, record), .low = RankOf(entries.key, record)};
  }

  Entries records;
  std::array<Entries, kDecodeWays> forms;

 private:
  const Digest key_;
};

absl::StatusOr<std::unique_ptr<DiskForms>> DiskForms::Start(
    std::shared_ptr<DiskCache> cache, DiskFormsOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<DiskWriter> writer,
                   DiskWriter::Start(cache, options.max_waiting_bytes));
  return std::unique_ptr<DiskForms>(
      new DiskForms(std::move(cache), std::move(options), std::move(writer)));
}

DiskForms::DiskForms(std::shared_ptr<DiskCache> cache, DiskFormsOptions options,
                     std::unique_ptr<DiskWriter> writer)
    : options_(std::move(options)),
      cache_(std::move(cache)),
      writer_(std::move(writer)) {}

DiskForms::DatasetPtr DiskForms::Open(const Digest& key,
                                      const std::string& name,
                                      const std::string& root,
                                      const std::string& id) const {
  const bool local = IsLocalUri(root);
  if (root.empty() || (local && options_.of == DiskCacheOf::kRemote))
    return nullptr;
  auto dataset = std::make_shared<Dataset>(key);
  if (local && options_.local_records) {
    dataset->records.key = DiskKeyOf(key, "record", kRecordVersion);
    dataset->records.on_disk = cache_->OpenDataset(key, name, id);
  }
  for (const JpegFormKind kind : kDiskKinds) {
    if (!options_.kinds.Has(kind)) continue;
    Dataset::Entries& entries = dataset->forms[WayOf(kind)];
    entries.key = DiskKeyOf(key, FormName(kind), options_.codec.version);
    entries.on_disk =
        cache_->OpenForms(entries.key, {.dataset = key,
                                        .name = name,
                                        .tier = static_cast<int>(kind),
                                        .form = FormName(kind)});
  }
  return dataset;
}

bool DiskForms::HasRecord(const DatasetPtr& dataset, uint64_t record) const {
  const Dataset::Entries& entries = dataset->records;
  return entries.on_disk != nullptr &&
         cache_->SizeOf(dataset->KeyOf(entries, record)).has_value();
}

std::optional<StoredSample> DiskForms::ReadRecord(
    const DatasetPtr& dataset, uint64_t record,
    std::span<const ValueType> types) const {
  const Dataset::Entries& entries = dataset->records;
  if (entries.on_disk == nullptr) return std::nullopt;
  const RangeKey key = dataset->KeyOf(entries, record);
  std::optional<std::vector<std::byte>> bytes =
      cache_->Find(entries.on_disk, key);
  if (!bytes) return std::nullopt;
  std::optional<StoredSample> sample = UnpackSample(*std::move(bytes));
  if (sample && FitsTypes(*sample, types)) return sample;
  cache_->Refuse(entries.on_disk, key);
  return std::nullopt;
}

void DiskForms::KeepRecord(const DatasetPtr& dataset, uint64_t record,
                           const StoredSample& sample, Duration took) const {
  const Dataset::Entries& entries = dataset->records;
  if (entries.on_disk == nullptr) return;
  cache_->Took(entries.on_disk, took);
  const RangeKey key = dataset->KeyOf(entries, record);
  if (!cache_->Wants(entries.on_disk, key, sample.record_bytes())) return;
  std::vector<std::byte> bytes = PackSample(sample);
  if (!bytes.empty()) writer_->Offer(entries.on_disk, key, std::move(bytes));
}

void DiskForms::ReadFormOf(const DatasetPtr& dataset, uint64_t record,
                           StoredSample* sample) const {
  for (const JpegFormKind kind :
       {JpegFormKind::kCoefficients, JpegFormKind::kSeekIndex}) {
    const Dataset::Entries& entries = dataset->forms[WayOf(kind)];
    if (entries.on_disk == nullptr) continue;
    const RangeKey key = dataset->KeyOf(entries, record);
    const std::optional<uint64_t> size = cache_->SizeOf(key);
    if (!size || *size <= kRefusedBytes) continue;
    std::optional<std::vector<std::byte>> bytes =
        cache_->Find(entries.on_disk, key);
    if (!bytes) continue;
    if (!AttachForm(options_.codec, kind, *std::move(bytes),
                    /*beside_dataset=*/false, sample)) {
      cache_->Refuse(entries.on_disk, key);
      continue;
    }
    return;
  }
}

bool DiskForms::Wants(const DatasetPtr& dataset, uint64_t record,
                      JpegFormKind kind, size_t file_bytes) const {
  const Dataset::Entries& entries = dataset->forms[WayOf(kind)];
  if (entries.on_disk == nullptr) return false;
  const size_t usual = kind == JpegFormKind::kSeekIndex
                           ? file_bytes / kUsualSeekOf
                           : file_bytes * kUsualCoefficients;
  return cache_->Wants(entries.on_disk, dataset->KeyOf(entries, record),
                       std::max<size_t>(usual, 1));
}

void DiskForms::KeepForm(const DatasetPtr& dataset, uint64_t record,
                         const KeptForm& form) const {
  const Dataset::Entries& entries = dataset->forms[WayOf(form.kind)];
  if (entries.on_disk == nullptr) return;
  const RangeKey key = dataset->KeyOf(entries, record);
  if (!cache_->Wants(entries.on_disk, key, form.bytes)) return;
  const std::span<const std::byte> bytes = options_.codec.bytes_of(form);
  writer_->Offer(entries.on_disk, key, {bytes.begin(), bytes.end()});
}

bool DiskForms::HasRefused(const DatasetPtr& dataset, uint64_t record,
                           JpegFormKind kind) const {
  const Dataset::Entries& entries = dataset->forms[WayOf(kind)];
  if (entries.on_disk == nullptr) return false;
  const std::optional<uint64_t> size =
      cache_->SizeOf(dataset->KeyOf(entries, record));
  return size.has_value() && *size <= kRefusedBytes;
}

void DiskForms::RefuseForm(const DatasetPtr& dataset, uint64_t record,
                           JpegFormKind kind) const {
  const Dataset::Entries& entries = dataset->forms[WayOf(kind)];
  if (entries.on_disk == nullptr) return;
  writer_->Offer(entries.on_disk, dataset->KeyOf(entries, record),
                 std::vector<std::byte>(kRefusedBytes));
}

}  // namespace leat::worker
