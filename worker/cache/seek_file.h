// SPDX-License-Identifier: Apache-2.0
//
// SeekFile: the seek indexes of a dataset's JPEG files
// (worker/image/jpeg/forms) in a file beside the dataset, so that every worker
// that mounts it has them in the first epoch. `leat index --seek` writes it;
// workers only read it.
//
// It is in the dataset's folder and its name begins with a dot, so that no
// reader takes it for data. A dataset in a bucket has none.
//
// The name and the header contain the dataset's fingerprint, so a dataset that
// changed has no seek file until it is indexed again. A file is untrusted: each
// form has a checksum and names the checksum of the JPEG that it was made of. A
// form that is not as it was written, or not of the record, is ignored. The
// record is then decoded plainly, to the same pixels.
//
// The layout, with numbers in little-endian order:
//    0  "LeatSeek", u32 version of this layout, u32 version of the forms
//   16  u64 records, 32 bytes of fingerprint
//   56  u32 CRC-32C of the bytes before it, u32 0
//   64  u64 × (records + 1): where each record's form begins; the last one says
//       where the last form ends
//   ..  the forms; a record without one has two equal places
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/hash.h"
#include "worker/image/jpeg/forms/codec.h"
#include "worker/sample/stored_sample.h"
#include "worker/source/storage/base/allowed.h"
#include "worker/source/storage/base/open_file_budget.h"

namespace leat::worker {

// Returns the path of a dataset's seek file:
// "/data/train/.0123456789abcdef.leat-seek" for an image folder, and the same
// name in the folder of the first file for other readers. `root`: RootOf its
// reader. Returns an empty path if the dataset is not on a file system, or
// where `allowed` (nullptr: everything) forbids reading. Blocks on the file
// system.
std::string SeekFilePath(std::string root, const Digest& fingerprint,
                         const AllowedReads* allowed = nullptr);

// Thread-safe. Reading blocks on the file system. A budget may close the file
// while no thread reads it; the next read opens what is at the path then.
class SeekFile {
 public:
  // kNotFound: there is no file. kFailedPrecondition: it is not a regular file,
  // or of another dataset. kInvalidArgument: not a seek file, or of another
  // version. kDataLoss: damaged, or cut off. kPermissionDenied: `allowed`
  // forbids reading it. Others: as FileError. Links are not followed, and
  // devices and pipes are not opened. `allowed` outlives it. `budget`: nullptr:
  // one of its own.
  static absl::StatusOr<std::shared_ptr<const SeekFile>> Open(
      const std::string& path, const Digest& fingerprint, FormCodec codec,
      const AllowedReads* allowed = nullptr,
      std::shared_ptr<OpenFileBudget> budget = nullptr);

  uint64_t records() const { return records_; }

  // Puts the record's form into the sample. Leaves the sample unchanged if
  // there is none, it cannot be read, or it was made of other bytes.
  void ReadFormOf(uint64_t record, StoredSample* sample) const;

 private:
  SeekFile(const std::string& path, const Digest& fingerprint, FormCodec codec,
           const AllowedReads* allowed, std::shared_ptr<OpenFileBudget> budget);
  // Returns the descriptor. Sets `*records`, and the size of the file.
  absl::StatusOr<int> OpenNow(uint64_t* records) const;
  absl::StatusOr<int> OpenAgain() const;
  std::optional<std::vector<std::byte>> Read(uint64_t record) const;

  const std::string path_;
  const Digest fingerprint_;
  const FormCodec codec_;
  const AllowedReads* const allowed_;  // nullptr: everything
  uint64_t records_ = 0;               // constant after Open
  mutable std::atomic<uint64_t> bytes_{0};
  mutable OpenFileShare share_;
};

// Writes a seek file under another name first, so that the file at its path is
// always complete. Thread-compatible.
class SeekFileWriter {
 public:
  // `form_version`: FormCodec's. kFailedPrecondition: another process writes
  // it. Others: as FileError.
  static absl::StatusOr<std::unique_ptr<SeekFileWriter>> Create(
      const std::string& path, const Digest& fingerprint, uint64_t records,
      uint16_t form_version);
  // Removes the file unless Finish has moved it to its path.
  ~SeekFileWriter();
  SeekFileWriter(const SeekFileWriter&) = delete;
  SeekFileWriter& operator=(const SeekFileWriter&) = delete;

  // Appends the forms of the next records, in order; a record without one has
  // an empty form. kInvalidArgument: more records than there are. Others: as
  // FileError.
  absl::Status Append(std::span<const std::vector<std::byte>> forms);
  // Moves the file to its path, once the disk has it. Records that were not
  // appended have no form. Errors: as FileError.
  absl::Status Finish();

  uint64_t bytes() const { return end_; }  // of the file so far

 private:
  SeekFileWriter(std::string path, std::string unfinished, int fd,
                 const Digest& fingerprint, uint64_t records,
                 uint16_t form_version);
  absl::Status Write(std::span<const std::byte> bytes, uint64_t at) const;

  const std::string path_, unfinished_;
  const int fd_;
  const Digest fingerprint_;
  const uint64_t records_;
  const uint16_t form_version_;
  uint64_t next_ = 0;  // the next record
  uint64_t end_;       // of the forms
  bool finished_ = false;
};

}  // namespace leat::worker
