// SPDX-License-Identifier: Apache-2.0
//
// bench_stream_rate leat|floor ADDRESS SECONDS [CA]: how fast tensors reach the
// client's buffer. Prints "GB_PER_S CLIENT_CPU_S_PER_GB", and for the library
// the rows that it copied.
//
//   leat   the client library pulls batches of 64 rows of 224 × 224 × 3 bytes;
//          LEAT_TRANSPORT selects the transport
//   floor  a bare loop reads messages of the same size, and copies each one's
//          slices into a ring of the size of the library's window
//
// With CA, a file of roots in PEM, it connects by TLS.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"
#include "leat/client.h"
#include "rpc/call/channel.h"
#include "rpc/call/raw_frame.h"
#include "tests/bench/file_content.h"

namespace leat {
namespace {

constexpr size_t kBatchBytes = size_t{64} * 224 * 224 * 3;
constexpr size_t kRingBytes = 6 * kBatchBytes;  // window + 2
constexpr int kWarmUpBatches = 12;
constexpr char kSpec[] = R"({"name": "synthetic", "batch": 64,
  "pipeline": {"nodes": [
    {"op": "readers.image_folder", "args": {"path": {"string_value": "none"}}},
    {"op": "decode", "inputs": [{"node": 0}]},
    {"op": "resize", "inputs": [{"node": 1}],
     "args": {"size": {"ints_value": {"values": [224, 224]}}}}],
   "outputs": [{"name": "image", "ref": {"node": 2}}]}})";

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec +
                                    usage.ru_stime.tv_usec);
}

// Calls pull() -> bytes for a while, after a warm-up; prints the rates.
template <class Pull, class Copies>
absl::Status Measure(double seconds, const Pull& pull, const Copies& copies) {
  for (size_t bytes = 0; bytes < kWarmUpBatches * kBatchBytes;) {
    ASSIGN_OR_RETURN(const size_t pulled, pull());
    bytes += pulled;
  }
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = CpuSeconds();
  const uint64_t copies_start = copies();
  double elapsed = 0, gigabytes = 0;
  while (elapsed < seconds) {
    ASSIGN_OR_RETURN(const size_t pulled, pull());
    gigabytes += 1e-9 * static_cast<double>(pulled);
    elapsed =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }
  std::printf("%.4f %.4f %llu\n", gigabytes / elapsed,
              (CpuSeconds() - cpu_start) / gigabytes,
              static_cast<unsigned long long>(copies() - copies_start));
  return absl::OkStatus();
}

absl::Status Leat(const std::string& address, const std::string& ca,
                  double seconds) {
  ConnectOptions connect;
  connect.address = address;
  connect.ca_pem = ca;
  ASSIGN_OR_RETURN(std::unique_ptr<Service> service, Service::Connect(connect));
  ASSIGN_OR_RETURN(std::unique_ptr<Job> job,
                   service->CreateJob(kSpec, absl::Seconds(10)));
  BatchesOptions options;
  options.epochs = 0;
  ASSIGN_OR_RETURN(std::unique_ptr<Batches> batches, job->Open(options));
  return Measure(
      seconds,
      [&]() -> absl::StatusOr<size_t> {
        ASSIGN_OR_RETURN(std::optional<Batch> batch,
                         batches->Next(absl::Now() + absl::Seconds(10)));
        return batch->tensors()[0].bytes;
      },
      [&] { return batches->stats().payload_copies; });
}

absl::Status Floor(const std::string& address, const std::string& ca,
                   double seconds) {
  rpc::Security security;
  security.ca_pem = ca;
  grpc::GenericStub stub(rpc::MakeChannel(address, security));
  grpc::ClientContext context;
  rpc::AddMetadata({}, &context);
  grpc::CompletionQueue queue;
  const auto stream =
      stub.PrepareCall(&context, "/leat.v1.WorkerService/Rows", &queue);
  const auto wait = [&]() -> absl::Status {
    void* tag = nullptr;
    bool ok = false;
    if (!queue.Next(&tag, &ok) || !ok) return Unavailable("the stream broke");
    return absl::OkStatus();
  };
  stream->StartCall(nullptr);
  RETURN_IF_ERROR(wait());
  v1::RowsRequest open;
  open.mutable_open()->set_consumer("floor");
  stream->Write(rpc::EncodeMessage(open), nullptr);
  RETURN_IF_ERROR(wait());

  std::vector<std::byte> ring(kRingBytes);
  size_t at = 0;
  const absl::Status measured = Measure(
      seconds,
      [&]() -> absl::StatusOr<size_t> {
        grpc::ByteBuffer message;
        stream->Read(&message, nullptr);
        RETURN_IF_ERROR(wait());
        std::vector<grpc::Slice> slices;
        if (!message.Dump(&slices).ok()) return Internal("no slices");
        if (at + message.Length() > ring.size()) at = 0;
        for (const grpc::Slice& slice : slices) {
          std::memcpy(ring.data() + at, slice.begin(), slice.size());
          at += slice.size();
        }
        return message.Length();
      },
      [] { return uint64_t{0}; });
  context.TryCancel();
  grpc::Status status;
  stream->Finish(&status, nullptr);
  (void)wait();
  return measured;
}

int Main(int argc, char** argv) {
  if (argc != 4 && argc != 5) {
    std::fprintf(stderr,
                 "usage: bench_stream_rate leat|floor ADDRESS SECONDS [CA]\n");
    return 2;
  }
  const std::string address = argv[2];
  const double seconds = std::atof(argv[3]);
  const std::string ca = argc == 5 ? bench::ContentOf(argv[4]) : "";
  const absl::Status status = std::string_view(argv[1]) == "leat"
                                  ? Leat(address, ca, seconds)
                                  : Floor(address, ca, seconds);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", std::string(Message(status)).c_str());
  return 1;
}

}  // namespace
}  // namespace leat

int main(int argc, char** argv) { return leat::Main(argc, argv); }
