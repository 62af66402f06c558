// SPDX-License-Identifier: Apache-2.0
//
// Tests what other tests rely on in the fake driver: order, real copies, memory
// shared across processes, and detection of misuse.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <functional>
#include <vector>

#include "core/status.h"
#include "cuda/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/fake_library.h"

namespace leat::cuda {
namespace {

using ::testing::HasSubstr;

constexpr unsigned char kImage[8] = {0x50, 0xed, 0x55, 0xba};

// params: address, value. Each thread stores one byte.
void FillKernel(const uint64_t* params, unsigned threads) {
  std::memset(reinterpret_cast<void*>(params[0]), static_cast<int>(params[1]),
              threads);
}

class Fake : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = LoadDriver(fake_.search);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    driver_ = *loaded;
    ASSERT_EQ(d().Init(0), Result::kSuccess);
    ASSERT_EQ(d().DevicePrimaryCtxRetain(&context_, 0), Result::kSuccess);
    ASSERT_EQ(d().CtxSetCurrent(context_), Result::kSuccess);
  }
  void TearDown() override { d().CtxSetCurrent(nullptr); }
  const Driver& d() const { return *driver_; }
  DevicePtr Allocate(size_t bytes) {
    DevicePtr memory = 0;
    EXPECT_EQ(d().MemAlloc(&memory, bytes), Result::kSuccess);
    return memory;
  }
  Stream NewStream() {
    Stream stream = nullptr;
    EXPECT_EQ(d().StreamCreate(&stream, kStreamNonBlocking), Result::kSuccess);
    return stream;
  }

  leat::testing::FakeCuda fake_;
  std::shared_ptr<const Driver> driver_;
  Context context_ = nullptr;
};

TEST_F(Fake, BytesGoToTheDeviceAndBack) {
  const DevicePtr memory = Allocate(1000);
  const Stream stream = NewStream();
  std::vector<uint8_t> there(1000, 7), back(1000);
  EXPECT_EQ(d().MemcpyHtoDAsync(memory, there.data(), 1000, stream),
            Result::kSuccess);
  EXPECT_EQ(d().MemsetD8Async(memory + 10, 9, 5, stream), Result::kSuccess);
  EXPECT_EQ(d().MemcpyDtoHAsync(back.data(), memory, 1000, stream),
            Result::kSuccess);
  EXPECT_EQ(d().StreamSynchronize(stream), Result::kSuccess);
  EXPECT_EQ(back[9], 7);
  EXPECT_EQ(back[12], 9);
  EXPECT_EQ(fake_.count("pageable_copies"), 2);
  EXPECT_EQ(d().StreamDestroy(stream), Result::kSuccess);
  EXPECT_EQ(d().MemFree(memory), Result::kSuccess);
  EXPECT_EQ(d().DevicePrimaryCtxRelease(0), Result::kSuccess);
  EXPECT_EQ(fake_.count("allocations") + fake_.count("streams"), 0);
  EXPECT_EQ(fake_.violations(), 0u) << fake_.FirstViolation();
}

TEST_F(Fake, AWriteBehindALargeBlockEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The fake driver maps allocations of this size, so no allocator checks them.
  constexpr size_t kBytes = size_t{1} << 20;
  const DevicePtr memory = Allocate(kBytes);
  auto* const bytes = reinterpret_cast<volatile uint8_t*>(memory);
  bytes[kBytes - 1] = 1;
  EXPECT_DEATH(bytes[kBytes] = 1, "");
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  const DevicePtr odd = Allocate(kBytes + 100);
  auto* const odd_bytes = reinterpret_cast<volatile uint8_t*>(odd);
  EXPECT_DEATH(odd_bytes[kBytes + 100] = 1, "AddressSanitizer");
  EXPECT_EQ(d().MemFree(odd), Result::kSuccess);
#endif
#endif
  EXPECT_EQ(d().MemFree(memory), Result::kSuccess);
}

TEST_F(Fake, NothingRunsWhileHeldAndEventsSayWhenItDid) {
  const DevicePtr memory = Allocate(64);
  const Stream stream = NewStream();
  Event event = nullptr;
  ASSERT_EQ(d().EventCreate(&event, kEventDisableTiming), Result::kSuccess);
  EXPECT_EQ(d().EventQuery(event), Result::kSuccess);  // never recorded
  fake_.hold();
  EXPECT_EQ(d().MemsetD8Async(memory, 1, 64, stream), Result::kSuccess);
  EXPECT_EQ(d().EventRecord(event, stream), Result::kSuccess);
  EXPECT_EQ(d().EventQuery(event), Result::kNotReady);
  EXPECT_EQ(d().StreamQuery(stream), Result::kNotReady);
  fake_.release();
  EXPECT_EQ(d().EventSynchronize(event), Result::kSuccess);
  EXPECT_EQ(d().EventQuery(event), Result::kSuccess);
  EXPECT_EQ(d().EventDestroy(event), Result::kSuccess);
}

TEST_F(Fake, AStreamWaitsForTheMarkThatWasRecordedLast) {
  const DevicePtr memory = Allocate(8);
  void* host = nullptr;
  ASSERT_EQ(d().MemHostAlloc(&host, 8, kHostAllocPortable), Result::kSuccess);
  const Stream writer = NewStream(), reader = NewStream();
  Event event = nullptr;
  ASSERT_EQ(d().EventCreate(&event, 0), Result::kSuccess);
  for (int i = 0; i < 200; ++i) {
    const auto value = static_cast<unsigned char>(i);
    d().MemsetD8Async(memory, value, 8, writer);
    d().EventRecord(event, writer);
    d().StreamWaitEvent(reader, event, 0);
    d().MemcpyDtoHAsync(host, memory, 8, reader);
    ASSERT_EQ(d().StreamSynchronize(reader), Result::kSuccess);
    ASSERT_EQ(static_cast<unsigned char*>(host)[7], value);
  }
  EXPECT_EQ(fake_.count("pageable_copies"), 0);
  EXPECT_EQ(d().MemFreeHost(host), Result::kSuccess);
}

TEST_F(Fake, AKernelsParametersAreThoseAtItsLaunch) {
  fake_.kernel("fill", 2, FillKernel);
  Module module = nullptr;
  Function function = nullptr;
  ASSERT_EQ(d().ModuleLoadData(&module, kImage), Result::kSuccess);
  EXPECT_EQ(d().ModuleGetFunction(&function, module, "absent"),
            Result::kNotFound);
  ASSERT_EQ(d().ModuleGetFunction(&function, module, "fill"), Result::kSuccess);
  DevicePtr memory = Allocate(64);
  uint64_t value = 42;
  void* parameters[] = {&memory, &value};
  const Stream stream = NewStream();
  fake_.hold();
  EXPECT_EQ(d().LaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, stream, parameters,
                             nullptr),
            Result::kSuccess);
  value = 1;
  fake_.release();
  EXPECT_EQ(d().StreamSynchronize(stream), Result::kSuccess);
  EXPECT_EQ(*reinterpret_cast<uint8_t*>(memory + 63), 42);
  EXPECT_EQ(d().ModuleUnload(module), Result::kSuccess);
  EXPECT_EQ(d().LaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters,
                             nullptr),
            Result::kInvalidHandle);
  EXPECT_EQ(fake_.violations(), 1u);
}

TEST_F(Fake, MisuseIsRefusedAndWrittenDown) {
  const Stream stream = NewStream();
  const DevicePtr memory = Allocate(16);
  std::array<char, 64> host{};
  const std::function<Result()> kMisuses[] = {
      [&] { return d().MemcpyHtoDAsync(memory, host.data(), 17, stream); },
      [&] { return d().MemcpyDtoHAsync(host.data(), memory + 8, 9, stream); },
      [&] { return d().MemsetD8Async(memory + 16, 0, 1, stream); },
      [&] { return d().MemFree(memory + 1); },
      [&] { return d().MemFreeHost(host.data()); },
      [&] { return d().MemHostUnregister(host.data()); },
      [&] { return d().EventDestroy(reinterpret_cast<Event>(0x5000)); },
      [&] { return d().StreamSynchronize(reinterpret_cast<Stream>(0x5000)); },
      [&] { return d().ModuleUnload(reinterpret_cast<Module>(0x5000)); },
      [&] { return d().MemRelease(0x5000); },
      [&] { return d().MemUnmap(0x5000, 1); },
      [&] { return d().MemAddressFree(0x5000, 1); },
  };
  uint64_t expected = 0;
  for (const auto& misuse : kMisuses) {
    EXPECT_NE(misuse(), Result::kSuccess) << expected;
    EXPECT_EQ(fake_.violations(), ++expected) << fake_.FirstViolation();
  }
  d().MemFree(memory);
  EXPECT_NE(d().MemFree(memory), Result::kSuccess);
  d().StreamDestroy(stream);
  EXPECT_NE(d().StreamDestroy(stream), Result::kSuccess);
}

TEST_F(Fake, WithoutACurrentContextNothingIsMade) {
  ASSERT_EQ(d().CtxSetCurrent(nullptr), Result::kSuccess);
  DevicePtr memory = 0;
  Stream stream = nullptr;
  EXPECT_EQ(d().MemAlloc(&memory, 1), Result::kInvalidContext);
  EXPECT_EQ(d().StreamCreate(&stream, 0), Result::kInvalidContext);
}

TEST_F(Fake, AContextReleasedWithThingsInItIsTold) {
  Allocate(16);
  EXPECT_EQ(d().DevicePrimaryCtxRelease(0), Result::kSuccess);
  EXPECT_THAT(fake_.FirstViolation(), HasSubstr("still live"));
}

TEST_F(Fake, MemoryIsBoundedAndComesBack) {
  fake_.set("memory", 10 << 20);
  const auto free_bytes = [this] {
    size_t free = 0, total = 0;
    EXPECT_EQ(d().MemGetInfo(&free, &total), Result::kSuccess);
    return free;
  };
  const DevicePtr small = Allocate(600);
  EXPECT_EQ(free_bytes(), (10u << 20) - 1024);
  const DevicePtr large = Allocate((6 << 20) + 1);  // four pages of 2 MiB
  EXPECT_EQ(free_bytes(), (2u << 20) - 1024);
  DevicePtr more = 0;
  EXPECT_EQ(d().MemAlloc(&more, 1 << 20), Result::kOutOfMemory);
  EXPECT_EQ(d().MemFree(large), Result::kSuccess);
  EXPECT_EQ(d().MemFree(small), Result::kSuccess);
  EXPECT_EQ(d().MemAlloc(&more, 10 << 20), Result::kSuccess);
}

TEST_F(Fake, AnOrderedErrorComesOnceUnlessItPoisons) {
  DevicePtr memory = 0;
  fake_.fail("cuMemAlloc_v2", 2, 0, 2);
  EXPECT_EQ(d().MemAlloc(&memory, 1), Result::kSuccess);
  EXPECT_EQ(d().MemAlloc(&memory, 1), Result::kOutOfMemory);
  EXPECT_EQ(d().MemAlloc(&memory, 1), Result::kSuccess);
  fake_.fail("cuMemsetD8Async", 1, 0, 700);
  EXPECT_EQ(d().MemsetD8Async(memory, 0, 1, nullptr), Result::kIllegalAddress);
  EXPECT_EQ(d().MemAlloc(&memory, 1), Result::kIllegalAddress);
}

TEST_F(Fake, AGpuCanBeTakenAway) {
  fake_.fail("*", 3, 1, 46);
  DevicePtr memory = 0;
  EXPECT_EQ(d().MemAlloc(&memory, 1), Result::kSuccess);
  EXPECT_EQ(d().MemAlloc(&memory, 1), Result::kSuccess);
  EXPECT_EQ(d().MemAlloc(&memory, 1), Result::kDeviceUnavailable);
  EXPECT_EQ(d().MemFree(memory), Result::kDeviceUnavailable);
}

TEST_F(Fake, OldDriversAndOldGpusRefuseOurKernels) {
  Module module = nullptr;
  fake_.set("version", 11080);
  EXPECT_EQ(d().ModuleLoadData(&module, kImage),
            Result::kUnsupportedPtxVersion);
  fake_.set("version", 13000);
  fake_.set("compute", 70);
  EXPECT_EQ(d().ModuleLoadData(&module, kImage), Result::kNoBinaryForGpu);
  EXPECT_EQ(d().ModuleLoadData(&module, "plain text"), Result::kInvalidImage);
}

TEST_F(Fake, SharedMemoryIsTheSameInAnotherProcess) {
  constexpr size_t kBytes = 2 << 20;
  AllocationProperties properties;
  properties.handle_types = HandleType::kPosixFileDescriptor;
  size_t granularity = 0;
  ASSERT_EQ(d().MemGetAllocationGranularity(&granularity, &properties,
                                            Granularity::kMinimum),
            Result::kSuccess);
  ASSERT_EQ(kBytes % granularity, 0u);
  AllocationHandle handle = 0;
  ASSERT_EQ(d().MemCreate(&handle, kBytes, &properties, 0), Result::kSuccess);
  int fd = -1;
  ASSERT_EQ(d().MemExportToShareableHandle(&fd, handle,
                                           HandleType::kPosixFileDescriptor, 0),
            Result::kSuccess);
  const AccessDescription access;
  const auto map = [&](AllocationHandle which) {
    DevicePtr at = 0;
    EXPECT_EQ(d().MemAddressReserve(&at, kBytes, 0, 0, 0), Result::kSuccess);
    EXPECT_EQ(d().MemMap(at, kBytes, 0, which, 0), Result::kSuccess);
    EXPECT_EQ(d().MemSetAccess(at, kBytes, &access, 1), Result::kSuccess);
    return at;
  };
  const DevicePtr mine = map(handle);
  // The child imports the parent's memory, and writes by plain stores: the
  // fake's streams do not cross a fork.
  const pid_t child = fork();
  if (child == 0) {
    AllocationHandle imported = 0;
    const bool ok =
        d().MemImportFromShareableHandle(
            &imported, reinterpret_cast<void*>(static_cast<intptr_t>(fd)),
            HandleType::kPosixFileDescriptor) == Result::kSuccess;
    if (ok) *reinterpret_cast<volatile char*>(map(imported) + 12345) = 77;
    _exit(ok ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*reinterpret_cast<volatile char*>(mine + 12345), 77);
  close(fd);
  EXPECT_NE(d().MemAddressFree(mine, kBytes), Result::kSuccess);  // mapped
  EXPECT_EQ(d().MemUnmap(mine, kBytes), Result::kSuccess);
  EXPECT_EQ(d().MemAddressFree(mine, kBytes), Result::kSuccess);
  EXPECT_EQ(d().MemRelease(handle), Result::kSuccess);
  EXPECT_EQ(fake_.count("handles") + fake_.count("mappings") +
                fake_.count("reservations"),
            0);
}

// As the driver, the fake rejects such sizes: it rounds nothing for its caller.
TEST_F(Fake, VirtualMemoryIsWholeUnits) {
  constexpr size_t kUnit = 2 << 20;
  AllocationProperties properties;
  AllocationHandle handle = 0;
  DevicePtr at = 0;
  const AccessDescription access;
  for (const size_t bytes : {kUnit - 1, kUnit + 4096, size_t{4096}}) {
    EXPECT_EQ(d().MemCreate(&handle, bytes, &properties, 0),
              Result::kInvalidValue);
    EXPECT_EQ(d().MemAddressReserve(&at, bytes, 0, 0, 0),
              Result::kInvalidValue);
  }
  ASSERT_EQ(d().MemCreate(&handle, kUnit, &properties, 0), Result::kSuccess);
  ASSERT_EQ(d().MemAddressReserve(&at, 2 * kUnit, 0, 0, 0), Result::kSuccess);
  EXPECT_EQ(d().MemMap(at, kUnit - 4096, 0, handle, 0), Result::kInvalidValue);
  ASSERT_EQ(d().MemMap(at, kUnit, 0, handle, 0), Result::kSuccess);
  EXPECT_EQ(d().MemSetAccess(at, kUnit - 4096, &access, 1),
            Result::kInvalidValue);
  EXPECT_EQ(d().MemSetAccess(at, kUnit, &access, 1), Result::kSuccess);
  EXPECT_EQ(fake_.FirstViolation(), "");
  EXPECT_EQ(d().MemUnmap(at, kUnit), Result::kSuccess);
  EXPECT_EQ(d().MemAddressFree(at, 2 * kUnit), Result::kSuccess);
  EXPECT_EQ(d().MemRelease(handle), Result::kSuccess);
  // The check is switched off.
  fake_.set("granularity", 1);
  EXPECT_EQ(d().MemCreate(&handle, 4097, &properties, 0), Result::kSuccess);
  EXPECT_EQ(d().MemRelease(handle), Result::kSuccess);
}

TEST_F(Fake, AForeignDescriptorIsNotImported) {
  AllocationHandle handle = 0;
  EXPECT_EQ(d().MemImportFromShareableHandle(&handle, nullptr,
                                             HandleType::kPosixFileDescriptor),
            Result::kInvalidValue);
  EXPECT_EQ(d().MemImportFromShareableHandle(
                &handle, reinterpret_cast<void*>(static_cast<intptr_t>(-1)),
                HandleType::kPosixFileDescriptor),
            Result::kInvalidValue);
}

// The first call of every symbol fails: the result is a status that names code
// and call, never a crash. Tests of each caller cover its clean-up.
TEST_F(Fake, EveryCallCanBeMadeToFail) {
  DevicePtr memory = 0;
  size_t size = 0;
  int number = 0;
  char text[8];
  Uuid uuid;
  Stream stream = nullptr;
  Event event = nullptr;
  void* host = nullptr;
  const std::pair<const char*, std::function<Result()>> kCalls[] = {
      {"cuDeviceGetCount", [&] { return d().DeviceGetCount(&number); }},
      {"cuDeviceGet", [&] { return d().DeviceGet(&number, 0); }},
      {"cuDeviceGetName", [&] { return d().DeviceGetName(text, 8, 0); }},
      {"cuDeviceGetUuid_v2", [&] { return d().DeviceGetUuid(&uuid, 0); }},
      {"cuDeviceTotalMem_v2", [&] { return d().DeviceTotalMem(&size, 0); }},
      {"cuDriverGetVersion", [&] { return d().DriverGetVersion(&number); }},
      {"cuMemAlloc_v2", [&] { return d().MemAlloc(&memory, 1); }},
      {"cuMemHostAlloc", [&] { return d().MemHostAlloc(&host, 1, 0); }},
      {"cuStreamCreate", [&] { return d().StreamCreate(&stream, 0); }},
      {"cuEventCreate", [&] { return d().EventCreate(&event, 0); }},
      {"cuInit", [&] { return d().Init(0); }},
  };
  for (const auto& [symbol, call] : kCalls) {
    fake_.fail(symbol, 1, 0, 801);
    const absl::Status status = Check(d(), call(), symbol);
    EXPECT_EQ(ResultOf(status), Result::kNotSupported) << symbol;
    EXPECT_THAT(std::string(Message(status)), HasSubstr(symbol));
    EXPECT_EQ(call(), Result::kSuccess) << symbol;
  }
}

}  // namespace
}  // namespace leat::cuda
