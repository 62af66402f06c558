// SPDX-License-Identifier: Apache-2.0
//
// leat_crowd ADDRESS NAME WORKERS CONSUMERS JOB…: simulates so many workers
// that serve nothing, and consumers of each job that pull nothing, and reports
// them to a coordinator every second (10,000 workers every ten seconds). Except
// for totals and waits the reports stay the same. One consumer and one host are
// called NAME, which also appears in an error. Prints "ready" when each has
// reported once, and ends with its standard input.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <future>

#include "tests/server/calls/service_fixture.h"

namespace leat::server {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr size_t kOfConnection = 200;  // workers per connection
const char* odd_name = "";             // NAME

v1::StageStats* Add(v1::Stage stage, uint32_t places, uint64_t seconds,
                    double busy, double input, double output,
                    google::protobuf::RepeatedPtrField<v1::StageStats>* to) {
  v1::StageStats* const stats = to->Add();
  const auto ns = [&](double share) {
    return static_cast<uint64_t>(share * places * 1e9) * seconds;
  };
  stats->set_stage(stage);
  stats->set_places(places);
  stats->set_items_total(seconds * 400);
  stats->set_busy_ns_total(ns(busy));
  stats->set_input_ns_total(ns(input));
  stats->set_output_ns_total(ns(output));
  stats->set_idle_ns_total(ns(std::max(0.0, 1 - busy - input - output)));
  return stats;
}

template <class Request, class Response>
struct Session {
  std::unique_ptr<grpc::ClientContext> context;
  std::unique_ptr<grpc::ClientReaderWriter<Request, Response>> stream;

  void End() {
    context->TryCancel();
    stream->Finish().ok();
  }
  // Prints why the coordinator has ended a stream.
  void Complain() {
    Response response;
    while (stream->Read(&response)) {
    }
    std::fprintf(stderr, "leat_crowd: %s\n",
                 stream->Finish().error_message().c_str());
  }
};

struct Worker : Session<v1::WorkerSessionRequest, v1::WorkerSessionResponse> {
  size_t number = 0;

  bool HasGpu() const { return number % 8 == 7; }
  void Register(Client* client) {
    context = client->Context(3600);
    stream = client->coordinator().WorkerSession(context.get());
    v1::WorkerSessionRequest request;
    v1::RegisterWorker* const from = request.mutable_register_();
    from->set_name(fmt::format("node-{:04}", number));
    from->set_address(fmt::format("127.0.0.1:{}", 20'000 + number));
    from->set_threads(8);
    from->set_version("0.2.0");
    from->set_pid(1000 + number);
    from->add_decoder_classes(v1::DECODER_CLASS_EXACT);
    from->set_host(number == 3 ? odd_name
                               : fmt::format("rack-{}", number / 40));
    if (HasGpu()) from->add_devices()->set_name("NVIDIA H100");
    stream->Write(request);
  }
  bool Beat(uint64_t seconds) {
    v1::WorkerSessionRequest request;
    v1::WorkerStats* const stats = request.mutable_heartbeat()->mutable_stats();
    const double rate = (HasGpu() ? 3000 : 400) + (number * 37 % 61) +
                        (number % 97 == 13 ? -330 : 0);
    stats->set_rows_per_s(rate);
    stats->set_capacity_rows_per_s(1.25 * rate);
    stats->set_rows_total(static_cast<uint64_t>(rate) * seconds);
    stats->set_busy_fraction(0.875);
    stats->set_rows_queued(96);
    stats->set_buffers_in_use(20);
    stats->set_buffers_total(32);
    stats->set_cache_bytes(3ull << 30);
    stats->set_cache_limit_bytes(4ull << 30);
    stats->set_cache_hits_total(300 * seconds);
    stats->set_cache_misses_total(100 * seconds);
    stats->set_storage_requests_total(100 * seconds);
    stats->set_storage_retries_total(seconds / 10);
    stats->set_rows_ahead(64);
    stats->set_bytes_ahead(7 << 20);
    stats->set_rss_bytes(5ull << 30);
    stats->mutable_row_latency()->set_p50_ms(12.5);
    stats->mutable_row_latency()->set_p95_ms(40);
    auto* const stages = stats->mutable_stages();
    Add(v1::STAGE_OPEN, 16, seconds, 0.04, 0, 0, stages);
    Add(v1::STAGE_READ, 16, seconds, 0.28, 0, 0.2, stages)->set_queue_depth(12);
    Add(v1::STAGE_DECODE, 8, seconds, 0.74, 0.05, 0.02, stages)
        ->set_queue_depth(84);
    Add(v1::STAGE_AUGMENT, 8, seconds, 0.11, 0, 0, stages);
    if (HasGpu()) Add(v1::STAGE_DEVICE, 4, seconds, 0.6, 0.2, 0, stages);
    Add(v1::STAGE_GROUP, 8, seconds, 0.02, 0, 0, stages);
    v1::StageStats* const send =
        Add(v1::STAGE_SEND, 4, seconds, 0.12, 0, 0, stages);
    send->set_queue_depth(3);
    send->set_queue_capacity(16);
    if (number == 5) {
      v1::StorageFailure* const trouble =
          request.mutable_heartbeat()->add_storage_failures();
      trouble->set_root("/data");
      trouble->set_error(fmt::format("I/O error at {}", odd_name));
    }
    return stream->Write(request);
  }
};

struct Trainer
    : Session<v1::ConsumerSessionRequest, v1::ConsumerSessionResponse> {
  std::string name, job;
  size_t number = 0, of_job = 0;

  void Open(Client* client, const std::string& plan_hash) {
    context = client->Context(3600);
    stream = client->coordinator().ConsumerSession(context.get());
    v1::ConsumerSessionRequest request;
    request.mutable_open()->set_plan_hash(plan_hash);
    request.mutable_open()->set_job(job);
    request.mutable_open()->set_consumer(name);
    request.mutable_open()->set_host(fmt::format("gpu-{}", number / 8));
    stream->Write(request);
  }
  bool Report(uint64_t seconds) {
    v1::ConsumerSessionRequest request;
    v1::ConsumerStats* const stats = request.mutable_stats();
    // Jobs wait less and less; one trainer of each waits more than the others.
    const double waits =
        (of_job == 0   ? 0.42
         : of_job == 1 ? 0.02
                       : 0.2) +
        (number == 2 && of_job != 1 ? 0.3 : 0) +
        (of_job == 1 ? 0
                     : 0.1 * static_cast<double>((seconds / 7 + number) % 3));
    stats->set_job(job);
    stats->set_epoch(3);
    stats->set_step(1200);
    stats->set_steps_per_epoch(5004);
    rows_ += static_cast<uint64_t>(1500 * (1 - waits));
    stats->set_rows_total(rows_);
    stats->set_rows_per_s(1500 - static_cast<double>(number));
    stats->set_stall_fraction(of_job == 1 ? 0.02 : 0.42);
    stats->mutable_wait()->set_p50_ms(40 * waits);
    stats->mutable_wait()->set_p95_ms(190 * waits);
    stats->set_transport("grpc");
    waited_ += static_cast<uint64_t>(waits * 1000) * kMs;
    v1::StageStats* const receive =
        Add(v1::STAGE_RECEIVE, 1, seconds, 0.06, 0, 0, stats->mutable_stages());
    receive->set_queue_depth(700);
    receive->set_queue_capacity(1024);
    v1::StageStats* const train =
        Add(v1::STAGE_TRAIN, 1, seconds, 0, 0, 0, stats->mutable_stages());
    train->set_busy_ns_total(seconds * 1000 * kMs - waited_);
    train->set_idle_ns_total(0);
    train->set_input_ns_total(waited_);
    train->set_queue_depth(of_job == 1 ? 4 : 1);
    train->set_queue_capacity(4);
    return stream->Write(request);
  }

 private:
  uint64_t waited_ = 0, rows_ = 0;
};

// Makes the jobs, on one dataset; returns their plans' hashes.
std::vector<std::string> MakeJobs(Client* client,
                                  const std::vector<std::string>& names) {
  std::vector<std::string> hashes;
  FakeWorker lister(client, "lister");
  for (const std::string& name : names) {
    v1::CreateJobResponse created;
    auto done = std::async(std::launch::async, [&] {
      return client->Create(SpecOf(name, "/data/photos", 1000), &created, 60);
    });
    if (hashes.empty()) {
      v1::IndexDataset asked = lister.Asked();
      lister.Upload(asked, "index of the crowd's dataset").ok();
    }
    if (const grpc::Status status = done.get(); !status.ok()) {
      std::fprintf(stderr, "leat_crowd: %s\n", status.error_message().c_str());
      std::exit(1);
    }
    hashes.push_back(created.job().plan_hash());
  }
  lister.Leave().ok();
  return hashes;
}

bool InputEnds(int ms) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  char byte;
  return poll(&input, 1, ms) == 1 && read(STDIN_FILENO, &byte, 1) <= 0;
}

void Run(const std::string& address, size_t workers, size_t consumers,
         const std::vector<std::string>& jobs) {
  const char* const token = std::getenv("LEAT_ACCESS_TOKEN");
  Client client(address, token == nullptr ? "" : token);
  const std::vector<std::string> hashes = MakeJobs(&client, jobs);
  std::vector<Worker> crowd(workers);
  std::vector<std::unique_ptr<Client>> connections;
  for (size_t i = 0; i < workers; ++i) {
    if (i % kOfConnection == 0)
      connections.push_back(
          std::make_unique<Client>(address, token == nullptr ? "" : token));
    crowd[i].number = i;
    crowd[i].Register(connections.back().get());
  }
  std::vector<Trainer> trainers(consumers * jobs.size());
  for (size_t i = 0; i < trainers.size(); ++i) {
    Trainer& each = trainers[i];
    each.of_job = i / consumers;
    each.number = i % consumers;
    each.job = jobs[each.of_job];
    each.name = i == 1 ? odd_name
                       : fmt::format("gpu-{}/{}-{}", each.number / 8, each.job,
                                     each.number % 8);
    each.Open(&client, hashes[each.of_job]);
  }
  for (uint64_t seconds = 1;; ++seconds) {
    for (Worker& each : crowd)
      if (!each.Beat(seconds)) return each.Complain();
    for (Trainer& each : trainers)
      if (!each.Report(seconds)) return each.Complain();
    if (seconds == 1) {
      std::puts("ready");
      std::fflush(stdout);
    }
    if (InputEnds(std::max(1000, static_cast<int>(workers)))) break;
  }
  for (Worker& each : crowd) each.End();
  for (Trainer& each : trainers) each.End();
}

}  // namespace
}  // namespace leat::server

int main(int argc, char** argv) {
  if (argc < 6) return 2;
  leat::server::odd_name = argv[2];
  leat::server::Run(argv[1], std::strtoul(argv[3], nullptr, 10),
                    std::strtoul(argv[4], nullptr, 10),
                    {argv + 5, argv + argc});
}
