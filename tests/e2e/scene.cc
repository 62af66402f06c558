// SPDX-License-Identifier: Apache-2.0
//
// leat_scene NAME UNIX_S: a coordinator, with its page and its calls for
// operators, in a state that takes hours to develop: its time is simulated, and
// so are workers and consumers, whose reports follow from the load and their
// numbers of threads. Prints "PAGE GRPC" (two addresses) when its clock shows
// UNIX_S, and the time stands still. A line "SECONDS" on its standard input
// advances the time, and is answered by "ready". Ends with its standard input.
//
// NAME   the state
// none   a coordinator that has just begun
// start  a training in its first minute
// hour   the same one after 55 minutes: decoding limited it until workers came,
//        and storage was slow for a while
// lost   two workers have died, and one drains
// failed datasets that cannot be listed, and a job that is given up
// many   12 jobs and 40 workers
// names  names that are very long
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "rpc/http/status_server.h"
#include "rpc/server/server.h"
#include "server/calls/admin_service.h"
#include "server/calls/service.h"
#include "server/page/web_page.h"
#include "tests/e2e/scenes.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {
namespace {

constexpr int kStepS = 2;

// The clock of the page's threads, which the scene sets.
class ToldClock : public Clock {
 public:
  void Tell(const server::Now& now) {
    mono_ = now.mono.time_since_epoch().count();
    wall_ = now.wall.time_since_epoch().count();
  }
  MonotonicTime Now() const override {
    return MonotonicTime(MonotonicTime::duration(mono_));
  }
  WallTime WallNow() const override {
    return WallTime(WallTime::duration(wall_));
  }

 private:
  std::atomic<MonotonicTime::rep> mono_ = 0;
  std::atomic<WallTime::rep> wall_ = 0;
};

class Scene {
 public:
  Scene(Plan plan, int64_t unix_s) : plan_(std::move(plan)) {
    world_.Stop(seconds(unix_s - plan_.seconds) -
                world_.now().wall.time_since_epoch());
    told_.Tell(world_.now());
    admin_ = std::make_unique<AdminService>(&*world_, &access_, false, &told_);
  }

  absl::Status Serve() {
    Pass(plan_.seconds);
    ASSIGN_OR_RETURN(server_,
                     rpc::Server::Start({}, {}, {&service_, admin_.get()}));
    admin_->view().set_address(server_->address());
    page_ = std::make_unique<WebPage>(&*world_, &admin_->view(),
                                      service_.sheets(), &access_, &told_);
    ASSIGN_OR_RETURN(pages_, rpc::StatusServer::Start(
                                 {.address = "127.0.0.1:0",
                                  .ready = [] { return absl::OkStatus(); },
                                  .metrics = [] { return std::string(); },
                                  .others =
                                      [this](const rpc::HttpRequest& request) {
                                        return page_->Answer(request);
                                      }},
                                 {}, &access_, &told_));
    std::cout << pages_->address() << ' ' << server_->address() << std::endl;
    return absl::OkStatus();
  }

  void Pass(int seconds) {
    for (const int end = second_ + seconds; second_ < end; second_ += kStepS) {
      Change();
      Report();
      world_.Advance(std::chrono::seconds(kStepS));
      world_->CompareFindings(world_.now());
      told_.Tell(world_.now());
    }
  }

 private:
  // Lets workers and consumers come and go by the plan.
  void Change() {
    for (Worker& each : plan_.workers) {
      if (each.session == 0 && each.IsAt(second_)) Join(&each);
      if (each.session != 0 && !each.IsAt(second_)) {
        world_->CloseWorker(each.session, /*left=*/false, world_.now());
        each.session = 0;
        each.from = 1 << 30;
      }
    }
    for (Training& each : plan_.trainings) {
      if (!each.begun && each.IsAt(second_)) Begin(&each);
      if (each.info == nullptr || each.IsAt(second_)) continue;
      for (Trainer& trainer : each.trainers)
        if (const SessionId open = std::exchange(trainer.session, 0); open != 0)
          world_->CloseConsumer(open, world_.now());
    }
  }

  void Join(Worker* worker) {
    WorkerRegistration from = WorkerOf(worker->name, worker->threads);
    from.host = worker->host;
    if (worker->has_gpu)
      from.devices.emplace_back().set_name("NVIDIA H100 80GB HBM3");
    worker->session = world_.Join(from);
    if (worker->name == plan_.drained) world_.Drain(worker->name).IgnoreError();
  }

  void Begin(Training* training) {
    training->begun = true;
    world_.Create(training->spec, seconds(3));
    for (const Worker& each : plan_.workers) {
      if (each.session == 0) continue;
      const auto asked = world_.Asked(each.session);
      if (!asked) continue;
      if (!training->fails.empty()) {
        EXPECT_TRUE(world_
                        ->FailIndex(asked->dataset_id, asked->request_id,
                                    NotFound("{}", training->fails),
                                    world_.now())
                        .ok());
        continue;
      }
      IndexHeader header = HeaderFor(*asked, "index", training->samples, 1000);
      header.name = training->dataset;
      header.bytes = training->samples * 110'000;
      EXPECT_TRUE(world_.Upload(header, "index").ok());
    }
    world_.Write();
    const auto made = world_->GetJob(training->spec.name);
    if (!made.ok()) return;
    training->info = *made;
    for (Trainer& each : training->trainers) {
      const auto session =
          world_->OpenConsumer({training->info->plan_hash, each.host, 1,
                                each.name, training->spec.name},
                               world_.now(), [] {});
      each.session = session.value_or(0);
    }
  }

  // Returns a number between 0 and 1, the same each time.
  double Chance(uint64_t a, uint64_t b) const {
    uint64_t x = (a + 1) * 0x9e3779b97f4a7c15 + b * 0xbf58476d1ce4e5b9 +
                 static_cast<uint64_t>(second_) * 0x94d049bb133111eb;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9;
    x ^= x >> 32;
    return static_cast<double>(x >> 11) / (uint64_t{1} << 53);
  }

  void Report() {
    double could = 0, wanted = 0;
    const bool slow = second_ >= plan_.slow_from && second_ < plan_.slow_until;
    for (const Worker& each : plan_.workers)
      if (each.session != 0 && each.name != plan_.drained)
        could += each.Capacity() * (slow ? 0.55 : 1);
    for (const Training& each : plan_.trainings)
      for (const Trainer& trainer : each.trainers)
        if (trainer.session != 0) wanted += each.wants;
    const double served = wanted > 0 ? std::min(1.0, could / wanted) : 0;
    const double used = could > 0 ? std::min(1.0, wanted / could) : 0;
    for (size_t i = 0; i < plan_.workers.size(); ++i)
      if (plan_.workers[i].session != 0) Beat(&plan_.workers[i], i, used, slow);
    for (size_t k = 0; k < plan_.trainings.size(); ++k)
      for (size_t i = 0; i < plan_.trainings[k].trainers.size(); ++i)
        if (plan_.trainings[k].trainers[i].session != 0)
          Tell(&plan_.trainings[k], k, i, served);
  }

  void Beat(Worker* worker, size_t number, double used, bool slow) {
    if (worker->name == plan_.drained) used = 0;
    const double noise = 0.94 + 0.12 * Chance(number, 7);
    const double busy = used * (slow ? 0.55 : 0.97) * noise;
    const double rate = worker->Capacity() * busy;
    worker->rows += rate * kStepS;
    const double kept = std::min(0.92, second_ / 1800.0);  // of the records
    worker->hits += rate * kStepS * kept;
    worker->misses += rate * kStepS * (1 - kept);
    worker->requests += rate * kStepS * (1 - kept);
    const double threads = worker->threads;
    for (Did* did : {&worker->open, &worker->read, &worker->decode,
                     &worker->augment, &worker->device, &worker->send})
      did->items += rate * kStepS;
    worker->open.Add(kStepS, 16, 0.05 * used, 0, 0);
    worker->read.Add(kStepS, 16, slow ? 0.9 : 0.3 * used, 0, slow ? 0 : 0.2);
    worker->decode.Add(kStepS, threads, 0.82 * busy, slow ? 0.42 : 0.01, 0.01);
    worker->augment.Add(kStepS, threads, 0.18 * busy);
    worker->device.Add(kStepS, 2, 0.7 * busy);
    worker->send.Add(kStepS, 4, 0.15 * used);
    auto stats = std::make_shared<v1::WorkerStats>();
    stats->set_rows_per_s(rate);
    stats->set_capacity_rows_per_s(worker->Capacity());
    stats->set_rows_total(static_cast<uint64_t>(worker->rows));
    stats->set_bytes_sent_total(static_cast<uint64_t>(worker->rows * 150'528));
    stats->set_busy_fraction(busy);
    stats->set_rows_queued(static_cast<uint64_t>(used >= 1 ? 96 * noise : 4));
    stats->set_streams(4);
    stats->set_buffers_in_use(static_cast<uint64_t>(used >= 1 ? 30 : 6));
    stats->set_buffers_total(32);
    stats->set_cache_bytes(static_cast<uint64_t>(kept * (4ll << 30)));
    stats->set_cache_limit_bytes(4ll << 30);
    stats->set_cache_hits_total(static_cast<uint64_t>(worker->hits));
    stats->set_cache_misses_total(static_cast<uint64_t>(worker->misses));
    stats->set_storage_requests_total(static_cast<uint64_t>(worker->requests));
    stats->set_storage_retries_total(slow ? 12 : 0);
    stats->set_rows_ahead(slow ? 0 : 64);
    stats->set_bytes_ahead(slow ? 0 : 7 << 20);
    stats->set_rss_bytes(5ll << 30);
    stats->mutable_row_latency()->set_p50_ms(12.5 * noise);
    stats->mutable_row_latency()->set_p95_ms(40 * noise);
    auto* const stages = stats->mutable_stages();
    worker->open.Tell(v1::STAGE_OPEN, 16, stages);
    worker->read.Tell(v1::STAGE_READ, 16, stages)
        ->set_queue_depth(slow ? 240 : 12);
    worker->decode.Tell(v1::STAGE_DECODE, worker->threads, stages)
        ->set_queue_depth(static_cast<uint64_t>(used >= 1 ? 84 * noise : 3));
    worker->augment.Tell(v1::STAGE_AUGMENT, worker->threads, stages);
    if (worker->has_gpu) worker->device.Tell(v1::STAGE_DEVICE, 2, stages);
    v1::StageStats* const send = worker->send.Tell(v1::STAGE_SEND, 4, stages);
    send->set_queue_depth(static_cast<uint64_t>(2 * noise));
    send->set_queue_capacity(16);
    EXPECT_TRUE(world_
                    ->Heartbeat(worker->session, {worker->Capacity(), stats},
                                BadSamples(*worker, number), world_.now())
                    .ok());
  }

  // For a job with a budget, some come with time.
  BadSampleReport BadSamples(const Worker& worker, size_t number) const {
    BadSampleReport report;
    for (const Training& each : plan_.trainings) {
      if (!each.spec.max_bad || each.info == nullptr || number != 0) continue;
      const auto sample = static_cast<uint64_t>(second_) * 12'007;
      report.jobs.push_back(
          {each.spec.name,
           {BadSampleOf(sample,
                        fmt::format("n02/{}_{}.jpg", worker.name, sample),
                        "the file is truncated: 16,384 bytes are missing")}});
      report.plans.push_back({each.info->plan_hash, {sample}});
    }
    return report;
  }

  void Tell(Training* training, size_t job, size_t number, double served) {
    Trainer& trainer = training->trainers[number];
    // One of them waits a little more, as usual.
    const double odd = number == 1 ? 0.06 : 0;
    const double waits = std::clamp(
        (1 - served) + (served < 1 ? odd : odd / 10) +
            (Chance(100 * job + number, 3) - 0.5) * (served < 1 ? 0.12 : 0.01),
        0.002, 0.98);
    const double rate = training->wants * (1 - waits);
    const double step_ms = 1000.0 * training->spec.batch / training->wants;
    trainer.rows += rate * kStepS;
    trainer.steps += rate * kStepS / training->spec.batch;
    trainer.receive.items += rate * kStepS;
    trainer.receive.Add(kStepS, 1, 0.06);
    trainer.train.items = trainer.steps;
    trainer.train.Add(kStepS, 1, 1 - waits, waits);
    auto stats = std::make_shared<v1::ConsumerStats>();
    const double steps = std::ceil(
        static_cast<double>(training->samples) /
        static_cast<double>(training->spec.batch * training->trainers.size()));
    ConsumerReport report;
    report.epoch = static_cast<uint64_t>(trainer.steps / steps);
    report.step = static_cast<uint64_t>(std::fmod(trainer.steps, steps));
    report.steps_per_epoch = static_cast<uint64_t>(steps);
    report.rows_per_s = rate;
    report.stall_fraction = waits;
    stats->set_job(training->spec.name);
    stats->set_host(trainer.host);
    stats->set_epoch(report.epoch);
    stats->set_step(report.step);
    stats->set_steps_per_epoch(report.steps_per_epoch);
    stats->set_rows_total(static_cast<uint64_t>(trainer.rows));
    stats->set_rows_per_s(rate);
    stats->set_stall_fraction(waits);
    stats->mutable_wait()->set_p50_ms(waits < 0.03 ? 0.2 : waits * step_ms);
    stats->mutable_wait()->set_p95_ms(waits < 0.03 ? 1.4
                                                   : waits * step_ms * 3.1);
    stats->set_transport("grpc");
    stats->set_memory("host");
    auto* const stages = stats->mutable_stages();
    v1::StageStats* const receive =
        trainer.receive.Tell(v1::STAGE_RECEIVE, 1, stages);
    receive->set_queue_depth(served < 1 ? 700 : 260);
    receive->set_queue_capacity(1024);
    v1::StageStats* const train =
        trainer.train.Tell(v1::STAGE_TRAIN, 1, stages);
    train->set_queue_depth(served < 1 ? (Chance(number, 9) < 0.4 ? 1 : 0) : 4);
    train->set_queue_capacity(4);
    report.stats = stats;
    EXPECT_TRUE(
        world_->ReportConsumer(trainer.session, report, world_.now()).ok());
  }

  Plan plan_;
  int second_ = 0;
  World world_;
  ToldClock told_;
  rpc::Access access_{{}, &told_};
  std::unique_ptr<AdminService> admin_;
  CoordinatorService service_{&*world_, &access_, &told_};
  std::unique_ptr<WebPage> page_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<rpc::StatusServer> pages_;
};

int Main(const std::string& name, int64_t unix_s) {
  std::optional<Plan> plan = PlanOf(name);
  if (!plan) return 2;
  Scene scene(*std::move(plan), unix_s);
  if (const absl::Status status = scene.Serve(); !status.ok()) {
    std::cerr << "leat_scene: " << status << std::endl;
    return 1;
  }
  for (std::string line; std::getline(std::cin, line);) {
    scene.Pass(std::atoi(line.c_str()));
    std::cout << "ready" << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace leat::server

int main(int argc, char** argv) {
  return argc == 3 ? leat::server::Main(argv[1], std::atoll(argv[2])) : 2;
}
