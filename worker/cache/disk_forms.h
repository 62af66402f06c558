// SPDX-License-Identifier: Apache-2.0
//
// DiskForms: what the disk cache keeps of datasets' records, by record: forms
// of their JPEG files (worker/image/jpeg_forms), and records themselves where
// they lie on file systems.
//
//   remote records   are kept as ranges, by storage (disk_cache.h); here their
//                    forms
//   local ones, NFS  the record and its forms, if all datasets are to be kept
//   brought by the consumer: nothing
//
// Keys. An entry is found by the dataset's key, which covers all files'
// identities and what the reader takes of them, by the record's number, the
// kind, and the version of its bytes; ranks are the records' (cache_shares.h),
// so that the forms and the records that stay are those of the same ranks. A
// form names the length and the sum of the file that it was made of, and is
// served with that file only: of a file that changed it is a miss.
//
// What is not as it was written, or of another file, is forgotten, counted by
// the disk cache as damaged, and the record is decoded plainly. Nothing of this
// is an error for anybody.
//
// Bounds. Records come first, then seek indexes, then coefficients: a tier has
// what those before it leave. Writing is DiskWriter's: behind, and dropped
// where too much waits.
//
// A file of which no form can be made has an entry that says so, so that it is
// not tried again.
//
// Thread-safe. Reading blocks on the disk; no lock is held then.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/pipeline/operators.h"
#include "worker/cache/read_form.h"
#include "worker/image/jpeg/forms/codec.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/sample/stored_sample.h"
#include "worker/source/disk_cache/writer.h"

namespace leat::worker {

// Which datasets a disk cache keeps something of.
enum class DiskCacheOf {
  kRemote,  // s3, gs and http
  kAll,
};

struct DiskFormsOptions {
  FormKinds kinds;  // that may be kept; pixels never are
  FormCodec codec;
  DiskCacheOf of = DiskCacheOf::kRemote;
  // Whether records of local datasets are kept: not where this machine has
  // copies, whose files have identities of their own.
  bool local_records = true;
  uint64_t max_waiting_bytes = 32 << 20;
};

class DiskForms {
 public:
  class Dataset;
  using DatasetPtr = std::shared_ptr<const Dataset>;

  // kResourceExhausted: the system gives no thread.
  static absl::StatusOr<std::unique_ptr<DiskForms>> Start(
      std::shared_ptr<DiskCache> cache, DiskFormsOptions options);

  // Null: nothing of it is kept here. `key`: as DatasetUses knows it. `root`:
  // where it lies (RootOf). `id`: the coordinator's.
  DatasetPtr Open(const Digest& key, const std::string& name,
                  const std::string& root, const std::string& id = "") const;

  // nullopt: it is not kept, or cannot be read, or is no record of `types`,
  // which are those of the reader's outputs.
  std::optional<StoredSample> ReadRecord(
      const DatasetPtr& dataset, uint64_t record,
      std::span<const ValueType> types) const;
  // Whether ReadRecord has something to read.
  bool HasRecord(const DatasetPtr& dataset, uint64_t record) const;
  // `took`: to read it where it lies.
  void KeepRecord(const DatasetPtr& dataset, uint64_t record,
                  const StoredSample& sample, Duration took) const;

  // Puts the best form that there is of one of the sample's fields into it.
  void ReadFormOf(const DatasetPtr& dataset, uint64_t record,
                  StoredSample* sample) const;
  // Whether a form of this kind is missing, and would be kept.
  bool Wants(const DatasetPtr& dataset, uint64_t record, JpegFormKind kind,
             size_t file_bytes) const;
  void KeepForm(const DatasetPtr& dataset, uint64_t record,
                const KeptForm& form) const;
  // Whether the disk says that none of this kind can be made of its file.
  bool HasRefused(const DatasetPtr& dataset, uint64_t record,
                  JpegFormKind kind) const;
  // None can be made of its file.
  void RefuseForm(const DatasetPtr& dataset, uint64_t record,
                  JpegFormKind kind) const;

  FormKinds kinds() const { return options_.kinds; }
  uint64_t max_form_bytes() const { return cache_->max_range_bytes(); }
  // These have the contracts of DiskWriter's functions.
  bool WaitIdle(MonotonicTime deadline) { return writer_->WaitIdle(deadline); }
  uint64_t dropped() const { return writer_->dropped(); }

 private:
  DiskForms(std::shared_ptr<DiskCache> cache, DiskFormsOptions options,
            std::unique_ptr<DiskWriter> writer);

  const DiskFormsOptions options_;
  const std::shared_ptr<DiskCache> cache_;
  const std::unique_ptr<DiskWriter> writer_;
};

}  // namespace leat::worker
