// SPDX-License-Identifier: Apache-2.0
//
// LaterSeekFile: the seek file beside a dataset, which is looked for when
// storage has given a record of that dataset.
//
// A file system that does not answer may hold a thread for ever. So a job is
// loaded without a look at its datasets' folders, and a row whose record is
// kept elsewhere does not wait for them. One thread looks, once; the others go
// on without the file, since it changes no row.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>

#include "core/hash.h"
#include "worker/cache/seek_file.h"

namespace leat::worker {

class LaterSeekFile {
 public:
  struct Options {
    std::string job;     // for logs
    std::string folder;  // as for SeekFilePath
    Digest fingerprint{};
    const FormCodec* codec = nullptr;       // outlives it
    const AllowedReads* allowed = nullptr;  // as for SeekFile::Open
    std::shared_ptr<OpenFileBudget> budget = nullptr;
  };
  explicit LaterSeekFile(Options options) : options_(std::move(options)) {}

  // Looks for the file, unless a thread has done so or does so now. Blocks on
  // the file system.
  void Look() const;
  // Returns nullptr if there is none that can be used, or none was looked for
  // yet.
  const SeekFile* found() const {
    return found_.load(std::memory_order_acquire);
  }

 private:
  const Options options_;
  mutable std::atomic<bool> looked_{false};
  mutable std::shared_ptr<const SeekFile> file_;  // of the thread that looks
  mutable std::atomic<const SeekFile*> found_{
      nullptr};  // file_, once it is set
};

}  // namespace leat::worker
