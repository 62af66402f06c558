// SPDX-License-Identifier: Apache-2.0
//
// The client library: connect to a Leat service, describe a job, pull batches.
//
//     auto service = leat::Service::Connect({.address = "host:7411"});
//     auto job = (*service)->CreateJob(spec_json, absl::Minutes(5));
//     auto batches = (*job)->Open({.epochs = 1});
//     while (true) {
//       absl::StatusOr<std::optional<leat::Batch>> batch =
//           (*batches)->Next(absl::InfiniteFuture());
//       if (!batch.ok() || !batch->has_value()) break;  // an error, or the end
//       Train((*batch)->tensors());
//     }
//
// Each object keeps what it needs alive: a Batch may outlive its iterator, and
// an iterator its service. Errors are absl::Status with the service's text;
// nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace leat {

struct ConnectOptions {  // how to reach a service, or a private one
  // gRPC target of the coordinator ("host:7411"). Empty: a private coordinator
  // and worker on this machine, shared by all processes of this user that give
  // the same options in the same working directory. The first process starts
  // them; they stop when the last one ends.
  std::string address;
  std::string access_token;       // an access token of the service
  std::string access_token_file;  // its file, read again for each call
  std::string ca_pem;             // trusted roots; if set, TLS is used
  std::string cert_pem;           // this client's certificate; needs key_pem
  std::string key_pem;
  absl::Duration timeout = absl::Seconds(10);  // of calls without their own

  // Only the private service uses these.
  std::string daemon_dir;  // folder of leat-coordinator and leat-worker; empty:
                           // the folder of this library, then PATH
  uint32_t embedded_workers = 1;
  uint32_t embedded_threads =
      0;  // decode threads per worker; 0: the cgroup's cores / workers
  // All workers share these: memory for encoded samples (0: what buffers and
  // indexes leave of three sixteenths of the machine's memory, per worker), and
  // a folder, with a size limit, that caches what was read from remote storage.
  uint64_t embedded_cache_bytes = 0;
  std::string embedded_disk_cache;
  uint64_t embedded_disk_cache_bytes = 0;
  std::string embedded_devices = "none";  // GPUs: "all", "none", "0,1", ...
  // If set, connects to a private service that is already running, whatever its
  // options: the one kept by the process with this ID, or for 0 the only one.
  std::optional<int64_t> private_pid;
};

// Tensor shows one array of a batch, which owns the memory.
struct Tensor {
  std::string_view name;
  std::string_view dtype;  // NumPy's name: "uint8", "int32", ...; "bfloat16"
  std::span<const int64_t> shape;  // rows first
  std::byte* data = nullptr;  // 64-byte aligned, dense, row-major; the owner of
                              // the batch may write to it
  size_t bytes = 0;
  int device = -1;  // -1: host memory; N: memory of CUDA device N, an address
                    // in its primary context
};

// A Batch is a global batch, or this host's rows of it. It owns a pooled
// buffer, and returns it to the pool when it is destroyed. Move-only.
//
// A batch in device memory is complete when Next returns it: any stream of the
// device's primary context may use it without waiting. Before the Batch is
// destroyed, all work that uses it must have finished; otherwise release it by
// ReleaseOnStream.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  uint64_t epoch() const;  // of the job, which this batch belongs to
  uint64_t step() const;   // in the epoch
  // Rows in each tensor: as many as requested, fewer in a last partial batch.
  uint32_t rows() const;
  std::span<const Tensor> tensors() const;  // valid as long as the batch
  // Returns the device of the batch, numbered as BatchesOptions::device.
  int device() const;
  // Declares that work on `stream` will use this batch, which is in device
  // memory. Call it if the stream may be under capture into a CUDA graph. If it
  // is, the memory is never reused, and is freed once the Batches and all its
  // batches are gone, after which the graph must not be replayed.
  void UseOnStream(void* stream);
  // Releases a batch in device memory now, before the work that uses it has
  // finished. `stream` is a CUstream (cudaStream_t) of the device's primary
  // context; nullptr is its default stream. The buffer is reused only after all
  // work queued on the stream at the time of the call. The batch is empty
  // afterwards, also on error; after an error the buffer is never reused.
  // kFailedPrecondition: host memory. kInternal: CUDA's error, named.
  absl::Status ReleaseOnStream(void* stream);

  struct State;
  explicit Batch(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

// A field of a sample, for an output of the reader "readers.external".
struct SampleField {
  // An encoded image's bytes or a tensor's elements, row-major, little-endian.
  std::string bytes;
  // Sizes of the axes, if the type leaves one open ("uint8[?,?,3]").
  std::vector<int64_t> shape;
};

// A SampleSource supplies the samples of a job that reads from
// readers.external. Each consumer supplies the samples of its own rows, so each
// has a source, and all sources must hold the same data: batches are a function
// of it, and a sample that is requested again must be the same again.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // Returns one field for each output of the reader. Called by one thread of
  // the iterator, ahead of the trainer by up to the window. It may block, but
  // the iterator's destructor waits for it. An error fails the iterator, under
  // every bad-sample policy.
  virtual absl::StatusOr<std::vector<SampleField>> Read(uint64_t epoch,
                                                        uint64_t sample) = 0;
};

// Where the epilogue, the last operators of a pipeline, runs.
enum class EpilogueAt : uint8_t {
  kWorker,  // on a worker, as all others
  // Trailing normalize, cast and transpose are left to the consumer's device:
  // tensors hold the input of these operators, as bytes, and Batches::epilogue
  // describes the remaining work. A float32 image needs a quarter of the
  // traffic. Fields without such trailing operators are unchanged.
  kDevice,
};

// A step of a job. `step` is less than the steps of an epoch.
struct EpochStep {
  uint64_t epoch = 0;
  uint64_t step = 0;
  friend bool operator==(const EpochStep&, const EpochStep&) = default;
};

// The batches to deliver, and how far to work ahead.
struct BatchesOptions {
  std::string position;  // from Batches::position(): continue there
  // The first step to deliver, without a position.
  uint64_t epoch = 0;
  uint64_t step = 0;
  // Epochs to deliver, 0: without end. The epoch of the first step counts as
  // one, although only its remaining steps are delivered.
  uint64_t epochs = 1;
  // Rows of the global batch, in this order, no duplicates; empty: all.
  std::vector<uint32_t> rows;
  // Steps in flight beyond the one that was returned, 1–64. Memory is about
  // (window + 2) × batch bytes; the window shrinks to stay below
  // max_window_bytes.
  uint32_t window = 4;
  uint64_t max_window_bytes = 4ull << 30;
  // The iterator fails if a row has not arrived this long after its step became
  // the next one to deliver.
  absl::Duration row_timeout = absl::Minutes(2);
  // Memory of the batches: -1: host memory; N ≥ 0: memory of CUDA device N,
  // numbered by the driver under CUDA_VISIBLE_DEVICES. A worker on the same GPU
  // writes its rows there directly; rows of other workers pass through pinned
  // host memory. Needs the NVIDIA driver.
  int device = -1;
  EpilogueAt epilogue = EpilogueAt::kWorker;  // positions do not depend on it
  bool look = false;  // the job's position does not follow this iterator
  // True if Next is called by a thread that works ahead of the trainer; then
  // Batches::BeginWait and EndWait report how long the trainer waits.
  bool ahead = false;
  // Supplies the samples of the reader "readers.external", which requires it.
  // Its samples in flight take up to max_window_bytes more.
  std::shared_ptr<SampleSource> source;
};

// The work left to do on a tensor of bytes. In each row, every element x with
// index c on the last axis becomes table[x × channels + c] (c = 0 if channels
// is 1); then axis i of the result is axis perm[i]. The result is bit-identical
// to EpilogueAt::kWorker.
struct TensorEpilogue {
  std::string_view dtype;  // of the finished tensor; empty: nothing to do
  uint32_t channels = 1;
  // 256 × channels values of `dtype`; empty: the bytes stay.
  std::span<const std::byte> table;
  std::span<const int64_t> perm;  // over a row's axes; empty: they stay
};

struct LatencyStats {  // durations of one kind of wait
  uint64_t count = 0;
  double mean_ms = 0, p50_ms = 0, p95_ms = 0, max_ms = 0;
};

struct WorkerTraffic {  // what one worker has delivered to an iterator
  std::string worker;
  std::string address;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  double rows_per_s = 0;
  uint64_t failures = 0;  // streams lost
};

struct BatchesStats {  // of an iterator, since it was opened
  uint64_t steps = 0, rows = 0, bytes = 0;
  double rows_per_s = 0;      // since the first call of Next
  double stall_fraction = 0;  // share of that time spent waiting
  LatencyStats wait;          // per step: in Next, or with `ahead` as reported
  uint64_t hedged_rows = 0;   // requested twice because the first was late
  uint64_t failed_over_rows = 0;  // requested again because a worker was lost
  uint64_t duplicate_rows = 0;    // arrived twice, dropped
  uint64_t payload_copies = 0;    // user-space copies of rows: one per row
  // Connections dropped because bytes were altered in transit.
  uint64_t damaged_streams = 0;
  // Connections dropped because the peer did not prove to be the worker that
  // the coordinator named; nothing that they sent was used.
  uint64_t unproven_streams = 0;
  std::string transport = "grpc";
  std::vector<WorkerTraffic> workers;
};

// An iterator. Next may be called by one thread at a time, all else by any.
class Batches {
 public:
  ~Batches();
  // Returns the next batch in order; nullopt: the end. kDeadlineExceeded: none
  // by `deadline`; call again, nothing is lost. kCancelled after Cancel. Any
  // other error is final: a failed sample (names file and record), no worker
  // for row_timeout.
  absl::StatusOr<std::optional<Batch>> Next(absl::Time deadline);
  // Wakes Next and ends the iterator. Idempotent.
  void Cancel();
  // With options.ahead: call BeginWait when the trainer starts to wait for a
  // batch, and EndWait(true) when it takes one, also without a wait;
  // EndWait(false) if it gave up. Otherwise no-ops, since Next measures by
  // itself.
  void BeginWait();
  void EndWait(bool delivered);
  // Returns the position after the last batch from Next, for a checkpoint.
  std::string position() const;
  // Returns the position of a consumer whose next batch is this one. REQUIRES:
  // step < steps of an epoch.
  std::string PositionAt(uint64_t epoch, uint64_t step) const;
  // Returns the samples that the plan assigns to a step, in the order of
  // options.rows; ~0 marks a row without one: padding, or beyond the end of a
  // partial batch. kOutOfRange: no such step.
  absl::StatusOr<std::vector<uint64_t>> Samples(uint64_t epoch,
                                                uint64_t step) const;
  BatchesStats stats() const;  // of the iterator so far
  // Returns one entry per tensor. It is valid as long as the iterator.
  std::span<const TensorEpilogue> epilogue() const;

  struct State;
  explicit Batches(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

namespace client {
struct JobAccess;
}

class Job {  // a job of the service
 public:
  ~Job();
  const std::string& name() const;   // the job's name
  uint64_t steps_per_epoch() const;  // batches of an epoch
  uint64_t num_samples() const;      // samples of the dataset
  uint32_t batch() const;            // rows of the global batch
  std::string plan_hash() const;     // hexadecimal
  // True if CreateJob found the job, and always from GetJob. A job keeps the
  // listing of its dataset that it was created with.
  bool attached() const;
  // Describes known changes of the dataset since then, for people; or empty.
  const std::string& dataset_changed() const;
  // Returns how many consumers the job had at CreateJob.
  uint64_t consumers() const;
  // Returns the job as the JSON form of leat.v1.Job.
  std::string ToJson() const;
  // Returns each field's name, dtype and row shape; data is nullptr. Valid
  // while the job lives.
  std::vector<Tensor> row_schema() const;

  // kInvalidArgument: options, or a position of another job (names both).
  // kNotFound: rows out of range. kFailedPrecondition: the job needs a source
  // and `options` has none.
  absl::StatusOr<std::unique_ptr<Batches>> Open(
      const BatchesOptions& options) const;
  // Returns the samples that the plan assigns to a step, in the order of `rows`
  // (empty: all), as Batches::Samples does. kNotFound: rows out of range.
  absl::StatusOr<std::vector<uint64_t>> Samples(
      uint64_t epoch, uint64_t step, std::vector<uint32_t> rows = {}) const;
  // Returns how many rows of each source, or of each class with a share, come
  // before a step. kFailedPrecondition: there are none. kOutOfRange: no step.
  absl::StatusOr<std::vector<uint64_t>> RowsBefore(uint64_t epoch,
                                                   uint64_t step) const;
  // Returns the next step of a consumer of this job that is at `position`.
  // kInvalidArgument: as Open.
  absl::StatusOr<EpochStep> StepOf(std::string_view position) const;
  // Returns one sample as epoch 0 has it, as a batch of one row. kOutOfRange:
  // index. `source`: as in BatchesOptions.
  absl::StatusOr<Batch> Sample(
      uint64_t index, absl::Duration timeout,
      std::shared_ptr<SampleSource> source = nullptr) const;

  // Returns where a sample is stored, as leat.v1.StoredRecord in JSON, with up
  // to 1,024 documents of a packed row after the first `first_document`.
  // kOutOfRange: index. kFailedPrecondition: consumers supply the samples.
  // kUnavailable: no worker can answer.
  absl::StatusOr<std::string> Record(uint64_t index, absl::Duration timeout,
                                     uint64_t first_document = 0) const;
  // Returns the content of rows of a step (empty: all), its origin and its
  // random draws: an array of leat.v1.ExplainedRow in JSON, with 1,024 / rows
  // documents of each packed row. If `read_records`, records are read to compute
  // the draws that depend on an image's size; otherwise these are unknown.
  // kOutOfRange: no such step. kNotFound: rows out of range. Others as Record.
  absl::StatusOr<std::string> Explain(uint64_t epoch, uint64_t step,
                                      std::vector<uint32_t> rows,
                                      bool read_records,
                                      absl::Duration timeout) const;

  // Records what all workers and consumers do for steps of this job during
  // `duration`, up to a minute. Returns an array with an element per worker:
  // "worker", "address", and either "error" or "dropped" and "spans"
  // (leat.v1.CollectedSpan as JSON). The last element is the coordinator's,
  // with "coordinator" in place of "worker" and the consumers' spans. `ratio`:
  // the share of the steps to record. Limits: 64 workers and 64 consumers are
  // asked; workers return 200,000 spans in all, consumers 20,000. `timeout`:
  // how long answers may take after `duration`. kInvalidArgument: the duration,
  // the ratio. kUnavailable: no worker answers.
  absl::StatusOr<std::string> CollectSpans(absl::Duration duration,
                                           double ratio,
                                           absl::Duration timeout) const;

  struct State;
  explicit Job(std::unique_ptr<State> state);

 private:
  friend struct client::JobAccess;
  std::unique_ptr<State> state_;
};

class Admin;

// Whether a known dataset is listed again for a new job.
enum class Relist {
  kAuto = 1,    // if a check of at most a second finds a change
  kAlways = 2,  // without a check
  kNever = 3,   // neither: the known listing is used as it is
};

class Service {  // a connection to a service, or to a private one
 public:
  // kUnavailable: no answer at the address within the timeout (names it, and
  // the transport's reason). kResourceExhausted: this process may not start the
  // threads that it needs (says how many).
  static absl::StatusOr<std::unique_ptr<Service>> Connect(
      const ConnectOptions& options);
  ~Service();

  using OnWaiting = std::function<void(std::string_view)>;  // what it waits for
  // `spec_json`: leat.v1.JobSpec as JSON. Waits until the dataset is indexed;
  // `on_waiting` runs after 2 s, then every 10. kAlreadyExists: another spec.
  absl::StatusOr<std::unique_ptr<Job>> CreateJob(
      std::string_view spec_json, absl::Duration timeout,
      Relist relist = Relist::kAuto, const OnWaiting& on_waiting = nullptr);
  // kNotFound: no such job.
  absl::StatusOr<std::unique_ptr<Job>> GetJob(std::string_view name);
  // Administration of the service (leat/admin.h). Valid as long as the service.
  Admin& admin();
  // The coordinator's address; for a private service, its socket.
  const std::string& address() const;
  // Returns a JSON object for a private service: "pid": the process that keeps
  // it; "started": whether this connection did; "lessees": how many shared it
  // then, including this one; "options". Returns "null" for another service.
  std::string PrivateJson() const;

  struct State;
  explicit Service(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

// The library's version, such as "0.2.0".
std::string_view Version();

}  // namespace leat
