// SPDX-License-Identifier: Apache-2.0
//
// A day in the life of a large cluster: 10,000 workers, 8,000 consumers, two
// datasets. Workers join, die, leave, are drained, become slower and faster;
// consumers come and go; the network breaks between the coordinator and all
// workers; the coordinator is restarted. It uses the real coordinator, without
// threads, network or waiting.
//
// The bounds are close to the actual values, so that ten times too many changes
// of tables, messages, or visits of workers are a failure.
#include <chrono>
#include <cmath>
#include <deque>
#include <map>
#include <random>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"
#include "tests/support/sanitized.h"

namespace leat::server {
namespace {

constexpr int kWorkers = testing::kSanitized ? 300 : 10'000;
constexpr int kConsumers = testing::kSanitized ? 200 : 8'000;
constexpr uint64_t kShards = testing::kSanitized ? 4096 : 65'536;
constexpr int kJobs = 2;                             // the second one for GPUs
constexpr Duration kStep = std::chrono::minutes(5);  // also between heartbeats
constexpr Duration kLostAfter = 3 * kStep;
constexpr int kSteps = 24 * 12;
constexpr int kCutOffAt = 60, kCutOffSteps = 4;
constexpr int kRestartAt = kSteps / 2;

struct Machine {
  WorkerRegistration registration;
  SessionId session = 0;
  double speed = 1;
  bool alive = false;
  bool drained = false;
};

using Weights =
    absl::flat_hash_map<std::string, double>;  // of workers, by name

// The changes of a table in a step. The names are of the tables.
struct Moves {
  uint64_t moved = 0;  // shards that left an owner that stayed
  double ideal = 0;    // necessary ones: shares that joined or changed
  // Workers that own other shards than before.
  absl::flat_hash_set<std::string_view> heirs;
};

class Day {
 public:
  Day() : world_(Config()), random_(20261121) {
    for (int i = 0; i < kWorkers; ++i) {
      std::vector<DecoderClass> classes = {DecoderClass::kExact};
      if (i % 4 == 0) classes.push_back(DecoderClass::kNvjpeg);
      Machine machine;
      machine.registration =
          WorkerOf(fmt::format("w{:05}", i), 8u << (i % 3), std::move(classes));
      machines_.push_back(std::move(machine));
    }
    for (Machine& machine : machines_) Join(&machine);
    for (int i = 0; i < kJobs; ++i) MakeJob(i);
    for (int i = 0; i < kConsumers; ++i) Open();
    world_.Advance(seconds(1));
    Look();
    Pull();
    reset_ = true;
  }

  void Step(int step) {
    cut_off_ = step >= kCutOffAt && step < kCutOffAt + kCutOffSteps;
    if (!cut_off_) Beat();
    world_.Advance(kStep);
    ASSERT_NO_FATAL_FAILURE(Look());
    ASSERT_NO_FATAL_FAILURE(Pull());
    if (cut_off_ || step < 5) return;
    if (step == kRestartAt) return Restart();
    for (int i = 0; i < 3; ++i) Kill(&Pick(), /*silently=*/i == 0);
    int back = 0;
    for (Machine& machine : machines_)
      if (!machine.alive && back < 2) {
        Join(&machine);
        ++back;
      }
    if (step % 10 == 0) Drain(&Pick());
    for (int i = 0; i < 5; ++i) {
      double& speed = Pick().speed;
      speed = speed == 1 ? 0.5 : 1;
    }
    for (int i = 0; i < 40; ++i) {
      world_->CloseConsumer(consumers_.front(), world_.now());
      consumers_.pop_front();
      Open();
    }
  }

  int tables() const { return tables_; }
  uint64_t told() const { return told_; }
  uint64_t heirs() const { return heirs_; }
  uint64_t taken() const { return taken_; }
  uint64_t bytes_to_workers() const { return bytes_to_workers_; }
  uint64_t visits() { return visits_ + world_->member_visits(); }
  uint64_t moved() const { return moved_; }
  double ideal() const { return ideal_; }
  uint64_t versions() const { return versions_; }

 private:
  static CoordinatorConfig Config() {
    CoordinatorConfig config;
    config.heartbeat_interval = kStep;
    config.membership.lost_after = kLostAfter;
    return config;
  }
  Machine& Pick() { return machines_[random_() % kWorkers]; }

  void Join(Machine* machine) {
    machine->session = world_.Join(machine->registration);
    machine->alive = true;
  }
  void Kill(Machine* machine, bool silently) {
    if (!machine->alive) return;
    if (!silently) world_->CloseWorker(machine->session, false, world_.now());
    machine->alive = false;
  }
  void Drain(Machine* machine) {
    const absl::Status done =
        world_.Drain(machine->registration.name, !machine->drained);
    ASSERT_TRUE(done.ok() || absl::IsNotFound(done)) << done;
    if (done.ok()) machine->drained = !machine->drained;
  }
  // Rates differ by machine, and by five per cent of noise.
  void Beat() {
    std::uniform_real_distribution<> noise(0.95, 1.05);
    for (Machine& machine : machines_) {
      if (!machine.alive) continue;
      const bool gpu = machine.registration.decoder_classes.size() > 1;
      const double rate = 100.0 * machine.registration.threads * (gpu ? 4 : 1) *
                          machine.speed * noise(random_);
      ASSERT_TRUE(world_.Beat(machine.session, rate).ok());
    }
  }

  void MakeJob(int i) {
    JobSpec spec = SpecOf(fmt::format("job{}", i), fmt::format("/data/{}", i));
    if (i > 0) spec.decoder_class = DecoderClass::kNvjpeg;
    World::Box box = world_.Create(spec);
    for (Machine& machine : machines_) {
      const auto asked = world_.Asked(machine.session);
      if (!asked) continue;
      ASSERT_TRUE(
          world_.Upload(HeaderFor(*asked, "x", kShards * 10, 10), "x").ok());
    }
    ASSERT_TRUE(box->has_value() && (*box)->ok());
    jobs_.push_back((**box)->info);
  }
  void Open() {
    const int number = opened_++;
    consumers_.push_back(
        world_.Open(*jobs_[number % kJobs], fmt::format("c{}", number)));
  }

  // Workers and consumers come back in any order; the first table that a
  // consumer gets must be complete.
  void Restart() {
    visits_ += world_->member_visits();
    world_.Restart();
    consumers_.clear();
    for (int i = 0; i < kConsumers / 2; ++i) Open();
    size_t alive = 0;
    for (Machine& machine : machines_)
      if (machine.alive) {
        Join(&machine);
        ++alive;
      }
    for (int i = 0; i < kConsumers / 2; ++i) Open();
    world_.Advance(seconds(10));
    for (const SessionId consumer : consumers_)
      ASSERT_EQ(*world_->NextForConsumer(consumer), nullptr);
    for (int i = 0; i < 3; ++i) {
      Beat();
      world_.Advance(kStep);
    }
    world_.Advance(seconds(1));
    tables_before_.clear();  // soft state: only caches may notice
    ASSERT_NO_FATAL_FAILURE(Look());
    size_t drained = 0;
    for (const Machine& machine : machines_)
      drained += machine.alive && machine.drained;
    ASSERT_EQ(tables_before_["job0"]->workers.size(), alive - drained);
    Pull();
    reset_ = true;
  }

  // Checks the current tables.
  void Look() {
    Weights weights;
    absl::flat_hash_set<std::string> lost;
    for (const WorkerView& view : world_->Workers()) {
      weights[view.registration->name] = view.weight;
      if (view.state == WorkerState::kLost)
        lost.insert(view.registration->name);
    }
    for (const Machine& machine : machines_)
      ASSERT_FALSE(machine.alive && lost.contains(machine.registration.name))
          << machine.registration.name << " was believed lost";
    for (const auto& job : jobs_) {
      const auto now =
          world_->AssignmentOf(job->datasets[0].id, job->spec.decoder_class);
      ASSERT_NE(now, nullptr);
      auto& before = tables_before_[job->spec.name];
      if (before == now) continue;
      ASSERT_NO_FATAL_FAILURE(CheckLoads(*now, weights));
      ++tables_;
      if (before != nullptr) {
        const Moves moves = Compare(*before, *now, weights);
        moved_ += moves.moved;
        ideal_ += moves.ideal;
        heirs_ += moves.heirs.size();
        versions_ += now->version - before->version;
        // A bound that falls by one shard moves one of many workers.
        ASSERT_LE(static_cast<double>(moves.moved),
                  3 * moves.ideal + kShards / 50);
      }
      before = now;
    }
    weights_before_ = std::move(weights);
  }

  // Every shard has an owner, with its share and no more than the bound.
  static void CheckLoads(const Assignment& table, const Weights& weights) {
    ASSERT_EQ(table.num_shards(), kShards);
    ASSERT_EQ(table.shards.size(), kShards);
    double total = 0;
    for (const WorkerRef& worker : table.workers)
      total += weights.at(worker.name);
    for (size_t i = 0; i < table.workers.size(); ++i) {
      const double fair = kShards * weights.at(table.workers[i].name) / total;
      ASSERT_LE(table.starts[i + 1] - table.starts[i], kLoadBound * fair + 1)
          << table.workers[i].name << ", fair " << fair;
    }
  }

  // Returns where the worker is an owner, and the other owners there.
  static std::vector<std::pair<uint32_t, std::string_view>> PeersOf(
      const Assignment& table, std::string_view worker) {
    std::vector<std::pair<uint32_t, std::string_view>> peers;
    for (const uint32_t place : table.PlacesOf(worker))
      peers.emplace_back(place, table.PeerAt(place)->name);
    return peers;
  }

  Moves Compare(const Assignment& before, const Assignment& now,
                const Weights& weights) const {
    Moves moves;
    absl::flat_hash_map<std::string_view, double> shares;
    double total = 0, total_before = 0;
    for (const WorkerRef& worker : now.workers)
      total += weights.at(worker.name);
    for (const WorkerRef& worker : before.workers)
      total_before += weights_before_.at(worker.name);
    for (const WorkerRef& worker : before.workers)
      shares[worker.name] =
          kShards * weights_before_.at(worker.name) / total_before;
    std::vector<std::string_view> owner_before(kShards);
    for (size_t i = 0; i < before.workers.size(); ++i)
      for (uint32_t k = before.starts[i]; k < before.starts[i + 1]; ++k)
        owner_before[before.shards[k]] = before.workers[i].name;
    absl::flat_hash_set<std::string_view> stayed;
    for (const WorkerRef& worker : now.workers) {
      const double share = kShards * weights.at(worker.name) / total;
      const auto was = shares.find(worker.name);
      if (was != shares.end()) stayed.insert(worker.name);
      if (was == shares.end())
        moves.ideal += share;
      else if (weights.at(worker.name) != weights_before_.at(worker.name))
        moves.ideal += std::abs(share - was->second);
    }
    for (size_t i = 0; i < now.workers.size(); ++i)
      for (uint32_t k = now.starts[i]; k < now.starts[i + 1]; ++k) {
        const std::string_view was = owner_before[now.shards[k]];
        if (was == now.workers[i].name) continue;
        moves.heirs.insert(now.workers[i].name);
        moves.heirs.insert(was);
        moves.moved += stayed.contains(was);
      }
    for (const WorkerRef& worker : now.workers)
      if (PeersOf(before, worker.name) != PeersOf(now, worker.name))
        moves.heirs.insert(worker.name);
    return moves;
  }

  // Pulls from all sessions: each consumer gets the newest table, with the same
  // bytes as the others; each worker gets the shards that it owns.
  void Pull() {
    for (const SessionId consumer : consumers_) {
      const auto table = world_->NextForConsumer(consumer);
      ASSERT_TRUE(table.ok());
      if (*table == nullptr) continue;
      ++taken_;
      bool known = false;
      for (const auto& [job, now] : tables_before_)
        known = known || now == *table;
      ASSERT_TRUE(known) << "a table of its own";
      ASSERT_FALSE((*table)->workers.empty());
      ASSERT_GT((*table)->encoded.size(), (*table)->owners.size());
      ASSERT_LT((*table)->encoded.size(),
                (*table)->owners.size() + 64 * (*table)->workers.size());
    }
    uint64_t told = 0;
    for (const Machine& machine : machines_) {
      if (!machine.alive) continue;
      for (const WorkerMessage& message : world_.Take(machine.session))
        if (const auto* owned = std::get_if<OwnedShards>(&message)) {
          ++told;
          bytes_to_workers_ += (owned->num_shards + 7) / 8;
        }
    }
    if (!reset_) told_ += told;
    reset_ = false;
  }

  World world_;
  std::mt19937_64 random_;
  std::vector<Machine> machines_;
  std::vector<std::shared_ptr<const JobInfo>> jobs_;
  std::deque<SessionId> consumers_;
  std::map<std::string, std::shared_ptr<const Assignment>> tables_before_;
  Weights weights_before_;
  bool cut_off_ = false;
  bool reset_ = true;  // all are told everything
  int opened_ = 0, tables_ = 0;
  uint64_t told_ = 0, heirs_ = 0, taken_ = 0, visits_ = 0;
  uint64_t bytes_to_workers_ = 0, moved_ = 0, versions_ = 0;
  double ideal_ = 0;
};

TEST(Simulation, ADayOfChurnKeepsEveryShardOwnedAndEveryLoadFair) {
  Day day;
  for (int step = 0; step < kSteps; ++step)
    ASSERT_NO_FATAL_FAILURE(day.Step(step)) << "step " << step;
  EXPECT_GT(day.tables(), kSteps * kJobs / 2) << "nothing happened";
  // Changes that come together make one version; of either table.
  EXPECT_LE(day.versions(), uint64_t{6} * kSteps * kJobs);
  // Over the day, the moves are close to the necessary ones.
  EXPECT_LE(static_cast<double>(day.moved()), 2 * day.ideal());
  // Each table goes to each of its consumers once.
  EXPECT_LE(day.taken(),
            uint64_t(day.tables()) * (kConsumers / kJobs + 40) + kConsumers);
  // Workers are told only of changes of their own shards and of other owners of
  // these; several in a step are compared as one here.
  EXPECT_LE(day.told(), 2 * day.heirs() + 6 * kSteps * kJobs);
  EXPECT_LE(day.bytes_to_workers(),
            (day.told() + 4 * kWorkers * kJobs) * (kShards / 8 + 1));
  // A heartbeat visits one worker; at most once a second, all are visited for a
  // median.
  EXPECT_LE(day.visits(), uint64_t{2} * kSteps * kWorkers);
}

}  // namespace
}  // namespace leat::server
