// SPDX-License-Identifier: Apache-2.0
//
// The Fetcher with steps in device memory: which part a worker writes to, and
// which rows are copied at the end. Uses the fake driver.
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include "client/device/device_batches.h"
#include "client/device/device_memory.h"
#include "tests/client/device/fake_driver.h"
#include "tests/client/fetch/fetcher_fixture.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

class FetcherDeviceTest : public FetcherTest {
 protected:
  void SetUp() override {
    FakeDriver::Get().Reset();
    auto gpu = Gpu::Open(0);
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    gpu_ = *gpu;
    device_ = *DeviceBatches::Open(gpu_);
  }
  // Begins a step with one row of each worker's first shard, in turn, whose
  // streams share according to `uuids`: the GPU's memory for worker i, or only
  // this host's if empty.
  void BeginStep(const std::vector<std::string>& uuids, size_t rows) {
    const auto workers = static_cast<uint64_t>(uuids.size());
    Begin(static_cast<int>(workers));
    layout_ = std::make_shared<BatchLayout>(schema_, rows);
    pool_ = BatchPool::Create(layout_->bytes, 8, device_->maker());
    std::vector<uint64_t> samples;
    for (uint64_t i = 0; i < rows; ++i)
      samples.push_back(i % workers * kShardSize + i / workers);
    AddDeviceStep(samples);
    for (const Action& action : Do()) {
      v1::Opened opened;
      opened.set_memory_address("leat-test");
      const std::string& uuid = uuids[action.stream->worker];
      if (!uuid.empty()) opened.add_device_uuids(uuid);
      ASSERT_TRUE(
          *fetcher_->leases().Opened(*action.stream, opened, clock_.Now()));
      fetcher_->leases().SharingReady(*action.stream);
      EXPECT_TRUE(Answer(action).ok());
    }
    ExpectBatch();
    AddDeviceStep(samples);
  }
  void AddDeviceStep(const std::vector<uint64_t>& samples) {
    fetcher_->AddStep(
        std::make_shared<Step>(
            0, next_step_++,
            *RowMap::Create({}, static_cast<uint32_t>(samples.size())), samples,
            layout_, *pool_->Take()),
        clock_.Now());
    Share(fetcher_->decided().offers);
  }
  void Share(const std::vector<Offer>& offers) {
    for (const Offer& offer : offers) {
      shared_[offer.memory->id()] = offer.memory;
      fetcher_->leases().Shared(
          *offer.stream, offer.memory->id(),
          offer.memory->kind() == BatchMemory::Kind::kDevice
              ? device_answer_
              : absl::OkStatus());
    }
  }
  std::vector<Action> Do() {
    std::vector<Action> actions;
    for (bool more = true; more;) {
      const std::vector<Action> decided = Decide();
      Share(decided_.offers);
      MoveSteps();
      uploads_.insert(uploads_.end(), decided_.uploads.begin(),
                      decided_.uploads.end());
      actions.insert(actions.end(), decided.begin(), decided.end());
      more = fetcher_->TakeDirty();
    }
    return actions;
  }
  // Returns the steps to be uploaded; each once.
  std::vector<std::shared_ptr<Step>> Uploads() {
    EXPECT_TRUE(fetcher_->TakeDirty());
    Do();
    return std::exchange(uploads_, {});
  }
  // Writes as a worker that has mapped the memory; a fake GPU's memory is in
  // this process.
  void Write(const Action& action, size_t i, uint64_t value) {
    std::memcpy(
        shared_.at(action.memory_id)->data() + action.slots[i] * kRowBytes,
        &value, kRowBytes);
  }
  absl::Status SayPlaced(const Action& action, std::vector<uint32_t> rows) {
    v1::RowsResponse header = Header(action, rows);
    header.set_payload_bytes(0);
    header.set_placed(true);
    return Piece(*action.stream, header, {});
  }
  absl::Status Place(const Action& action) {
    for (size_t i = 0; i < action.slots.size(); ++i)
      Write(action, i, action.samples[i]);
    return SayPlaced(action, action.rows);
  }
  bool OnDevice(const Action& action) {
    return action.memory_id != 0 &&
           shared_.at(action.memory_id)->kind() == BatchMemory::Kind::kDevice;
  }
  // Expects that the head is complete, is uploaded, and is right on the device.
  void ExpectBatch() {
    ASSERT_TRUE(fetcher_->head().complete());
    EXPECT_FALSE(fetcher_->head().ready());
    const auto uploads = Uploads();
    ASSERT_EQ(uploads.size(), 1u);
    Do();
    EXPECT_TRUE(uploads_.empty()) << "each once";
    copied_ = 0;
    for (const Uploader::Copy& copy : DeviceBatches::CopiesOf(*uploads[0]))
      copied_ += copy.bytes / kRowBytes;
    std::mutex mu;
    std::condition_variable changed;
    std::optional<absl::Status> done;
    device_->Upload(*uploads[0], [&](const absl::Status& status) {
      const std::lock_guard<std::mutex> lock(mu);
      done = status;
      changed.notify_all();
    });
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return done.has_value(); });
    ASSERT_TRUE(done->ok()) << *done;
    fetcher_->Uploaded(*uploads[0], *done);
    ASSERT_TRUE(fetcher_->head().ready());
    ExpectHeadIsRight();
  }

  std::shared_ptr<const Gpu> gpu_;
  std::unique_ptr<DeviceBatches> device_;
  std::shared_ptr<const BatchLayout> layout_;
  std::map<uint64_t, std::shared_ptr<BatchMemory>> shared_;
  std::vector<std::shared_ptr<Step>> uploads_;
  absl::Status device_answer_;  // to an offer of device memory
  size_t copied_ = 0;           // rows
};

TEST_F(FetcherDeviceTest, EachWorkerWritesToThePartThatItCanReach) {
  BeginStep({gpu_->uuid(), "", std::string(32, '0')}, 9);
  size_t on_device = 0;
  for (const Action& action : Do()) {
    ASSERT_NE(action.memory_id, 0u);
    EXPECT_EQ(OnDevice(action), WorkerOf(action) == "w0");
    on_device += OnDevice(action) ? action.rows.size() : 0;
    EXPECT_TRUE(Place(action).ok());
  }
  EXPECT_EQ(on_device, 3u);
  ExpectBatch();
  EXPECT_EQ(copied_, 6u) << "what is on the device is not copied over";
}

TEST_F(FetcherDeviceTest, ABatchThatIsOnTheDeviceIsNotCopiedAtAll) {
  BeginStep({gpu_->uuid()}, 4);
  for (const Action& action : Do()) EXPECT_TRUE(Place(action).ok());
  ExpectBatch();
  EXPECT_EQ(copied_, 0u);
}

TEST_F(FetcherDeviceTest, AWorkerThatRefusesTheDevicesMemoryGetsTheHosts) {
  device_answer_ = Internal("cuMemMap: 801");
  BeginStep({gpu_->uuid()}, 4);
  for (const Action& action : Do()) {
    EXPECT_FALSE(OnDevice(action));
    EXPECT_TRUE(action.memory_id == 0 ? Answer(action).ok()
                                      : Place(action).ok());
  }
  ExpectBatch();
  EXPECT_EQ(copied_, 4u);
}

TEST_F(FetcherDeviceTest,
       AStepMovesAwayFromAWorkerThatIsGoneWithRowsOfBothParts) {
  BeginStep({gpu_->uuid(), ""}, 6);
  std::optional<Action> gone;
  for (const Action& action : Do()) {
    if (WorkerOf(action) != "w0") {
      EXPECT_TRUE(Place(action).ok());
      continue;
    }
    ASSERT_EQ(action.rows.size(), 3u);
    Write(action, 0, action.samples[0]);
    EXPECT_TRUE(SayPlaced(action, {action.rows[0]}).ok());
    gone = action;
  }
  ASSERT_TRUE(gone.has_value());
  Close(*gone, Unavailable("killed"));
  for (const Action& action : Do()) {
    EXPECT_EQ(WorkerOf(action), "w1");
    EXPECT_TRUE(action.memory_id == 0 ? Answer(action).ok()
                                      : Place(action).ok());
  }
  EXPECT_EQ(fetcher_->counters().moved_steps, 1u);
  Write(*gone, 1, ~0ull);  // late, and into memory that is not used
  Write(*gone, 2, ~0ull);
  ExpectBatch();
  EXPECT_EQ(copied_, 5u) << "the row that it did place moved on the device";
}

TEST_F(FetcherDeviceTest, AnUploadThatFailsIsTheStepsError) {
  BeginStep({""}, 2);
  for (const Action& action : Do()) EXPECT_TRUE(Place(action).ok());
  const auto uploads = Uploads();
  ASSERT_EQ(uploads.size(), 1u);
  fetcher_->Uploaded(*uploads[0], Internal("cuMemcpyHtoDAsync: 700"));
  EXPECT_FALSE(fetcher_->head().ready());
  EXPECT_THAT(std::string(Message(fetcher_->head().error)),
              HasSubstr("epoch 0 step 1: cuMemcpyHtoDAsync: 700"));
}

TEST_F(FetcherDeviceTest, TheForcedTransportCudaNeedsTheSameGpu) {
  config_.transport = Transport::kDevice;
  Begin(1);
  layout_ = std::make_shared<BatchLayout>(schema_, 2);
  pool_ = BatchPool::Create(layout_->bytes, 8, device_->maker());
  AddDeviceStep({0, 1});
  const std::vector<Action> actions = Do();
  ASSERT_EQ(actions.size(), 1u);
  v1::Opened opened;
  opened.set_memory_address("leat-test");
  opened.add_device_uuids(std::string(32, '0'));
  ASSERT_TRUE(
      *fetcher_->leases().Opened(*actions[0].stream, opened, clock_.Now()));
  fetcher_->leases().SharingReady(*actions[0].stream);
  EXPECT_EQ(fetcher_->leases().transport_error().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(fetcher_->leases().transport_error())),
              testing::AllOf(HasSubstr("LEAT_TRANSPORT=cuda: worker w0"),
                             HasSubstr("no GPU " + gpu_->uuid())));
}

}  // namespace
}  // namespace leat::client
