// SPDX-License-Identifier: Apache-2.0
//
// A day in the life of a cluster: 1,000 workers, 100 hosts, 16 datasets of
// 65,536 shards; workers join, die, leave, are drained; the coordinator is
// restarted. The real coordinator, without threads, network or waiting.
#include <chrono>
#include <map>
#include <random>
#include <set>

#include "gtest/gtest.h"
#include "tests/server/world.h"

namespace leat::server {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kWorkers = 100, kHosts = 20, kDatasets = 4;
constexpr uint64_t kShards = 4096;
#else
constexpr int kWorkers = 1000, kHosts = 100, kDatasets = 16;
constexpr uint64_t kShards = 65536;
#endif
constexpr int kNvjpegDatasets = 2;  // the last ones
constexpr Duration kStep = seconds(60);
constexpr int kSteps = 24 * 60;
constexpr double kFairBound = 1.25;

struct Machine {
  WorkerRegistration registration;
  SessionId session = 0;
  bool alive = false;
  bool drained = false;
};

class Day {
 public:
  Day() : world_(Config()), random_(20261121) {
    for (int i = 0; i < kWorkers; ++i) {
      const bool gpu = i % 3 == 0;
      std::vector<DecoderClass> classes = {DecoderClass::kExact};
      if (gpu) classes.push_back(DecoderClass::kNvjpeg);
      Machine machine;
      machine.registration =
          WorkerOf(fmt::format("w{:04}", i), 8u << (i % 3), std::move(classes));
      machines_.push_back(machine);
    }
    for (Machine& machine : machines_) Join(&machine);
    for (int i = 0; i < kDatasets; ++i) MakeJob(i);
    OpenConsumers();
    Settle();
  }

  // One step of time: everybody alive reports, somebody comes or goes.
  void Step(int step) {
    for (Machine& machine : machines_)
      if (machine.alive) {
        ASSERT_TRUE(world_.Beat(machine.session).ok());
      }
    world_.Advance(kStep);
    Check();
    if (::testing::Test::HasFatalFailure()) return;
    const int dice = static_cast<int>(random_() % 100);
    const int victim = static_cast<int>(random_() % kWorkers);
    Machine& machine = machines_[victim];
    if (step % (kSteps / 2) == kSteps / 4) {
      Restart();
    } else if (dice < 6 && machine.alive) {
      Kill(&machine, dice < 3);
    } else if (dice < 12) {
      for (Machine& dead : machines_)
        if (!dead.alive) {
          Join(&dead);
          break;
        }
    } else if (dice < 14) {
      ASSERT_TRUE(Drain(&machine));
    }
    world_.Advance(seconds(1));
    if (::testing::Test::HasFatalFailure()) return;
    Check();
  }

  int changes() const { return changes_; }
  int restarts() const { return restarts_; }

 private:
  static CoordinatorConfig Config() {
    CoordinatorConfig config;
    config.heartbeat_interval = seconds(60);
    config.membership.lost_after = seconds(130);
    return config;
  }

  void Join(Machine* machine) {
    machine->session = world_.Join(machine->registration);
    machine->alive = true;
  }
  // Its stream breaks, or it only falls silent.
  void Kill(Machine* machine, bool silently) {
    if (!silently) world_->CloseWorker(machine->session, false, world_.now());
    machine->alive = false;
  }
  bool Drain(Machine* machine) {
    machine->drained = !machine->drained;
    const absl::Status done =
        world_.Drain(machine->registration.name, machine->drained);
    if (absl::IsNotFound(done)) machine->drained = false;
    return done.ok() || absl::IsNotFound(done);
  }

  void MakeJob(int i) {
    JobSpec spec = SpecOf(fmt::format("job{}", i), fmt::format("/data/{}", i));
    if (i >= kDatasets - kNvjpegDatasets)
      spec.decoder_class = DecoderClass::kNvjpeg;
    World::Box box = world_.Create(spec);
    for (Machine& machine : machines_) {
      const auto asked = world_.Asked(machine.session);
      if (!asked) continue;
      ASSERT_TRUE(
          world_.Upload(HeaderFor(*asked, "x", kShards * 10, 10), "x").ok());
    }
    ASSERT_TRUE(box->has_value());
    ASSERT_TRUE((*box)->ok()) << (*box)->status();
    jobs_.push_back((**box)->info);
  }
  void OpenConsumers() {
    consumers_.clear();
    for (int i = 0; i < kHosts; ++i)
      consumers_.push_back(
          world_.Open(*jobs_[i % kDatasets], fmt::format("host{}", i)));
  }
  void Restart() {
    ++restarts_;
    world_.Restart();
    for (Machine& machine : machines_)
      if (machine.alive) Join(&machine);
    OpenConsumers();
    world_.Advance(seconds(1));
    previous_.clear();  // soft state: only caches may notice
  }
  void Settle() {
    world_.Advance(seconds(1));
    Check();
  }

  void Check() {
    std::map<std::string, double> weights;
    std::set<std::string> ready;
    for (const WorkerView& view : world_->Workers()) {
      weights[view.registration.name] = view.weight;
      if (view.state == WorkerState::kReady)
        ready.insert(view.registration.name);
    }
    ASSERT_FALSE(ready.empty());
    std::map<std::string, const Machine*> known;
    for (const Machine& machine : machines_)
      known[machine.registration.name] = &machine;
    for (const auto& job : jobs_) {
      const auto now =
          world_->AssignmentOf(job->dataset.id, job->spec.decoder_class);
      ASSERT_NE(now, nullptr);
      auto& before = previous_[job->spec.name];
      if (before == now) continue;
      for (const WorkerRef& worker : now->workers) {
        ASSERT_TRUE(ready.contains(worker.name)) << worker.name;
        const auto& has = known.at(worker.name)->registration.decoder_classes;
        ASSERT_NE(std::find(has.begin(), has.end(), job->spec.decoder_class),
                  has.end())
            << worker.name << " lacks the class of " << job->spec.name;
      }
      ASSERT_NO_FATAL_FAILURE(CheckLoads(*now, weights));
      if (before != nullptr) {
        ++changes_;
        ASSERT_NO_FATAL_FAILURE(CheckMoves(*before, *now));
      }
      before = now;
    }
    for (SessionId consumer : consumers_)
      ASSERT_TRUE(world_->NextForConsumer(consumer).ok());
  }

  static uint16_t First(const Assignment& table, uint64_t shard) {
    const size_t at = 2 * shard * table.owners_per_shard;
    return static_cast<uint16_t>(
        static_cast<unsigned char>(table.owners[at]) |
        static_cast<unsigned char>(table.owners[at + 1]) << 8);
  }

  // Every shard has an owner; everybody's load is near the share of its weight.
  void CheckLoads(const Assignment& table,
                  const std::map<std::string, double>& weights) {
    ASSERT_EQ(table.owners.size(), 2 * kShards * table.owners_per_shard);
    ASSERT_GT(table.owners_per_shard, 0u);
    double total = 0;
    for (const WorkerRef& worker : table.workers)
      total += weights.at(worker.name);
    std::vector<uint32_t> loads(table.workers.size());
    for (uint64_t shard = 0; shard < kShards; ++shard) {
      const uint16_t owner = First(table, shard);
      ASSERT_LT(owner, loads.size()) << "shard " << shard << " has no owner";
      ++loads[owner];
    }
    for (size_t i = 0; i < loads.size(); ++i) {
      const std::string& name = table.workers[i].name;
      const double fair = kShards * weights.at(name) / total;
      ASSERT_LE(loads[i], kFairBound * fair) << name << ", fair " << fair;
    }
  }

  // Who only loses colleagues loses no shard; who joins takes little more than
  // its share.
  void CheckMoves(const Assignment& before, const Assignment& now) {
    std::vector<int> renumbered(before.workers.size(), -1);
    size_t joined = now.workers.size(), k = 0;
    for (size_t i = 0; i < before.workers.size(); ++i) {
      while (k < now.workers.size() &&
             now.workers[k].name < before.workers[i].name)
        ++k;
      if (k == now.workers.size() ||
          now.workers[k].name != before.workers[i].name)
        continue;
      renumbered[i] = static_cast<int>(k);
      --joined;
    }
    uint64_t moved = 0;
    for (uint64_t shard = 0; shard < kShards; ++shard) {
      const int kept = renumbered[First(before, shard)];
      if (kept >= 0 && kept != First(now, shard)) ++moved;
    }
    if (joined == 0) {
      ASSERT_EQ(moved, 0u) << "a shard whose owner stayed was moved";
    } else {
      // At most the weight of 32 threads of a third of all workers.
      ASSERT_LE(moved, joined * kShards * 20 / kWorkers) << joined << " joined";
    }
  }

  World world_;
  std::mt19937_64 random_;
  std::vector<Machine> machines_;
  std::vector<std::shared_ptr<const JobInfo>> jobs_;
  std::vector<SessionId> consumers_;
  std::map<std::string, std::shared_ptr<const Assignment>> previous_;
  int changes_ = 0, restarts_ = 0;
};

TEST(Simulation, ADayOfChurnKeepsEveryShardOwnedAndEveryLoadFair) {
  Day day;
  for (int step = 0; step < kSteps; ++step)
    ASSERT_NO_FATAL_FAILURE(day.Step(step)) << "step " << step;
  EXPECT_GT(day.changes(), 50 * kDatasets);
  EXPECT_EQ(day.restarts(), 2);
}

}  // namespace
}  // namespace leat::server
