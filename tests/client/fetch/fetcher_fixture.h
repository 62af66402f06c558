// SPDX-License-Identifier: Apache-2.0
//
// FetcherTest: a Fetcher with a clock under the test's control and no network.
#pragma once

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "client/fetch/fetcher.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::client {

using Action = StreamMessage;
using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr uint64_t kSamples = 1000;
inline constexpr uint64_t kShardSize = 10;
inline constexpr size_t kRowBytes = 8;  // the sample's number

// Workers "w7", ... by number; shard s is owned by worker s mod n of them, then
// the next.
inline v1::Assignment AssignmentOf(const std::vector<int>& numbers,
                                   uint64_t version = 1) {
  v1::Assignment assignment;
  assignment.set_dataset_id("d");
  assignment.set_instance(7);
  assignment.set_version(version);
  for (const int i : numbers) {
    v1::WorkerRef* worker = assignment.add_workers();
    worker->set_name("w" + std::to_string(i));
    worker->set_address("address" + std::to_string(i));
  }
  const size_t per_shard = std::min<size_t>(numbers.size(), 2);
  assignment.set_owners_per_shard(static_cast<uint32_t>(per_shard));
  for (size_t shard = 0; shard < kSamples / kShardSize; ++shard)
    for (size_t i = 0; i < per_shard; ++i) {
      const size_t owner = (shard + i) % numbers.size();
      assignment.mutable_owners()->push_back(static_cast<char>(owner));
      assignment.mutable_owners()->push_back(static_cast<char>(owner >> 8));
    }
  return assignment;
}

inline v1::Assignment MakeAssignment(int workers, uint64_t version = 1) {
  std::vector<int> numbers(static_cast<size_t>(workers));
  std::iota(numbers.begin(), numbers.end(), 0);
  return AssignmentOf(numbers, version);
}

class FetcherTest : public ::testing::Test {
 protected:
  FetcherTest() : shards_(*ShardTable::Uniform(kSamples, kShardSize)) {
    config_.row_timeout = seconds(60);
  }

  void Begin(int workers) {
    fetcher_.emplace(config_, shards_);
    if (workers > 0) SetWorkers(workers, 1);
  }
  void SetWorkers(int workers, uint64_t version) {
    fetcher_->SetTable(*AssignmentTable::FromProto(
        MakeAssignment(workers, version), "d", shards_.num_shards()));
  }
  void SetWorkers(const std::vector<int>& numbers) {
    fetcher_->SetTable(*AssignmentTable::FromProto(
        AssignmentOf(numbers, ++version_), "d", shards_.num_shards()));
  }
  const WorkerEndpoint& EndpointOf(const std::string& name) const {
    for (const WorkerEndpoint& endpoint : fetcher_->table().endpoints())
      if (endpoint.ref.name == name) return endpoint;
    ADD_FAILURE() << name;
    return fetcher_->table().endpoints().front();
  }
  void AddStep(std::vector<uint64_t> samples) {
    const auto rows = static_cast<uint32_t>(samples.size());
    auto layout = std::make_shared<BatchLayout>(schema_, rows);
    pool_ = BatchPool::Create(layout->bytes, 4);
    fetcher_->AddStep(
        std::make_shared<Step>(0, next_step_++, *RowMap::Create({}, rows),
                               samples, layout, *pool_->Take()),
        clock_.Now());
  }
  // Returns the messages of the Fetcher's decisions; the rest is in `decided_`.
  std::vector<Action> Decide() {
    decided_ = fetcher_->Decide(clock_.Now());
    decided_.released.clear();
    return decided_.messages;
  }
  MonotonicTime due() const { return decided_.due; }
  static const std::string& Worker(const Fetcher& fetcher,
                                   const Action& action) {
    return fetcher.table().endpoints()[action.stream->worker].ref.name;
  }
  std::string WorkerOf(const Action& action) const {
    return Worker(*fetcher_, action);
  }

  v1::RowsResponse Header(const Action& action,
                          const std::vector<uint32_t>& rows) {
    v1::RowsResponse header;
    header.set_request_id(action.request_id);
    header.set_group_id(next_group_++);
    header.mutable_rows()->Add(rows.begin(), rows.end());
    header.set_payload_bytes(rows.size() * kRowBytes);
    return header;
  }
  static uint64_t SampleOf(const Action& action, uint32_t row) {
    for (size_t i = 0; i < action.rows.size(); ++i)
      if (action.rows[i] == row) return action.samples[i];
    return ~0ull;
  }
  // Delivers one piece, as the engine does.
  absl::Status Piece(WorkerStream& stream, const v1::RowsResponse& header,
                     std::span<const uint64_t> samples) {
    const auto bytes = std::as_bytes(samples);
    auto arrival = fetcher_->deliveries().Begin(stream, header, bytes.size(),
                                                clock_.Now());
    if (!arrival.ok()) return arrival.status();
    if (arrival->frame) {
      const FrameGroup& group = *arrival->frame->group;
      group.step->Scatter(*group.memory, group.indices, group.mine,
                          arrival->frame->offset, bytes);
      arrival->move =
          fetcher_->deliveries().End(stream, *arrival->frame, clock_.Now());
    }
    if (arrival->move) Move(*arrival->move);
    return absl::OkStatus();
  }
  void Move(MovePiece& piece) {
    do piece.step->CopyRows(*piece.from, *piece.to, piece.indices, piece.mine);
    while (!fetcher_->deliveries().FinishMove(piece, clock_.Now()));
  }
  // Gives steps other memory, as an engine would.
  void MoveSteps() {
    for (const auto& step : decided_.to_move) {
      BatchPool::Buffer buffer = *pool_->Take();
      if (auto piece = fetcher_->leases().MoveToNewBuffer(step, &buffer))
        Move(*piece);
    }
  }
  absl::Status Answer(const Action& action, const std::vector<uint32_t>& rows) {
    std::vector<uint64_t> samples;
    for (const uint32_t row : rows) samples.push_back(SampleOf(action, row));
    return Piece(*action.stream, Header(action, rows), samples);
  }
  absl::Status Answer(const Action& action) {
    return Answer(action, action.rows);
  }
  void Fail(const Action& action, absl::StatusCode code,
            const std::string& text) {
    v1::RowsResponse header = Header(action, action.rows);
    header.set_payload_bytes(0);
    header.mutable_error()->set_code(static_cast<int32_t>(code));
    header.mutable_error()->set_message(text);
    EXPECT_TRUE(Piece(*action.stream, header, {}).ok());
  }
  // Fails all rows of the request, with the worker's report of the fault.
  absl::Status FailAs(const Action& action, v1::Fault fault,
                      absl::StatusCode code, const std::string& text,
                      uint64_t sample = 0) {
    v1::RowsResponse header = Header(action, action.rows);
    header.set_payload_bytes(0);
    header.mutable_error()->set_code(static_cast<int32_t>(code));
    header.mutable_error()->set_message(text);
    header.mutable_error()->set_fault(fault);
    header.mutable_error()->set_sample(sample);
    return Piece(*action.stream, header, {});
  }
  void Close(const Action& action, const absl::Status& status) {
    const std::shared_ptr<WorkerStream> stream = action.stream;
    fetcher_->Closed(*stream, status, clock_.Now());
  }
  // Expects every sample of the head in its place.
  void ExpectHeadIsRight() {
    ASSERT_TRUE(fetcher_->head().complete());
    const auto step = fetcher_->PopHead(clock_.Now());
    for (size_t i = 0; i < step->samples.size(); ++i) {
      uint64_t sample = 0;
      std::memcpy(&sample, step->memory->buffer.data() + i * kRowBytes,
                  kRowBytes);
      EXPECT_EQ(sample, step->samples[i]) << "row " << i;
    }
  }

  const ShardTable shards_;
  const BatchSchema schema_{{Field{"sample", DType::kInt64, {}, kRowBytes}}};
  FetcherConfig config_;
  FakeClock clock_;
  std::optional<Fetcher> fetcher_;
  Decisions decided_;
  std::shared_ptr<BatchPool> pool_;
  uint64_t next_step_ = 0;
  uint64_t next_group_ = 1;
  uint64_t version_ = 1;
};

}  // namespace leat::client
