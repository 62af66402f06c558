// SPDX-License-Identifier: Apache-2.0
//
// e2e_consumer: a training host without a trainer, driven by the e2e tests.
//
// Pulls batches and prints one line each, flushed:
//
//   step EPOCH STEP WAIT_MS SHA256    the oracle's hash of the batch's tensors
//   end STEPS ROWS COPIES HEDGED FAILED_OVER DUPLICATES TRANSPORT
//   rate ROWS_PER_S BYTES_PER_S TRANSPORT  for --rate-s: batches are not
//                                     hashed, and each step takes --step-s
//   error CODE MESSAGE                and exits with 1
//
// --paced: each step waits for a line on stdin, so that a test decides where in
// an epoch things happen. --hold N: the newest N batches are kept, and hashed
// again when they are given back. --device N: batches are in device memory, and
// are copied to the host to be hashed; --capture: they are given back on a
// stream whose capture into a CUDA graph does not end. --get prints one of the
// service's views instead.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "core/hash.h"
#include "core/log.h"
#include "core/status.h"
#include "fmt/format.h"
#include "leat/admin.h"
#include "leat/client.h"
#include "tests/e2e/host_copy.h"

namespace leat {
namespace {

struct Flags {
  std::string address, access_token, access_token_file, tls_ca, tls_cert,
      tls_key, spec, get, resume, position_out, dump, daemon_dir,
      log_level = "warn";
  std::vector<uint32_t> rows;  // first, end
  uint64_t epochs = 1;
  uint64_t stop_after = 0;  // 0: at the end
  uint32_t window = 4;
  uint32_t hold = 0;
  uint32_t embedded_workers = 1, embedded_threads = 0;
  double timeout_s = 60, row_timeout_s = 120;
  double rate_s = 0;  // 0: batches are hashed
  double step_s = 0;  // duration of a trainer's step; with rate_s
  int device = -1;
  bool paced = false, release_on_stream = false, capture = false;
};

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void WriteFile(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void Print(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string HashOfBatch(const Batch& batch) {
  Sha256 hash;
  std::vector<std::byte> buffer;
  for (const Tensor& tensor : batch.tensors()) {
    hash.Update(tensor.name).Update(std::string_view("\0", 1));
    hash.Update(HostCopy::Of(tensor, &buffer));
  }
  return ToHex(hash.Finish());
}

// Writes one file per tensor, for tests that join the parts of several hosts.
void Dump(const Batch& batch, const std::string& folder) {
  std::vector<std::byte> buffer;
  for (const Tensor& tensor : batch.tensors()) {
    const std::span<const std::byte> bytes = HostCopy::Of(tensor, &buffer);
    WriteFile(fmt::format("{}/{}-{}-{}", folder, batch.epoch(), batch.step(),
                          tensor.name),
              {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
}

// Batches that a trainer still uses: workers must not write to them.
class Held {
 public:
  // `on_stream`: batches are given back on `stream`.
  Held(size_t limit, bool on_stream, void* stream)
      : limit_(limit), on_stream_(on_stream), stream_(stream) {}
  absl::Status Add(Batch batch, std::string hash) {
    batches_.push_back({std::move(batch), std::move(hash)});
    return Trim(limit_);
  }
  absl::Status Trim(size_t limit) {
    for (; batches_.size() > limit; batches_.pop_front()) {
      auto& [batch, hash] = batches_.front();
      if (HashOfBatch(batch) != hash)
        return DataLoss("epoch {} step {}: the batch was written to",
                        batch.epoch(), batch.step());
      if (on_stream_) RETURN_IF_ERROR(batch.ReleaseOnStream(stream_));
    }
    return absl::OkStatus();
  }

 private:
  const size_t limit_;
  const bool on_stream_;
  void* const stream_;
  std::deque<std::pair<Batch, std::string>> batches_;
};

// Pulls until the end, or --stop-after.
absl::Status Pull(const Flags& flags, Batches& batches) {
  Held held(flags.hold, flags.release_on_stream || flags.capture,
            flags.capture ? HostCopy::Captured(flags.device) : nullptr);
  for (uint64_t pulled = 0; flags.stop_after == 0 || pulled < flags.stop_after;
       ++pulled) {
    std::string line;
    if (flags.paced && !std::getline(std::cin, line)) break;
    const auto start = std::chrono::steady_clock::now();
    ASSIGN_OR_RETURN(
        std::optional<Batch> batch,
        batches.Next(absl::Now() + absl::Seconds(flags.timeout_s)));
    const double wait_ms = std::chrono::duration<double, std::milli>(
                               std::chrono::steady_clock::now() - start)
                               .count();
    if (!batch.has_value()) break;
    if (!flags.dump.empty()) Dump(*batch, flags.dump);
    std::string hash = HashOfBatch(*batch);
    Print(fmt::format("step {} {} {:.3f} {}", batch->epoch(), batch->step(),
                      wait_ms, hash));
    RETURN_IF_ERROR(held.Add(*std::move(batch), std::move(hash)));
  }
  return held.Trim(0);
}

// Acts as a trainer that ignores its batches; measures after a tenth of the
// time.
absl::Status Rate(const Flags& flags, Batches& batches) {
  using std::chrono::steady_clock;
  const auto seconds_since = [](steady_clock::time_point start) {
    return std::chrono::duration<double>(steady_clock::now() - start).count();
  };
  uint64_t rows = 0, bytes = 0;
  auto start = steady_clock::now();
  for (bool warm = false; seconds_since(start) < flags.rate_s || !warm;) {
    ASSIGN_OR_RETURN(
        const std::optional<Batch> batch,
        batches.Next(absl::Now() + absl::Seconds(flags.timeout_s)));
    if (!batch.has_value()) return Internal("the job has ended");
    rows += batch->rows();
    for (const Tensor& tensor : batch->tensors()) bytes += tensor.bytes;
    std::this_thread::sleep_for(std::chrono::duration<double>(flags.step_s));
    if (warm || seconds_since(start) < flags.rate_s / 10) continue;
    warm = true;
    rows = bytes = 0;
    start = steady_clock::now();
  }
  const double seconds = seconds_since(start);
  Print(fmt::format(
      "rate {:.1f} {:.0f} {}", static_cast<double>(rows) / seconds,
      static_cast<double>(bytes) / seconds, batches.stats().transport));
  return absl::OkStatus();
}

absl::Status Get(const Flags& flags, Admin& admin) {
  ASSIGN_OR_RETURN(const std::string json, admin.Get(flags.get));
  Print(json);
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  ConnectOptions connect;
  connect.address = flags.address;
  connect.access_token = flags.access_token;
  connect.access_token_file = flags.access_token_file;
  if (!flags.tls_ca.empty()) connect.ca_pem = ReadFile(flags.tls_ca);
  if (!flags.tls_cert.empty()) connect.cert_pem = ReadFile(flags.tls_cert);
  if (!flags.tls_key.empty()) connect.key_pem = ReadFile(flags.tls_key);
  connect.timeout = absl::Seconds(flags.timeout_s);
  connect.daemon_dir = flags.daemon_dir;
  connect.embedded_workers = flags.embedded_workers;
  connect.embedded_threads = flags.embedded_threads;
  ASSIGN_OR_RETURN(std::unique_ptr<Service> service, Service::Connect(connect));
  if (!flags.get.empty()) return Get(flags, service->admin());
  ASSIGN_OR_RETURN(
      std::unique_ptr<Job> job,
      service->CreateJob(ReadFile(flags.spec), absl::Seconds(flags.timeout_s)));
  BatchesOptions options;
  options.epochs = flags.rate_s > 0 ? 0 : flags.epochs;  // 0: without end
  options.window = flags.window;
  options.device = flags.device;
  options.row_timeout = absl::Seconds(flags.row_timeout_s);
  if (!flags.resume.empty()) {
    options.position = ReadFile(flags.resume);
    ASSIGN_OR_RETURN(const EpochStep at, job->StepOf(options.position));
    if (options.epochs != 0)
      options.epochs -= std::min(at.epoch, flags.epochs - 1);
  }
  if (flags.rows.size() == 2)
    for (uint32_t row = flags.rows[0]; row < flags.rows[1]; ++row)
      options.rows.push_back(row);
  ASSIGN_OR_RETURN(std::unique_ptr<Batches> batches, job->Open(options));
  if (flags.rate_s > 0) return Rate(flags, *batches);
  RETURN_IF_ERROR(Pull(flags, *batches));
  if (!flags.position_out.empty())
    WriteFile(flags.position_out, batches->position());
  const BatchesStats stats = batches->stats();
  Print(fmt::format("end {} {} {} {} {} {} {} {} {}", stats.steps, stats.rows,
                    stats.payload_copies, stats.hedged_rows,
                    stats.failed_over_rows, stats.duplicate_rows,
                    stats.damaged_streams, stats.transport,
                    stats.unproven_streams));
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app{"A training host without a trainer, for tests"};
  app.add_option("--address", flags.address)->envname("LEAT_COORDINATOR");
  app.add_option("--access-token-file", flags.access_token_file);
  app.add_option("--access-token", flags.access_token)
      ->envname("LEAT_ACCESS_TOKEN");
  app.add_option("--tls-ca", flags.tls_ca, "file: roots to trust, PEM");
  app.add_option("--tls-cert", flags.tls_cert, "file: its certificate, PEM");
  app.add_option("--tls-key", flags.tls_key, "file: its key, PEM");
  app.add_option("--spec", flags.spec, "file: JobSpec as JSON");
  app.add_option("--get", flags.get,
                 "status, workers, jobs, datasets or consumers");
  app.add_option("--resume", flags.resume, "file: a position");
  app.add_option("--position-out", flags.position_out,
                 "file: the last position");
  app.add_option("--dump", flags.dump, "folder: tensors as they come");
  app.add_option("--daemon-dir", flags.daemon_dir);
  app.add_option("--rows", flags.rows, "first and end")->expected(2);
  app.add_option("--epochs", flags.epochs, "in all, also with --resume");
  app.add_option("--stop-after", flags.stop_after, "steps");
  app.add_option("--window", flags.window);
  app.add_option("--hold", flags.hold, "batches");
  app.add_option("--embedded-workers", flags.embedded_workers);
  app.add_option("--embedded-threads", flags.embedded_threads);
  app.add_option("--timeout-s", flags.timeout_s);
  app.add_option("--row-timeout-s", flags.row_timeout_s);
  app.add_option("--device", flags.device, "a CUDA device; -1: host memory");
  app.add_option("--rate-s", flags.rate_s, "seconds");
  app.add_option("--step-s", flags.step_s, "of --rate-s, for each step");
  app.add_flag("--paced", flags.paced);
  app.add_flag("--release-on-stream", flags.release_on_stream);
  app.add_flag("--capture", flags.capture);
  app.add_option("--log-level", flags.log_level, "of the library");
  CLI11_PARSE(app, argc, argv);
  absl::Status status = SetLogLevel(flags.log_level);
  if (status.ok()) status = Run(flags);
  if (status.ok()) return 0;
  Print(fmt::format("error {} {}", static_cast<int>(status.code()),
                    Message(status)));
  return 1;
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) { return leat::Main(argc, argv); }
