// SPDX-License-Identifier: Apache-2.0
//
// Batches' memory on a device, with the fake driver: its device memory is
// memory of this process.
#include "client/device/device_memory.h"

#include <sys/mman.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "client/batch/batch_pool.h"
#include "client/device/uploader.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/device/fake_driver.h"

namespace leat::client {
namespace {

using ::testing::HasSubstr;

constexpr size_t kBytes = 3 * 4096 + 100;

// A door on a stream: work queued after it waits until it is opened.
class Door {
 public:
  explicit Door(const Gpu& gpu) : gpu_(gpu) {
    const Gpu::Scope scope(gpu);
    EXPECT_EQ(gpu.driver().StreamCreate(&stream_, cuda::kStreamNonBlocking),
              cuda::Result::kSuccess);
    EXPECT_EQ(gpu.driver().LaunchHostFunc(stream_, Wait, this),
              cuda::Result::kSuccess);
  }
  ~Door() {
    Open();
    const Gpu::Scope scope(gpu_);
    gpu_.driver().StreamSynchronize(stream_);
    gpu_.driver().StreamDestroy(stream_);
  }
  void Open() {
    const std::lock_guard<std::mutex> lock(mu_);
    open_ = true;
    opened_.notify_all();
  }
  cuda::Stream stream() const { return stream_; }

 private:
  static void Wait(void* self) {
    auto* door = static_cast<Door*>(self);
    std::unique_lock<std::mutex> lock(door->mu_);
    door->opened_.wait(lock, [door] { return door->open_; });
  }
  const Gpu& gpu_;
  cuda::Stream stream_ = nullptr;
  std::mutex mu_;
  std::condition_variable opened_;
  bool open_ = false;
};

DeviceMemory& DeviceOf(const BatchPool::Buffer& buffer) {
  return static_cast<DeviceMemory&>(*buffer.memory());
}

// Returns nullopt if CUDA fails.
std::optional<std::string> TryRead(const Gpu& gpu, const std::byte* from,
                                   size_t bytes) {
  std::string text(bytes, '\0');
  const Gpu::Scope scope(gpu);
  if (!scope.status().ok() ||
      gpu.driver().MemcpyDtoHAsync(
          text.data(), reinterpret_cast<cuda::DevicePtr>(from), bytes,
          gpu.stream()) != cuda::Result::kSuccess ||
      gpu.driver().StreamSynchronize(gpu.stream()) != cuda::Result::kSuccess)
    return std::nullopt;
  return text;
}

std::string Read(const Gpu& gpu, const std::byte* from, size_t bytes) {
  return TryRead(gpu, from, bytes).value_or("CUDA fails");
}

class DeviceMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    FakeDriver::Get().Reset();
    absl::StatusOr<std::shared_ptr<const Gpu>> gpu = Gpu::Open(0);
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    gpu_ = *std::move(gpu);
  }
  std::shared_ptr<BatchPool> Pool(size_t max_free) {
    return BatchPool::Create(kBytes, max_free, [this](size_t bytes) {
      return DeviceMemory::Make(gpu_, bytes);
    });
  }
  void TearDown() override {
    gpu_.reset();
    FakeDriver::Get().ExpectClean();
  }
  std::shared_ptr<const Gpu> gpu_;
};

TEST(Gpu, IsNotThereWithoutADriver) {
  cuda::LibrarySearch search;
  search.cuda_library = "/no/such/libcuda.so.1";
  const char* const before = std::getenv("LEAT_CUDA_LIBRARY");
  const std::string kept = before != nullptr ? before : "";
  setenv("LEAT_CUDA_LIBRARY", search.cuda_library.c_str(), 1);
  const absl::StatusOr<std::shared_ptr<const Gpu>> gpu = Gpu::Open(0);
  setenv("LEAT_CUDA_LIBRARY", kept.c_str(), 1);
  EXPECT_EQ(gpu.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(gpu.status())),
              testing::AllOf(HasSubstr("device 0: "),
                             HasSubstr("/no/such/libcuda.so.1")));
}

TEST_F(DeviceMemoryTest, AnOrdinalBeyondTheDevicesIsNamed) {
  const absl::StatusOr<std::shared_ptr<const Gpu>> gpu = Gpu::Open(1000);
  EXPECT_EQ(gpu.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(gpu.status())),
              HasSubstr("device 1000: this process sees "));
}

TEST_F(DeviceMemoryTest, AUuidIsThirtyTwoDigits) {
  EXPECT_EQ(gpu_->uuid().size(), 32u);
  EXPECT_EQ(gpu_->uuid().find_first_not_of("0123456789abcdef"),
            std::string::npos);
}

TEST_F(DeviceMemoryTest, AnotherProcessMapsItByItsDescriptor) {
  const auto made = DeviceMemory::Make(gpu_, kBytes);
  ASSERT_TRUE(made.ok()) << made.status();
  BatchMemory& memory = **made;
  EXPECT_EQ(memory.kind(), BatchMemory::Kind::kDevice);
  EXPECT_EQ(memory.device_uuid(), gpu_->uuid());
  ASSERT_GE(memory.fd(), 0);
  EXPECT_GE(memory.mapped_bytes(), kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data()) % 64, 0u);
  const Gpu::Scope scope(*gpu_);
  const cuda::Driver& cuda = gpu_->driver();
  cuda::AllocationHandle handle = 0;
  ASSERT_EQ(cuda.MemImportFromShareableHandle(
                &handle, reinterpret_cast<void*>(intptr_t{memory.fd()}),
                cuda::HandleType::kPosixFileDescriptor),
            cuda::Result::kSuccess);
  cuda::DevicePtr there = 0;
  const size_t bytes = memory.mapped_bytes();
  ASSERT_EQ(cuda.MemAddressReserve(&there, bytes, 0, 0, 0),
            cuda::Result::kSuccess);
  ASSERT_EQ(cuda.MemMap(there, bytes, 0, handle, 0), cuda::Result::kSuccess);
  const cuda::AccessDescription access{.location = {.id = 0}};
  ASSERT_EQ(cuda.MemSetAccess(there, bytes, &access, 1),
            cuda::Result::kSuccess);
  ASSERT_EQ(cuda.MemsetD8Async(there, 0x5A, kBytes, gpu_->stream()),
            cuda::Result::kSuccess);
  EXPECT_EQ(Read(*gpu_, memory.data(), kBytes), std::string(kBytes, 0x5A));
  cuda.MemUnmap(there, bytes);
  cuda.MemAddressFree(there, bytes);
  cuda.MemRelease(handle);
}

// A driver refuses other sizes, and unmapped memory cannot be shared.
TEST_F(DeviceMemoryTest, IsSharedInTheDriversUnits) {
  for (const size_t unit : {size_t{64} << 10, size_t{2} << 20, size_t{4} << 20})
    for (const size_t bytes : {kBytes, unit - 1, unit, unit + 1}) {
      FakeDriver::Get().set("granularity", unit);
      const auto made = DeviceMemory::Make(gpu_, bytes);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_GE((*made)->fd(), 0) << bytes << " of " << unit;
      EXPECT_EQ((*made)->mapped_bytes(), (bytes + unit - 1) / unit * unit);
    }
}

TEST_F(DeviceMemoryTest, CopyFromTakesBothParts) {
  const auto a = DeviceMemory::Make(gpu_, kBytes),
             b = DeviceMemory::Make(gpu_, kBytes);
  ASSERT_TRUE(a.ok() && b.ok());
  const std::string host(200, 'h'), device(200, 'd');
  (*a)->Write(100, std::as_bytes(std::span(host)));
  {
    const Gpu::Scope scope(*gpu_);
    ASSERT_EQ(gpu_->driver().MemcpyHtoDAsync(
                  reinterpret_cast<cuda::DevicePtr>((*a)->data() + 100),
                  device.data(), device.size(), gpu_->stream()),
              cuda::Result::kSuccess);
  }
  (*b)->CopyFrom(**a, 100, 200);
  EXPECT_EQ(Read(*gpu_, (*b)->data() + 100, 200), device);
  auto& memory = static_cast<DeviceMemory&>(**b);
  EXPECT_EQ(std::memcmp(memory.host_part()->data() + 100, host.data(), 200), 0);
  EXPECT_TRUE(memory.status().ok());
}

TEST_F(DeviceMemoryTest, UploadsAreDoneWhenTheySaySo) {
  auto uploader = Uploader::Create(gpu_);
  ASSERT_TRUE(uploader.ok()) << uploader.status();
  const auto made = DeviceMemory::Make(gpu_, kBytes);
  ASSERT_TRUE(made.ok());
  const auto& memory = static_cast<const DeviceMemory&>(**made);
  std::mutex mu;
  std::condition_variable changed;
  int done = 0;
  for (int i = 0; i < 20; ++i) {
    std::memset(memory.host_part()->data() + i * 100, 'a' + i, 100);
    const auto check = [&, i](const absl::Status& status) {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(Read(*gpu_, memory.data() + i * 100, 100),
                std::string(100, static_cast<char>('a' + i)));
      const std::lock_guard<std::mutex> lock(mu);
      ++done;
      changed.notify_all();
    };
    (*uploader)->Add(
        {{{memory.host_part()->data() + i * 100, memory.data() + i * 100, 100}},
         check});
  }
  std::unique_lock<std::mutex> lock(mu);
  changed.wait(lock, [&] { return done == 20; });
}

TEST_F(DeviceMemoryTest, ABatchGivenBackOnAStreamIsNotReusedBeforeItsWork) {
  const std::shared_ptr<BatchPool> pool = Pool(2);
  Door door(*gpu_);
  std::byte* first;
  {
    const auto buffer = pool->Take();
    ASSERT_TRUE(buffer.ok()) << buffer.status();
    first = buffer->data();
    ASSERT_TRUE(DeviceOf(*buffer).ReleaseAfter(door.stream()).ok());
  }
  EXPECT_EQ(pool->free(), 1u);
  auto second = pool->Take();
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second->data(), first) << "the stream still uses it";
  door.Open();
  {
    const Gpu::Scope scope(*gpu_);
    gpu_->driver().StreamSynchronize(door.stream());
  }
  const auto third = pool->Take();
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->data(), first);
}

TEST_F(DeviceMemoryTest, ATakerWaitsWhenStreamsHaveTooMuch) {
  const std::shared_ptr<BatchPool> pool = Pool(1);
  auto door = std::make_unique<Door>(*gpu_);
  std::vector<BatchPool::Buffer> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(*pool->Take());
  for (BatchPool::Buffer& buffer : buffers)
    ASSERT_TRUE(DeviceOf(buffer).ReleaseAfter(door->stream()).ok());
  buffers.clear();
  EXPECT_EQ(pool->free(), 3u);
  std::thread opener([&] { door->Open(); });
  const auto taken = pool->Take();
  opener.join();
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_EQ(pool->free(), 2u) << "none was made anew";
}

TEST_F(DeviceMemoryTest, ADeviceWithoutMemoryNamesTheBytes) {
  const size_t bytes = size_t{1} << 45;
  const auto made = DeviceMemory::Make(gpu_, bytes);
  EXPECT_EQ(made.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(made.status())),
              testing::AllOf(HasSubstr(fmt::format("{} bytes", bytes)),
                             HasSubstr("device 0"), HasSubstr("are free")));
}

// Runs one life cycle in which each call that can fail does so in turn. Returns
// the number of calls before memory is released.
uint64_t LiveOnce(bool* whole) {
  *whole = false;
  const auto calls = [] { return FakeDriver::Get().calls("*"); };
  absl::StatusOr<std::shared_ptr<const Gpu>> gpu = Gpu::Open(0);
  if (!gpu.ok()) {
    EXPECT_EQ(gpu.status().code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_THAT(std::string(Message(gpu.status())), HasSubstr("device 0: cu"));
    return calls();
  }
  auto uploader = Uploader::Create(*gpu);
  if (!uploader.ok()) {
    EXPECT_THAT(std::string(Message(uploader.status())), HasSubstr("cu"));
    return calls();
  }
  const std::shared_ptr<BatchPool> pool = BatchPool::Create(
      kBytes, 2, [&](size_t bytes) { return DeviceMemory::Make(*gpu, bytes); });
  auto a = pool->Take();
  auto b = pool->Take();
  if (!a.ok() || !b.ok()) {
    const absl::Status& status = a.ok() ? b.status() : a.status();
    EXPECT_THAT(std::string(Message(status)), HasSubstr("bytes"));
    return calls();
  }
  std::memset(DeviceOf(*a).host_part()->data(), 7, kBytes);
  std::mutex mu;
  std::condition_variable changed;
  std::optional<absl::Status> uploaded;
  const auto note = [&](const absl::Status& status) {
    const std::lock_guard<std::mutex> lock(mu);
    uploaded = status;
    changed.notify_all();
  };
  (*uploader)->Add(
      {{{DeviceOf(*a).host_part()->data(), a->data(), kBytes}}, note});
  {
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return uploaded.has_value(); });
  }
  b->memory()->CopyFrom(*a->memory(), 0, kBytes);
  const absl::Status released = DeviceOf(*a).ReleaseAfter((*gpu)->stream());
  bool good = uploaded->ok() && DeviceOf(*b).status().ok() && released.ok();
  const std::optional<std::string> there = TryRead(**gpu, b->data(), kBytes);
  if (good && there) {
    EXPECT_TRUE(*there == std::string(kBytes, 7));
  }
  good = good && there;
  const uint64_t lived = calls();
  a = BatchPool::Buffer();
  b = BatchPool::Buffer();
  const auto again = pool->Take();
  EXPECT_TRUE(again.ok() || !good) << again.status();
  *whole = good && again.ok();
  return lived;
}

TEST(DeviceFaults, EachCallThatFailsIsAnErrorOrMendedAndNothingLeaks) {
  FakeDriver& fake = FakeDriver::Get();
  fake.Reset();
  bool whole = false;
  const uint64_t lived = LiveOnce(&whole);
  ASSERT_TRUE(whole);
  fake.ExpectClean();
  const uint64_t calls = fake.calls("*");
  ASSERT_GT(calls, 30u);
  int mended = 0;
  for (const cuda::Result result :
       {cuda::Result::kOutOfMemory, cuda::Result::kNotSupported})
    for (uint64_t call = 1; call <= calls; ++call) {
      SCOPED_TRACE(
          fmt::format("call {} returns {}", call, static_cast<int>(result)));
      fake.Reset();
      fake.fail("*", call, 0, static_cast<int>(result));
      LiveOnce(&whole);
      mended += whole ? 1 : 0;
      if (call < lived) {
        fake.ExpectClean();
      } else {  // memory that cannot be released is lost
        EXPECT_LE(fake.count("*"), 6);
      }
    }
  EXPECT_GT(mended, 0) << "memory that cannot be shared, or pinned, is used so";
}

TEST(DeviceFaults, APoisonedContextIsAnErrorAndEndsNothingElse) {
  FakeDriver& fake = FakeDriver::Get();
  fake.Reset();
  bool whole = false;
  LiveOnce(&whole);
  const uint64_t calls = fake.calls("*");
  for (uint64_t call = 1; call <= calls; ++call) {
    SCOPED_TRACE(fmt::format("call {}", call));
    fake.Reset();
    fake.fail("*", call, 1, static_cast<int>(cuda::Result::kIllegalAddress));
    LiveOnce(&whole);
    EXPECT_FALSE(whole && call < calls / 2);
  }
  fake.Reset();
}

}  // namespace
}  // namespace leat::client
