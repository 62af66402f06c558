// SPDX-License-Identifier: Apache-2.0
//
// RuntimeContext: the objects and settings that all jobs of a worker share.
#pragma once

#include <memory>

#include "worker/cache/disk_forms.h"
#include "worker/cache/sample_cache.h"
#include "worker/compute/row_kernel.h"
#include "worker/image/jpeg/forms/codec.h"
#include "worker/job/bad_samples.h"
#include "worker/job/ownership.h"
#include "worker/job/peer_records.h"
#include "worker/job/stop_signal.h"
#include "worker/job/storage_failures.h"
#include "worker/source/source.h"

namespace leat::worker {

class AllowedReads;
class IdleWork;
class OpenFileBudget;

// The datasets that are read ahead of the decode threads.
enum class ReadAheadOf {
  kRemote,  // those whose reads may wait for a network
  kAll,
};

// Outlives the runtimes.
struct RuntimeContext {
  RowKernelFactory kernels;
  SampleCache* cache = nullptr;
  BadSamples* bad_samples = nullptr;
  const Ownership* ownership = nullptr;
  int read_attempts = 3;
  StopSignal* stop = nullptr;  // ends the pauses between them; nullptr: nothing
  StorageFailures* failures = nullptr;  // nullptr: none are kept
  ReadAheadOf read_ahead_of = ReadAheadOf::kRemote;
  NearbyLimits nearby;  // of records that are read ahead by one request
  // nullptr: nothing is kept per record on a disk.
  const DiskForms* disk = nullptr;
  // Reads the seek indexes beside datasets; without functions, none is read.
  FormCodec seek_indexes = {};
  const AllowedReads* allowed = nullptr;  // for seek files; nullptr: everything
  // For seek files; nullptr: each has one of its own.
  std::shared_ptr<OpenFileBudget> open_files = nullptr;
  // nullptr: no other worker is asked for records.
  RecordAsker* asker = nullptr;
  FormCodec forms = {};      // for forms taken from others
  IdleWork* idle = nullptr;  // nullptr: only rows make forms
};

}  // namespace leat::worker
