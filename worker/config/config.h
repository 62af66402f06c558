// SPDX-License-Identifier: Apache-2.0
//
// Config: everything that a worker can be told, by flags of the same names.
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
  std::string advertise;    // empty: what it listens on
  std::string pod_domain;   // of a pod; empty: `advertise` is taken as it is
  rpc::Security security;
  rpc::DaemonFlags daemon;  // among them what `security` was read from
  int64_t drain_timeout_ms = 20'000;
  rpc::UnauthenticatedOptions unauthenticated;  // without flags
  int64_t job_timeout_ms = 30'000;  // to fetch a job while out of reach
  // How rows reach consumers on this host: "auto"; "grpc": their memory is not
  // taken; "shm", "cuda": it is an error if it cannot be.
  std::string transport = "auto";
  rpc::OtlpSettings otlp;  // where spans of traced steps go

  // Performance. 0: from the machine, by SetDefaults.
  int threads = 0;
  // All that the worker keeps in memory: the next three, read_ahead_bytes, and
  // shared_rows_bytes.
  uint64_t memory_bytes = 0;
  bool has_memory_bytes = false;  // given, not from the machine
  uint64_t cache_bytes = 0;       // the sample cache
  bool has_cache_bytes = false;
  // What it keeps of JPEG files beside them and in the disk cache, where there
  // is room: "none", "seek", "coefficients", or "all" of them.
  std::string forms = "all";
  uint64_t index_bytes = 0;   // the index cache: blocks of indexes, opened
  uint64_t buffer_bytes = 0;  // of batches being computed and sent
  // Beside memory_bytes: the working memory of all decode threads.
  uint64_t decode_bytes = 0;
  // Beside both: what readers keep of shards that they decompressed.
  uint64_t unpacked_bytes = 0;
  // Reading ahead of the decode threads: threads (0: none, the decode threads
  // wait for storage), bytes, and of which datasets.
  int read_threads = 64;
  uint64_t read_ahead_bytes = 0;
  uint64_t shared_rows_bytes = 0;  // of finished rows that others may ask for
  StorageConfig storage;
  DiskCacheOf disk_cache_of = DiskCacheOf::kRemote;
  std::vector<std::string> local_copies;  // as given: FROM=TO
  std::vector<std::string> allow;         // as given; see SetAllowed
  ReadAheadOf read_ahead_of = ReadAheadOf::kRemote;
  bool ask_peers = true;  // for records, where that is faster than storage
  NearbyLimits nearby;    // of records that one request brings
  uint64_t group_bytes = 1 << 20;
  uint32_t max_unsent_groups_per_stream = 8;
  GpuConfig gpu;

  // Limits.
  uint64_t max_rows_per_stream = 2 << 20;
  uint64_t max_rows_total = 8 << 20;
  // Of samples that consumers supply (readers.external).
  uint64_t max_supplied_bytes_per_stream = 160 << 20;
  uint64_t max_supplied_bytes_total = 2ull << 30;
  uint64_t max_streams = 4096;
  uint64_t max_jobs = 64;
  SharedMemoryOptions sharing;
  // The release's, without flags: under `replace` and `zero` they decide a
  // row's bytes, so they are the same on every worker. But image.formats, and
  // what a thread keeps, are the worker's own, and decide no byte.
  SourceLimits source;
  ImageLimits image;

  // Fills in what is left open, by what the machine has: threads, and memory.
  // `decode_bytes` is a quarter of the machine's memory, at least 512 MiB,
  // `unpacked_bytes` an eighth, at least 256 MiB.
  // Of `memory_bytes` (three sixteenths of the machine's) an eighth is for
  // indexes, a quarter for buffers, an eighth for records read ahead, a
  // sixteenth for shared rows, each within bounds, and the sample cache has
  // what they leave.
  void SetDefaults();
  void SetDefaults(int machine_cores, uint64_t machine_bytes);
  // Puts local_copies into `storage`. Errors as Validate's.
  absl::Status SetLocalCopies();
  // Makes a pod's name of `advertise` and `pod_domain`. Errors as Validate's.
  absl::Status SetPodAddress();
  // What jobs may read: below `allow` and the copies of local_copies. Without
  // `allow`, everything if nobody beyond this machine can ask.
  // REQUIRES: SetLocalCopies was called.
  void SetAllowed();
  // kInvalidArgument: names the flag, its value and what was expected.
  absl::Status Validate() const;
  FormKinds form_kinds() const;  // of `forms`
  // The part of decode_bytes for rows that need more than their thread has for
  // itself. REQUIRES: SetDefaults was called.
  uint64_t shared_decode_bytes() const;
  // kInvalidArgument: the parts of `memory_bytes` are more than it.
  absl::Status CheckMemory() const;
  // One line of key=value, without secrets.
  std::string ToString() const;
};

// What main read of the environment.
struct Environment {
  std::optional<std::string> access_token;  // LEAT_ACCESS_TOKEN
  std::string coordinator;                  // LEAT_COORDINATOR
  std::string transport;                    // LEAT_TRANSPORT
  std::string leat_token;                   // LEAT_TOKEN, which is refused
  std::string pool;                         // LEAT_POOL
  rpc::OtlpSettings otlp;                   // OTEL_*
  // What Slurm gave the task: a number of cores, and MiB of memory a node or a
  // core. Empty: nothing is said.
  std::string slurm_cpus;            // SLURM_CPUS_PER_TASK
  std::string slurm_memory;          // SLURM_MEM_PER_NODE
  std::string slurm_memory_per_cpu;  // SLURM_MEM_PER_CPU
};

// A configuration, or the exit code of flags that end the program (--help, or a
// wrong flag: said on stderr).
std::variant<Config, int> ParseFlags(int argc, char** argv,
                                     const Environment& environment);

// "8GiB", "512MiB", "64KiB", "1000": bytes. kInvalidArgument: other text.
absl::StatusOr<uint64_t> ParseSize(std::string_view text);

}  // namespace leat::worker
