// SPDX-License-Identifier: Apache-2.0
//
// ClusterTest: the client against a fake coordinator and fake workers over real
// gRPC, with checks of the batches' content.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "client/leat/admin.h"
#include "client/leat/client.h"
#include "core/plan/plan.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/wire/messages.h"
#include "tests/client/engine/fake_cluster.h"

namespace leat::client {

inline constexpr absl::Duration kLong = absl::Seconds(30);

class ClusterTest : public ::testing::Test {
 protected:
  // Starts workers at `address`; empty: a unique one.
  void Start(int workers, const FakeJobOptions& options = {},
             const std::string& address = "", bool checksums = true) {
    info_ = MakeFakeJob(options);
    coordinator_ = std::make_unique<FakeCoordinator>(info_);
    std::vector<const FakeWorker*> refs;
    for (int i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<FakeWorker>(
          "w" + std::to_string(i), address.empty() ? UniqueAddress() : address,
          checksums));
      refs.push_back(workers_.back().get());
    }
    if (workers > 0) coordinator_->SetWorkers(refs);
    auto service = Service::Connect(
        {.address = coordinator_->address(), .timeout = kLong});
    ASSERT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    auto job = service_->GetJob("train");
    ASSERT_TRUE(job.ok()) << job.status();
    job_ = *std::move(job);
  }
  void Open(const BatchesOptions& options) {
    auto batches = job_->Open(options);
    ASSERT_TRUE(batches.ok()) << batches.status();
    batches_ = *std::move(batches);
  }
  absl::StatusOr<std::optional<Batch>> Next() {
    return batches_->Next(absl::Now() + kLong);
  }
  // Expects that the next batch is this one, and right in every byte.
  void ExpectNext(uint64_t epoch, uint64_t step) {
    auto batch = Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    ASSERT_TRUE(batch->has_value());
    EXPECT_EQ((*batch)->epoch(), epoch);
    EXPECT_EQ((*batch)->step(), step);
    ExpectRight(**batch);
  }
  void ExpectRight(const Batch& batch) {
    auto samples = *batches_->Samples(batch.epoch(), batch.step());
    std::erase(samples, kNoSample);
    ExpectHolds(batch, samples);
  }
  static void ExpectHolds(const Batch& batch,
                          const std::vector<uint64_t>& samples) {
    ASSERT_EQ(batch.rows(), samples.size());
    ASSERT_EQ(batch.tensors().size(), 2u);
    const Tensor& image = batch.tensors()[0];
    const Tensor& label = batch.tensors()[1];
    EXPECT_EQ(image.name, "image");
    EXPECT_EQ(image.dtype, "uint8");
    EXPECT_EQ(label.dtype, "int32");
    EXPECT_EQ(image.bytes, samples.size() * 90);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(label.data) % 64, 0u);
    size_t wrong = 0;
    for (size_t row = 0; row < samples.size(); ++row) {
      for (size_t i = 0; i < 90; ++i)
        wrong += image.data[row * 90 + i] != ImageByte(samples[row], i);
      int32_t value = 0;
      std::memcpy(&value, label.data + row * 4, 4);
      wrong += value != Label(samples[row]);
    }
    EXPECT_EQ(wrong, 0u);
  }
  void ExpectEnd() {
    const auto batch = Next();
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_FALSE(batch->has_value());
  }

  JobInfo info_;
  std::unique_ptr<FakeCoordinator> coordinator_;
  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<Job> job_;
  std::unique_ptr<Batches> batches_;
};

}  // namespace leat::client
