// SPDX-License-Identifier: Apache-2.0
//
// A coordinator with scripted workers and consumers: no threads, no network, a
// manual clock.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "server/coordinator/coordinator.h"
#include "server/store/store.h"

namespace leat::server {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kSecond = 1'000'000'000;  // in nanoseconds

inline JobSpec SpecOf(const std::string& name, const std::string& path,
                      uint32_t batch = 16) {
  JobSpec spec;
  spec.name = name;
  spec.batch = batch;
  spec.seed = 7;
  Node reader{"readers.image_folder", {}, {{"path", path}}};
  Node decode{"decode", {{0, 0}}, {}};
  Node crop{
      "random_resized_crop", {{1, 0}}, {{"size", std::vector<int64_t>{8, 8}}}};
  spec.pipeline.nodes = {reader, decode, crop};
  spec.pipeline.outputs = {{"image", {2, 0}}, {"label", {0, 1}}};
  return spec;
}

inline WorkerRegistration WorkerOf(const std::string& name,
                                   uint32_t threads = 2,
                                   std::vector<DecoderClass> classes = {
                                       DecoderClass::kExact}) {
  WorkerRegistration worker;
  worker.name = name;
  worker.address = name + ":7500";
  worker.version = "0.2.0";
  worker.threads = threads;
  worker.decoder_classes = std::move(classes);
  // A GPU with engines.
  if (worker.Has(DecoderClass::kNvjpeg))
    worker.devices.emplace_back().set_jpeg_engines(7);
  worker.host = "host-" + name;
  worker.pid = 1;
  return worker;
}

inline IndexBlock BlockOf(const std::string& bytes, uint64_t samples = 0) {
  return {.sha256 = HashOf(bytes), .bytes = bytes.size(), .samples = samples};
}

inline v1::BadSample BadSampleOf(uint64_t sample, const std::string& record,
                                 const std::string& reason,
                                 uint64_t count = 1) {
  v1::BadSample bad;
  bad.set_sample(sample);
  bad.set_record(record);
  bad.set_reason(reason);
  bad.set_count(count);
  return bad;
}

inline v1::StorageFailure FailureWith(const std::string& root,
                                      const std::string& error) {
  v1::StorageFailure failure;
  failure.set_root(root);
  failure.set_error(error);
  return failure;
}

// Sets the blocks of the header's index.
inline void SetBlocks(std::vector<IndexBlock> blocks, IndexHeader* header) {
  header->blocks = std::move(blocks);
  header->index_bytes = TotalBytes(header->blocks);
  header->index_sha256 =
      IndexIdentity(header->fingerprint, header->shards, header->blocks);
}

// Makes an index of one block that answers `directive`.
inline IndexHeader HeaderFor(const IndexDirective& directive,
                             const std::string& index, uint64_t samples = 1000,
                             uint64_t shard_size = 10) {
  IndexHeader header;
  header.dataset_id = directive.dataset_id;
  header.request_id = directive.request_id;
  header.fingerprint = HashOf(directive.dataset_id);
  header.shards = *ShardTable::Uniform(samples, shard_size);
  header.bytes = samples * 1000;
  header.classes = {"cat", "dog"};
  header.name = "photos";
  SetBlocks({BlockOf(index)}, &header);
  return header;
}

class World {
 public:
  explicit World(CoordinatorConfig config = {},
                 std::shared_ptr<Store> store = std::make_shared<MemoryStore>())
      : config_(std::move(config)), store_(std::move(store)) {
    Restart();
  }

  // Restarts as after a crash: only the store is left.
  void Restart() {
    coordinator_ = std::make_unique<Coordinator>(config_, store_.get(),
                                                 ++instance_, [] {});
    EXPECT_TRUE(coordinator_->Recover().ok());
  }
  Coordinator& operator*() { return *coordinator_; }
  Coordinator* operator->() { return coordinator_.get(); }
  Store& store() { return *store_; }

  Now now() const { return Now::Of(clock_); }
  // Lets time pass; work is done when it is due.
  void Advance(Duration duration) {
    const MonotonicTime end = now().mono + duration;
    for (int ticks = 0;; ++ticks) {
      ASSERT_LT(ticks, 1'000'000) << "a deadline that does not move";
      const MonotonicTime due = coordinator_->NextDeadline();
      if (due > end) break;
      if (due > now().mono) clock_.Advance(due - now().mono);
      coordinator_->Tick(now());
      Write();
    }
    clock_.Advance(end - now().mono);
    coordinator_->Tick(now());
    Write();
  }
  // Lets time pass while the coordinator does nothing, as if it were stopped.
  void Stop(Duration duration) { clock_.Advance(duration); }
  // Does the work of the driver's threads.
  void Write() {
    do {
      while (coordinator_->RunTransaction(now())) {
      }
      coordinator_->Tick(now());
      while (coordinator_->RunTables() || coordinator_->RunWakes()) {
      }
    } while (coordinator_->RunTransaction(now()));
  }

  SessionId Join(const WorkerRegistration& worker) {
    absl::StatusOr<SessionId> session =
        coordinator_->RegisterWorker(worker, now(), [] {});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.value_or(0);
  }
  SessionId Join(const std::string& name) { return Join(WorkerOf(name)); }
  absl::Status Beat(SessionId session, double capacity = 0,
                    StorageFailures failures = {}) {
    return coordinator_->Heartbeat(session, {capacity, nullptr}, {}, now(),
                                   std::move(failures));
  }
  // Takes all messages that wait for the worker.
  std::vector<WorkerMessage> Take(SessionId session) {
    std::vector<WorkerMessage> messages;
    while (true) {
      absl::StatusOr<std::optional<WorkerMessage>> next =
          coordinator_->NextForWorker(session);
      if (!next.ok() || !next->has_value()) return messages;
      messages.push_back(**next);
    }
  }
  // Returns the listing requested from the worker, if any.
  std::optional<IndexDirective> Asked(SessionId session) {
    std::optional<IndexDirective> asked;
    for (const WorkerMessage& message : Take(session))
      if (const auto* directive = std::get_if<IndexDirective>(&message))
        asked = *directive;
    return asked;
  }
  // The header's blocks have been put.
  absl::Status Upload(const IndexHeader& header) {
    absl::Status result = Internal("not answered");
    coordinator_->FinishUpload(header, now(),
                               [&](absl::Status status) { result = status; });
    Write();
    return result;
  }
  // The header's index is `index`, which is its one block.
  absl::Status Upload(const IndexHeader& header, const std::string& index) {
    EXPECT_TRUE(coordinator_->PutBlock(BlockOf(index), index, now()).ok());
    return Upload(header);
  }

  // Starts a CreateJob; its answer comes into the returned box.
  using Box = std::shared_ptr<std::optional<absl::StatusOr<CreatedJob>>>;
  Box Create(const JobSpec& spec, Duration patience = seconds(60)) {
    auto box = std::make_shared<std::optional<absl::StatusOr<CreatedJob>>>();
    last_wait_ =
        coordinator_->CreateJob(spec, now().mono + patience, now(),
                                [box](absl::StatusOr<CreatedJob> created) {
                                  EXPECT_FALSE(box->has_value()) << "twice";
                                  *box = std::move(created);
                                });
    Write();
    return box;
  }
  uint64_t last_wait() const { return last_wait_; }

  // Creates a job from scratch: lists with `session`'s worker.
  std::shared_ptr<const JobInfo> MakeJob(const JobSpec& spec, SessionId session,
                                         uint64_t samples = 1000,
                                         uint64_t shard_size = 10) {
    Box box = Create(spec);
    if (std::optional<IndexDirective> asked = Asked(session)) {
      EXPECT_TRUE(
          Upload(HeaderFor(*asked, "index", samples, shard_size), "index")
              .ok());
    }
    if (!box->has_value() || !(*box)->ok()) {
      ADD_FAILURE() << (box->has_value() ? (*box)->status().ToString()
                                         : "no answer");
      return nullptr;
    }
    return (**box)->info;
  }

  absl::Status Drain(const std::string& name, bool drain = true) {
    absl::Status result = Internal("not answered");
    coordinator_->DrainWorker(name, drain, now(),
                              [&](absl::Status status) { result = status; });
    Write();
    return result;
  }
  absl::Status DeleteJob(const std::string& name) {
    absl::Status result = Internal("not answered");
    coordinator_->DeleteJob(name,
                            [&](absl::Status status) { result = status; });
    Write();
    return result;
  }
  absl::Status DeleteDataset(const std::string& name) {
    absl::Status result = Internal("not answered");
    coordinator_->DeleteDataset(name,
                                [&](absl::Status status) { result = status; });
    Write();
    return result;
  }
  SessionId Open(const JobInfo& job, const std::string& consumer) {
    absl::StatusOr<SessionId> session = coordinator_->OpenConsumer(
        {job.plan_hash, "host", 1, consumer, ""}, now(), [] {});
    EXPECT_TRUE(session.ok()) << session.status();
    return session.value_or(0);
  }
  // Returns the summary of a finding; empty: there is none.
  std::string SummaryOf(const std::string& code) {
    for (const Finding& finding : coordinator_->Findings(now()))
      if (finding.code == code) return finding.summary;
    return {};
  }
  bool Found(const std::string& code) {
    for (const Finding& finding : coordinator_->Findings(now()))
      if (finding.code == code) return !finding.remedy.empty();
    return false;
  }

 private:
  CoordinatorConfig config_;
  std::shared_ptr<Store> store_;
  FakeClock clock_;
  uint64_t instance_ = 100;
  uint64_t last_wait_ = 0;
  std::unique_ptr<Coordinator> coordinator_;
};

// Returns why a call was refused, or "" if it was not.
inline std::string ErrorOf(const World::Box& box) {
  if (!box->has_value()) return "no answer";
  return (*box)->ok() ? "" : std::string(Message((*box)->status()));
}

// Returns the name of a shard's primary owner.
inline std::string FirstOwner(const Assignment& assignment, uint32_t shard) {
  const size_t at = 2 * size_t{shard} * assignment.owners_per_shard;
  const auto low = static_cast<unsigned char>(assignment.owners[at]);
  const auto high = static_cast<unsigned char>(assignment.owners[at + 1]);
  return assignment.workers[low + 256u * high].name;
}

// Returns the answer to a creation as text; "no answer": none has come.
inline std::string Text(const World::Box& box) {
  return box->has_value() ? (*box)->status().ToString() : "no answer";
}
inline absl::StatusCode Code(const World::Box& box) {
  return box->has_value() ? (*box)->status().code()
                          : absl::StatusCode::kUnknown;
}

}  // namespace leat::server
