// SPDX-License-Identifier: Apache-2.0
//
// DiskForms: the entries of a disk cache that are stored per record: forms of
// JPEG files (worker/image/jpeg/forms), and records themselves if they are on
// file systems.
//
//   remote records   are kept as ranges, by storage (disk_cache.h); here
//                    their forms
//   local ones, NFS  the record and its forms, if all datasets are to be kept
//   client-supplied  nothing
//
// Keys. An entry is found by the dataset's key, which covers all files'
// identities and the parts that the reader takes of them, by the record's
// number, the kind, and the version of its bytes. Ranks are the records'
// (cache_shares.h), so the forms and the records that stay have the same ranks.
// A form names the length and the checksum of the file that it was made of, and
// is served with that file only: for a changed file it is a miss.
//
// An entry that is not as it was written, or belongs to another file, is
// forgotten and counted by the disk cache as damaged, and the record is decoded
// plainly. No caller gets an error for this.
//
// Bounds. Records come first, then seek indexes, then coefficients: each tier
// gets what those before it leave. DiskWriter writes in the background, and
// drops entries if too much waits.
//
// A file that no form can be made of has an entry that says so, so that it is
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

// The datasets that a disk cache keeps entries of.
enum class DiskCacheOf {
  kRemote,  // s3, gs and http
  kAll,
};

struct DiskFormsOptions {
  FormKinds kinds;  // that may be kept; pixels never are
  FormCodec codec;
  DiskCacheOf of = DiskCacheOf::kRemote;
  // True if records of local datasets are kept. False if this machine has
  // copies, whose files have other identities.
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

  // Returns nullptr if nothing of the dataset is kept here. `key`: as
  // DatasetUses knows it. `root`: the root of its files (RootOf). `id`: the
  // coordinator's.
  DatasetPtr Open(const Digest& key, const std::string& name,
                  const std::string& root, const std::string& id = "") const;

  // Returns nullopt if the record is not kept, cannot be read, or does not have
  // `types`, which are those of the reader's outputs.
  std::optional<StoredSample> ReadRecord(
      const DatasetPtr& dataset, uint64_t record,
      std::span<const ValueType> types) const;
  // True if ReadRecord has an entry to read.
  bool HasRecord(const DatasetPtr& dataset, uint64_t record) const;
  // `took`: the time to read it from the dataset.
  void KeepRecord(const DatasetPtr& dataset, uint64_t record,
                  const StoredSample& sample, Duration took) const;

  // Puts the best form that exists for one of the sample's fields into it.
  void ReadFormOf(const DatasetPtr& dataset, uint64_t record,
                  StoredSample* sample) const;
  // True if a form of this kind is missing, and would be kept.
  bool Wants(const DatasetPtr& dataset, uint64_t record, JpegFormKind kind,
             size_t file_bytes) const;
  void KeepForm(const DatasetPtr& dataset, uint64_t record,
                const KeptForm& form) const;
  // True if the disk has a marker that none of this kind can be made of its
  // file.
  bool HasRefused(const DatasetPtr& dataset, uint64_t record,
                  JpegFormKind kind) const;
  // Stores a marker that none can be made of its file.
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
