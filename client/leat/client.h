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
// Objects keep what they need alive: a Batch may outlive its iterator, an
// iterator its service. Errors are absl::Status with the service's text;
// nothing throws.
#pragma once

#include <cstddef>
#include <cstdint>
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

struct ConnectOptions {
  // gRPC target of the coordinator ("host:7411"). Empty: a private coordinator
  // and worker on this machine, which the user's processes that give the same
  // options in the same working folder share. The first one starts them; they
  // stop with the last one.
  std::string address;
  std::string access_token;  // what every caller of the service must know
  std::string ca_pem;        // roots to trust; set: TLS
  std::string cert_pem;      // with key_pem: this client's certificate
  std::string key_pem;
  absl::Duration timeout = absl::Seconds(
      10);  // of connecting, and of every call without one of its own

  // Only the private service uses these.
  std::string daemon_dir;  // where leat-coordinator and leat-worker are; empty:
                           // beside this library, then PATH
  uint32_t embedded_workers = 1;
  uint32_t embedded_threads =
      0;  // decode threads of each; 0: the cgroup's cores / workers
  // All workers use these: memory for encoded samples (0: an eighth of the
  // machine's for each), and a folder, with its bound, for what remote storage
  // gave.
  uint64_t embedded_cache_bytes = 0;
  std::string embedded_disk_cache;
  uint64_t embedded_disk_cache_bytes = 0;
  std::string embedded_devices = "none";  // GPUs: "all", "none", "0,1", ...
  // Set: a private service that runs already, whatever its options: the one
  // that this process keeps, 0: the only one.
  std::optional<int64_t> private_pid;
};

// One array of a batch. The memory is the batch's.
struct Tensor {
  std::string_view name;
  std::string_view dtype;  // NumPy's name: "uint8", "int32", "float32", ...
  std::span<const int64_t> shape;  // rows first
  std::byte* data = nullptr;  // 64-byte aligned, dense, row-major; the holder
                              // of the batch may write
  size_t bytes = 0;
  int device = -1;  // whose memory it is: -1: the host's; N: CUDA device N's,
                    // an address of its primary context
};

// A batch, or this host's rows of it. Owns a pooled buffer, which returns to
// the pool when the Batch dies. Move-only.
//
// A batch in device memory is complete when Next returns it: any stream of the
// device's primary context may use it without waiting. Before it dies, all work
// that uses it must have finished, or else it is given back by ReleaseOnStream.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  uint64_t epoch() const;
  uint64_t step() const;
  // Rows in each tensor: those asked for, fewer in a last partial batch.
  uint32_t rows() const;
  std::span<const Tensor> tensors() const;
  // Where the batch is; the numbers are those of BatchesOptions::device.
  int device() const;
  // Work on `stream` is going to use a batch in device memory. Call it for a
  // stream that may be being captured into a CUDA graph: such a batch's memory
  // is not used again, and is freed when the Batches and all its batches are
  // gone, after which the graph must not be replayed.
  void UseOnStream(void* stream);
  // Ends a batch in device memory now, before the work that uses it has
  // finished. `stream`: a CUstream (cudaStream_t) of the device's primary
  // context, nullptr: its default stream; the buffer is written again only
  // after all work that is queued there at the time of the call. The batch is
  // empty afterwards, also on error; then the buffer is not used again.
  // kFailedPrecondition: host memory. kInternal: CUDA's error, named.
  absl::Status ReleaseOnStream(void* stream);

  struct State;
  explicit Batch(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

// A field of a sample, for an output of the reader "readers.external".
struct SampleField {
  // An encoded image's bytes; or a tensor's elements, row-major, little-endian.
  std::string bytes;
  // Sizes of the axes, where the type leaves one open ("uint8[?,?,3]").
  std::vector<int64_t> shape;
};

// What a consumer of a job with the reader "readers.external" brings its
// samples from. Each consumer supplies those of its own rows, so each has a
// source, and all of them have the same data: batches are a function of it, and
// what is asked again must come again as it was.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // A field for each output of the reader. Called by one thread of the
  // iterator's, which works ahead by up to the window; it may take its time,
  // but the iterator's destructor waits for it. An error fails the iterator,
  // under every bad-sample policy.
  virtual absl::StatusOr<std::vector<SampleField>> Read(uint64_t epoch,
                                                        uint64_t sample) = 0;
};

// Where the end of a pipeline runs.
enum class FinishAt : uint8_t {
  kWorker,
  // Trailing normalize, cast and transpose are left to the consumer's device:
  // tensors are what these operators start from, which is bytes, and
  // Batches::finish says what is to be done to them. A quarter of the traffic
  // for a float32 image. Fields that have no such end are as ever.
  kDevice,
};

// A step of a job. `step` < steps of an epoch.
struct Position {
  uint64_t epoch = 0;
  uint64_t step = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

struct BatchesOptions {
  std::string token;  // from Batches::token(): go on there
  // Without a token: the first step handed out.
  uint64_t epoch = 0;
  uint64_t step = 0;
  // Epochs to deliver, counted from the one that the first step lies in, of
  // which only the rest is delivered; 0: without end.
  uint64_t epochs = 1;
  // Rows of the global batch wanted, in the order wanted; empty: all. Each <
  // batch; no duplicates.
  std::vector<uint32_t> rows;
  // Steps in flight beyond the one handed out, 1–64; memory is about (window +
  // 2) × batch bytes, and the window shrinks to stay under max_window_bytes.
  uint32_t window = 4;
  uint64_t max_window_bytes = 4ull << 30;
  // A row that no worker has delivered for this long after its step became the
  // next one fails the iterator.
  absl::Duration row_timeout = absl::Minutes(2);
  // Where batches are: -1: host memory; N ≥ 0: memory of CUDA device N, as the
  // driver numbers them under CUDA_VISIBLE_DEVICES. A worker of the same GPU
  // writes its rows there itself; rows of others come through pinned host
  // memory. Needs the NVIDIA driver.
  int device = -1;
  FinishAt finish = FinishAt::kWorker;  // tokens do not depend on it
  // Next is called by a thread that works ahead of the trainer: what the
  // trainer waits is told by Batches::BeginWait and EndWait.
  bool ahead = false;
  // Brings the samples of the reader "readers.external", which requires it. Its
  // samples in flight take up to max_window_bytes more.
  std::shared_ptr<SampleSource> source;
};

// What is left to do to a tensor of bytes. For each row: every element x, whose
// place on the last axis is c, becomes table[x × channels + c] (c = 0 if
// channels is 1); then axis i of the result is axis perm[i]. The same bits as
// of FinishAt::kWorker.
struct TensorFinish {
  std::string_view dtype;  // of the finished tensor; empty: nothing is left
  uint32_t channels = 1;
  // 256 × channels values of `dtype`; empty: the bytes stay.
  std::span<const std::byte> table;
  std::span<const int64_t> perm;  // of a row's axes; empty: they stay
};

struct LatencyStats {
  uint64_t count = 0;
  double mean_ms = 0, p50_ms = 0, p95_ms = 0, max_ms = 0;
};

struct WorkerTraffic {
  std::string worker;
  std::string address;
  uint64_t rows = 0;
  uint64_t bytes = 0;
  double rows_per_s = 0;
  uint64_t failures = 0;  // streams lost
};

struct BatchesStats {
  uint64_t steps = 0, rows = 0, bytes = 0;
  double rows_per_s = 0;      // since the first batch was asked for
  double stall_fraction = 0;  // of that time, spent waiting
  LatencyStats wait;          // in Next, or as told, per step
  uint64_t hedged_rows =
      0;  // asked of a second owner because the first was late
  uint64_t failed_over_rows = 0;  // asked again because a worker was lost
  uint64_t duplicate_rows = 0;    // arrived twice, dropped
  uint64_t payload_copies = 0;    // user-space copies of rows: one each
  // Connections that were dropped because bytes were changed on their way.
  uint64_t damaged_streams = 0;
  // Connections that were dropped because who answered did not prove to be the
  // worker that the coordinator speaks of: nothing of them was used.
  uint64_t unproven_streams = 0;
  std::string transport = "grpc";
  std::vector<WorkerTraffic> workers;
};

// An iterator. Next from one thread at a time; all else from any.
class Batches {
 public:
  ~Batches();
  // The next batch in order; nullopt: the end. kDeadlineExceeded: none by
  // `deadline`; call again, nothing is lost. kCancelled after Cancel. Any other
  // error is final: a failed sample (names file and record), no worker for
  // row_timeout.
  absl::StatusOr<std::optional<Batch>> Next(absl::Time deadline);
  // Wakes Next and ends the iterator. Idempotent.
  void Cancel();
  // With options.ahead, for each batch that the trainer takes of what Next
  // returned: EndWait(true), and before it, if it has to wait, BeginWait.
  // EndWait(false): it gave up. Without: nothing is done, since Next counts by
  // itself.
  void BeginWait();
  void EndWait(bool delivered);
  // Where the consumer is: after the last batch that Next returned.
  std::string token() const;
  // Returns the token of a consumer whose next batch is this one. REQUIRES:
  // step < steps of an epoch.
  std::string TokenAt(uint64_t epoch, uint64_t step) const;
  // The plan's samples of a step, in the order of options.rows; ~0 marks a row
  // without one: padding, or beyond the end of a partial batch. kOutOfRange: no
  // such step.
  absl::StatusOr<std::vector<uint64_t>> Samples(uint64_t epoch,
                                                uint64_t step) const;
  BatchesStats stats() const;
  // By tensor. Lives as long as the iterator.
  std::span<const TensorFinish> finish() const;

  struct State;
  explicit Batches(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

namespace client {
struct JobAccess;
}

class Job {
 public:
  ~Job();
  const std::string& name() const;
  uint64_t steps_per_epoch() const;
  uint64_t num_samples() const;
  uint32_t batch() const;
  std::string plan_hash() const;  // hexadecimal
  // Whether CreateJob found the job there; a job keeps the listing of its
  // dataset that it was made with.
  bool attached() const;
  // What of the dataset had changed since then, for people; empty: nothing that
  // is known.
  const std::string& dataset_changed() const;
  // How many consumers of the job there were.
  uint64_t consumers() const;
  // Everything about the job: the JSON form of leat.v1.Job.
  std::string ToJson() const;
  // One row of each field: names, dtypes, row shapes.
  std::vector<Tensor> row_schema()
      const;  // data is null; valid while the job lives

  // kInvalidArgument: options, or a token of another job (names both).
  // kNotFound: rows out of range. kFailedPrecondition: no source, but the job
  // wants one.
  absl::StatusOr<std::unique_ptr<Batches>> Open(
      const BatchesOptions& options) const;
  // Which samples the plan puts into a step, in the order of `rows` (empty:
  // all), as Batches::Samples. kNotFound: rows out of range.
  absl::StatusOr<std::vector<uint64_t>> Samples(
      uint64_t epoch, uint64_t step, std::vector<uint32_t> rows = {}) const;
  // Where a consumer of this job was when it made the token: the step that it
  // has not had. kInvalidArgument: as of Open.
  absl::StatusOr<Position> PositionOf(std::string_view token) const;
  // One sample as epoch 0 has it; a batch of one row. kOutOfRange: index.
  // `source`: as BatchesOptions's.
  absl::StatusOr<Batch> Sample(
      uint64_t index, absl::Duration timeout,
      std::shared_ptr<SampleSource> source = nullptr) const;

  // Where a sample is stored: the JSON form of leat.v1.StoredRecord. A worker
  // says it by the dataset's index; nothing is read. kOutOfRange: index.
  // kFailedPrecondition: consumers supply the samples. kUnavailable: no worker
  // can say it.
  absl::StatusOr<std::string> Record(uint64_t index,
                                     absl::Duration timeout) const;
  // What stands in rows of a step (empty: all), from where, and with which
  // draws: an array of the JSON form of leat.v1.ExplainedRow. `read_records`:
  // records are read for draws that depend on an image's size, which are
  // unknown else. kOutOfRange: no such step. kNotFound: rows out of range. The
  // others as of Record.
  absl::StatusOr<std::string> Explain(uint64_t epoch, uint64_t step,
                                      std::vector<uint32_t> rows,
                                      bool read_records,
                                      absl::Duration timeout) const;

  // What all workers and consumers do for steps of this job in the next
  // `duration`, up to a minute: an array with, of each worker, "worker",
  // "address", and "dropped" and "spans", the JSON form of
  // leat.v1.CollectedSpan, or "error". Its last element is the coordinator's,
  // with "coordinator" in place of "worker" and the spans of consumers.
  // `ratio`: of steps. At most 64 workers are asked, and 64 consumers; 200,000
  // spans of workers come in all, and 20,000 of consumers.
  // `timeout`: how long answers may take after that. kInvalidArgument: the
  // duration, the ratio. kUnavailable: no worker answers.
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

// Whether a dataset that was listed before is listed again for a new job.
enum class Relist {
  kAuto = 1,    // if a look at it, of a second at most, finds that it changed
  kAlways = 2,  // without a look
  kNever = 3,   // no look either: the dataset is taken as it was listed
};

class Service {
 public:
  // kUnavailable: nobody at the address within the timeout (names it, and the
  // transport's reason). kResourceExhausted: this process may not have the
  // threads that are needed (says how many; looked at before the first
  // connection, since gRPC hangs or aborts without them).
  static absl::StatusOr<std::unique_ptr<Service>> Connect(
      const ConnectOptions& options);
  ~Service();

  // `spec_json`: the JSON form of leat.v1.JobSpec (docs/PROTOCOL.md). Waits
  // until the dataset is indexed. kAlreadyExists: another spec has the name
  // (says what differs).
  absl::StatusOr<std::unique_ptr<Job>> CreateJob(std::string_view spec_json,
                                                 absl::Duration timeout,
                                                 Relist relist = Relist::kAuto);
  // kNotFound: no such job.
  absl::StatusOr<std::unique_ptr<Job>> GetJob(std::string_view name);
  // What operators see and do (leat/admin.h). Lives as long as the service.
  Admin& admin();
  // The coordinator's address; of a private service its socket.
  const std::string& address() const;
  // Returns a JSON object for a private service: "pid", of the process that
  // keeps it; "started": whether this connection started it; "lessees": how
  // many shared it then, this one included; "options". For another service it
  // is "null".
  std::string PrivateJson() const;

  struct State;
  explicit Service(std::unique_ptr<State> state);

 private:
  std::unique_ptr<State> state_;
};

// The library's version, such as "0.2.0".
std::string_view Version();

}  // namespace leat
