// SPDX-License-Identifier: Apache-2.0
//
// Config: all settings of a worker, set by flags of the same names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/call/auth.h"
#include "rpc/connections/unauthenticated_connections.h"
#include "rpc/daemon/daemon_flags.h"
#include "rpc/tracing/otlp_exporter.h"
#include "worker/cache/disk_forms.h"
#include "worker/compute/gpu_worker.h"
#include "worker/image/base/limits.h"
#include "worker/image/jpeg/forms/kinds.h"
#include "worker/job/job_runtime.h"
#include "worker/shared_memory/server.h"
#include "worker/source/source.h"
#include "worker/source/storage/base/config.h"

namespace leat::worker {

struct Config {
  // Behaviour.
  std::string listen = "127.0.0.1:0";
  std::string http;  // HOST:PORT or PORT of the status pages; empty: none
  std::string coordinator;  // required
  std::string name;         // empty: host and port, or host and process
  std::string pool;         // empty: "default"
  std::string advertise;    // empty: the address that it listens on
  std::string pod_domain;   // of a pod; empty: `advertise` is used unchanged
  rpc::Security security;
  rpc::DaemonFlags daemon;  // also the files that `security` was read from
  int64_t drain_timeout_ms = 20'000;
  rpc::UnauthenticatedOptions unauthenticated;  // without flags
  // To fetch a job while the coordinator is out of reach.
  int64_t job_timeout_ms = 30'000;
  // How rows reach consumers on this host: "auto"; "grpc": their memory is not
  // taken; "shm", "cuda": an error if it cannot be taken.
  std::string transport = "auto";
  rpc::OtlpSettings otlp;  // receives spans of traced steps

  // Performance. 0: derived from the machine, by SetDefaults.
  int threads = 0;
  // All memory that the worker keeps: the next three, read_ahead_bytes, and
  // shared_rows_bytes.
  uint64_t memory_bytes = 0;
  bool has_memory_bytes = false;  // given, not derived
  uint64_t cache_bytes = 0;       // the sample cache
  bool has_cache_bytes = false;
  // The decoded forms that are kept beside records and in the disk cache,
  // if there is room: "none", "seek", "coefficients", "pixels" (in memory only),
  // or "all" of them.
  std::string forms = "all";
  uint64_t index_bytes = 0;   // the index cache: opened blocks of indexes
  uint64_t buffer_bytes = 0;  // of batches being computed and sent
  // Not part of memory_bytes: the working memory of all decode threads.
  uint64_t decode_bytes = 0;
  // Not part of either: the decompressed shards that readers keep.
  uint64_t unpacked_bytes = 0;
  // Reading ahead of the decode threads: threads (0: none, the decode threads
  // wait for storage), bytes, and for which datasets.
  int read_threads = 64;
  uint64_t read_ahead_bytes = 0;
  uint64_t shared_rows_bytes = 0;  // finished rows that others may request
  StorageConfig storage;
  DiskCacheOf disk_cache_of = DiskCacheOf::kRemote;
  std::vector<std::string> local_copies;  // as given: FROM=TO
  std::vector<std::string> allow;         // as given; see SetAllowed
  ReadAheadOf read_ahead_of = ReadAheadOf::kRemote;
  bool ask_peers = true;  // for records, if that is faster than storage
  NearbyLimits nearby;    // of records that one request reads
  uint64_t group_bytes = 1 << 20;
  uint32_t max_unsent_groups_per_stream = 8;
  GpuConfig gpu;

  // Limits.
  uint64_t max_rows_per_stream = 2 << 20;
  uint64_t max_rows_total = 8 << 20;
  // Bytes of samples that consumers supply (readers.external).
  uint64_t max_supplied_bytes_per_stream = 160 << 20;
  uint64_t max_supplied_bytes_total = 2ull << 30;
  uint64_t max_streams = 4096;
  uint64_t max_jobs = 64;
  SharedMemoryOptions sharing;
  // Constant in a release, without flags: under `replace` and `zero` they
  // decide a row's bytes, so they are the same on every worker. Only
  // image.formats, and the memory that a thread keeps, are set per worker, and
  // decide no byte.
  SourceLimits source;
  ImageLimits image;

  // Sets threads and memory that are not given, from the machine's.
  // `decode_bytes` is a quarter of the machine's memory, at least 512 MiB,
  // `unpacked_bytes` an eighth, at least 256 MiB. An eighth of `memory_bytes`
  // (three sixteenths of the machine's memory) is for indexes, a quarter for
  // buffers, an eighth for records read ahead, a sixteenth for shared rows,
  // each within bounds, and the sample cache has the rest.
  void SetDefaults();
  void SetDefaults(int machine_cores, uint64_t machine_bytes);
  // Copies local_copies into `storage`. Errors are Validate's.
  absl::Status SetLocalCopies();
  // Combines `advertise` and `pod_domain` into a pod's name. Errors are
  // Validate's.
  absl::Status SetPodAddress();
  // Sets what jobs may read: paths below `allow` and the copies of
  // local_copies. Without `allow`, everything if no caller beyond this machine
  // can connect. REQUIRES: SetLocalCopies was called.
  void SetAllowed();
  // kInvalidArgument: names the flag, its value and what was expected.
  absl::Status Validate() const;
  FormKinds form_kinds() const;  // from `forms`
  // Returns the part of decode_bytes for rows that need more than their
  // thread's own part. REQUIRES: SetDefaults was called.
  uint64_t shared_decode_bytes() const;
  // kInvalidArgument: the parts of `memory_bytes` exceed it.
  absl::Status CheckMemory() const;
  // Returns one line of key=value, without secrets.
  std::string ToString() const;
};

// The values that main read from the environment.
struct Environment {
  std::optional<std::string> access_token;  // LEAT_ACCESS_TOKEN
  std::string coordinator;                  // LEAT_COORDINATOR
  std::string transport;                    // LEAT_TRANSPORT
  std::string leat_token;                   // LEAT_TOKEN, which is refused
  std::string pool;                         // LEAT_POOL
  rpc::OtlpSettings otlp;                   // OTEL_*
  // The resources that Slurm gave the task: a number of cores, and MiB of
  // memory per node or per core. Empty: not set.
  std::string slurm_cpus;            // SLURM_CPUS_PER_TASK
  std::string slurm_memory;          // SLURM_MEM_PER_NODE
  std::string slurm_memory_per_cpu;  // SLURM_MEM_PER_CPU
};

// Returns a configuration, or the exit code for flags that end the program
// (--help, or a wrong flag, which is reported on stderr).
std::variant<Config, int> ParseFlags(int argc, char** argv,
                                     const Environment& environment);

// Parses "8GiB", "512MiB", "64KiB" or "1000" into bytes. kInvalidArgument: any
// other text.
absl::StatusOr<uint64_t> ParseSize(std::string_view text);

}  // namespace leat::worker
