// SPDX-License-Identifier: Apache-2.0
//
// Tests what other tests rely on in the fake nvJPEG.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "cuda/driver.h"
#include "cuda/nvjpeg.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/fake_library.h"
#include "tests/support/jpeg_maker.h"

namespace leat::cuda {
namespace {

using ::testing::HasSubstr;

// Allocates host blocks, as many as `left`.
struct Heap {
  static int Allocate(void* self, void** memory, size_t bytes, Stream) {
    auto* const heap = static_cast<Heap*>(self);
    if (heap->left == 0) return 1;
    --heap->left;
    ++heap->taken;
    *memory = std::malloc(bytes);
    return 0;
  }
  static int Free(void* self, void* memory, size_t, Stream) {
    --static_cast<Heap*>(self)->taken;
    std::free(memory);
    return 0;
  }
  int left = 1000, taken = 0;
};

class FakeNvjpeg : public ::testing::Test {
 protected:
  void SetUp() override {
    auto driver = LoadDriver(fake_.search);
    ASSERT_TRUE(driver.ok()) << driver.status();
    driver_ = *driver;
    ASSERT_EQ(LoadVideoLibrary(driver_->path), absl::OkStatus());
    auto nvjpeg = LoadNvjpeg(fake_.search);
    ASSERT_TRUE(nvjpeg.ok()) << nvjpeg.status();
    nvjpeg_ = *nvjpeg;
    Context context = nullptr;
    ASSERT_EQ(driver_->Init(0), Result::kSuccess);
    ASSERT_EQ(driver_->DevicePrimaryCtxRetain(&context, 0), Result::kSuccess);
    ASSERT_EQ(driver_->CtxSetCurrent(context), Result::kSuccess);
    ASSERT_EQ(driver_->StreamCreate(&stream_, kStreamNonBlocking),
              Result::kSuccess);
    ASSERT_EQ(driver_->MemAlloc(&memory_, kBytes), Result::kSuccess);
  }
  void TearDown() override { driver_->CtxSetCurrent(nullptr); }
  void Open(NvjpegBackend backend) {
    ASSERT_EQ(n().CreateExV2(backend, &device_, &pinned_, kNvjpegFlagsDefault,
                             &handle_),
              NvjpegResult::kSuccess);
    ASSERT_EQ(n().JpegStateCreate(handle_, &state_), NvjpegResult::kSuccess);
  }
  void Close() {
    EXPECT_EQ(n().JpegStateDestroy(state_), NvjpegResult::kSuccess);
    EXPECT_EQ(n().Destroy(handle_), NvjpegResult::kSuccess);
    EXPECT_EQ(heap_.taken, 0);
  }
  const Nvjpeg& n() const { return *nvjpeg_; }
  // Returns a destination of `width` × 3 bytes per row, `offset` bytes into
  // memory_.
  NvjpegImage ImageAt(size_t offset, size_t width) const {
    NvjpegImage image;
    image.channel[0] = reinterpret_cast<unsigned char*>(memory_ + offset);
    image.pitch[0] = width * 3;
    return image;
  }
  int Supported(const std::string& jpeg) {
    NvjpegStream parsed = nullptr;
    int supported = -1;
    EXPECT_EQ(n().JpegStreamCreate(handle_, &parsed), NvjpegResult::kSuccess);
    EXPECT_EQ(
        n().JpegStreamParseHeader(handle_, Bytes(jpeg), jpeg.size(), parsed),
        NvjpegResult::kSuccess);
    EXPECT_EQ(n().DecodeBatchedSupported(handle_, parsed, &supported),
              NvjpegResult::kSuccess);
    EXPECT_EQ(n().JpegStreamDestroy(parsed), NvjpegResult::kSuccess);
    return supported;
  }
  NvjpegResult Batch(const std::vector<std::string>& jpegs, size_t width,
                     size_t image_bytes) {
    std::vector<const unsigned char*> data;
    std::vector<size_t> sizes;
    std::vector<NvjpegImage> images;
    for (const std::string& jpeg : jpegs) {
      images.push_back(ImageAt(data.size() * image_bytes, width));
      data.push_back(Bytes(jpeg));
      sizes.push_back(jpeg.size());
    }
    const NvjpegResult result = n().DecodeBatchedInitialize(
        handle_, state_, static_cast<int>(jpegs.size()), 1,
        NvjpegFormat::kRgbi);
    if (result != NvjpegResult::kSuccess) return result;
    return n().DecodeBatched(handle_, state_, data.data(), sizes.data(),
                             images.data(), stream_);
  }
  static const unsigned char* Bytes(const std::string& jpeg) {
    return reinterpret_cast<const unsigned char*>(jpeg.data());
  }

  static constexpr size_t kBytes = 1 << 20;
  leat::testing::FakeCuda fake_;
  std::shared_ptr<const Driver> driver_;
  std::shared_ptr<const Nvjpeg> nvjpeg_;
  Heap heap_;
  NvjpegDeviceAllocator device_{Heap::Allocate, Heap::Free, &heap_};
  NvjpegPinnedAllocator pinned_{Heap::Allocate, Heap::Free, &heap_};
  NvjpegHandle handle_ = nullptr;
  NvjpegState state_ = nullptr;
  Stream stream_ = nullptr;
  DevicePtr memory_ = 0;
};

using leat::testing::JpegColor;
using leat::testing::JpegSpec;
using leat::testing::MakeJpeg;

TEST_F(FakeNvjpeg, TheEngineTakesWhatItsDocumentationSays) {
  Open(NvjpegBackend::kHardware);
  EXPECT_EQ(Supported(MakeJpeg({})), 0);
  EXPECT_EQ(Supported(MakeJpeg({.h = 1, .v = 1})), 0);
  EXPECT_EQ(Supported(MakeJpeg({.h = 2, .v = 1})), 0);
  EXPECT_EQ(Supported(MakeJpeg({.color = JpegColor::kGray, .h = 1, .v = 1})),
            0);
  EXPECT_NE(Supported(MakeJpeg({.h = 4, .v = 1})), 0);
  EXPECT_NE(Supported(MakeJpeg({.h = 4, .v = 2})), 0);
  EXPECT_NE(Supported(MakeJpeg({.progressive = true})), 0);
  EXPECT_NE(Supported(MakeJpeg({.color = JpegColor::kCmyk, .h = 1, .v = 1})),
            0);
  Close();
  EXPECT_EQ(fake_.violations(), 0u) << fake_.FirstViolation();
}

TEST_F(FakeNvjpeg, ABatchIsDecodedOnTheStream) {
  Open(NvjpegBackend::kHardware);
  // 4:4:4: chroma needs no upsampling, so all decoders agree.
  const std::vector<std::string> jpegs = {
      MakeJpeg({.h = 1, .v = 1, .seed = 1}),
      MakeJpeg({.h = 1, .v = 1, .seed = 2})};
  fake_.hold();
  std::memset(reinterpret_cast<void*>(memory_), 0, 64 * 48 * 6);
  EXPECT_EQ(Batch(jpegs, 64, 64 * 48 * 3), NvjpegResult::kSuccess);
  fake_.release();
  EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
  for (size_t i = 0; i < 2; ++i) {
    const auto expected = leat::testing::PlainDecode(jpegs[i]);
    EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(memory_ + i * 64 * 48 * 3),
                          expected.pixels.data(), expected.pixels.size()),
              0);
  }
  EXPECT_EQ(fake_.count("hardware_images"), 2);
  Close();
  EXPECT_EQ(fake_.violations(), 0u) << fake_.FirstViolation();
  EXPECT_EQ(fake_.count("nvjpeg_handles") + fake_.count("nvjpeg_states"), 0);
}

TEST_F(FakeNvjpeg, AParseThatFailsSpoilsItsHandle) {
  Open(NvjpegBackend::kHardware);
  const std::string sound = MakeJpeg({}), bad = "no JPEG";
  NvjpegStream parsed = nullptr;
  ASSERT_EQ(n().JpegStreamCreate(handle_, &parsed), NvjpegResult::kSuccess);
  const auto parse = [&](const std::string& file) {
    return n().JpegStreamParse(handle_, Bytes(file), file.size(), 0, 0, parsed);
  };
  EXPECT_EQ(parse(sound), NvjpegResult::kSuccess);
  EXPECT_EQ(parse(bad), NvjpegResult::kBadJpeg);
  EXPECT_EQ(parse(sound), NvjpegResult::kBadJpeg);
  EXPECT_EQ(n().JpegStreamDestroy(parsed), NvjpegResult::kSuccess);
  ASSERT_EQ(n().JpegStreamCreate(handle_, &parsed), NvjpegResult::kSuccess);
  EXPECT_EQ(parse(sound), NvjpegResult::kSuccess);
  EXPECT_EQ(n().JpegStreamDestroy(parsed), NvjpegResult::kSuccess);
  Close();
}

TEST_F(FakeNvjpeg, AStreamThatIsStoppedNeverEnds) {
  fake_.set("stop", 1);
  EXPECT_EQ(driver_->MemsetD8Async(memory_, 0, 16, stream_), Result::kSuccess);
  EXPECT_EQ(driver_->StreamQuery(stream_), Result::kNotReady);
  fake_.set("stop", 0);
  EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
}

TEST_F(FakeNvjpeg, AllocatorsThatAreNullAreRefused) {
  NvjpegPinnedAllocator half = pinned_;
  half.free = nullptr;
  for (NvjpegPinnedAllocator* const pinned :
       {&half, static_cast<NvjpegPinnedAllocator*>(nullptr)})
    EXPECT_EQ(
        n().CreateExV2(NvjpegBackend::kDefault, &device_, pinned, 0, &handle_),
        NvjpegResult::kInvalidParameter);
  EXPECT_EQ(
      n().CreateExV2(NvjpegBackend::kDefault, nullptr, &pinned_, 0, &handle_),
      NvjpegResult::kInvalidParameter);
  EXPECT_EQ(fake_.violations(), 3u);
}

TEST_F(FakeNvjpeg, AnAllocatorThatFailsFailsTheCall) {
  Open(NvjpegBackend::kHardware);
  const std::vector<std::string> jpegs = {
      MakeJpeg({.width = 640, .height = 480})};
  heap_.left = 0;
  EXPECT_EQ(Batch(jpegs, 640, 0), NvjpegResult::kAllocatorFailure);
  heap_.left = 9;
  EXPECT_EQ(Batch(jpegs, 640, 0), NvjpegResult::kSuccess);
  EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
  Close();
}

TEST_F(FakeNvjpeg, EnginesDoNotWaitForTheirStream) {
  const std::vector<std::string> jpegs = {MakeJpeg({.h = 1, .v = 1})};
  const auto expected = leat::testing::PlainDecode(jpegs[0]);
  for (const bool ordered : {false, true}) {
    fake_.set("ordered", ordered);
    Open(NvjpegBackend::kHardware);
    std::memset(reinterpret_cast<void*>(memory_), 0, kBytes);
    std::atomic<bool> go{false};
    ASSERT_EQ(driver_->LaunchHostFunc(
                  stream_,
                  [](void* flag) {
                    while (!static_cast<std::atomic<bool>*>(flag)->load())
                      std::this_thread::yield();
                  },
                  &go),
              Result::kSuccess);
    EXPECT_EQ(Batch(jpegs, 64, 0), NvjpegResult::kSuccess);
    const auto arrived = [&] {
      return std::memcmp(reinterpret_cast<void*>(memory_),
                         expected.pixels.data(), expected.pixels.size()) == 0;
    };
    if (ordered) {
      EXPECT_FALSE(arrived());
    } else {
      // The engines release the state when they are done.
      while (n().DecodeBatchedInitialize(handle_, state_, 1, 1,
                                         NvjpegFormat::kRgbi) !=
             NvjpegResult::kSuccess)
        std::this_thread::yield();
      EXPECT_TRUE(arrived());
    }
    go = true;
    EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
    EXPECT_TRUE(arrived());
    Close();
  }
}

TEST_F(FakeNvjpeg, APreAllocationThatFailsLeavesTheStateHalfMade) {
  Open(NvjpegBackend::kHardware);
  const auto preallocate = [this] {
    return n().DecodeBatchedPreAllocate(handle_, state_, 8, 64, 48,
                                        NvjpegSubsampling::k444,
                                        NvjpegFormat::kRgbi);
  };
  fake_.set("preallocate", 0);
  EXPECT_EQ(preallocate(), NvjpegResult::kSuccess);
  fake_.set("preallocate", 5);
  EXPECT_EQ(preallocate(), NvjpegResult::kAllocatorFailure);
  EXPECT_EQ(Batch({MakeJpeg({})}, 64, 0), NvjpegResult::kInternalError);
  Close();
}

TEST_F(FakeNvjpeg, TruncatedImagesAreGrayBelowAndNoError) {
  Open(NvjpegBackend::kHardware);
  std::string cut = MakeJpeg({.h = 1, .v = 1});
  cut.resize(cut.size() / 2);
  const std::vector<std::string> jpegs = {cut};
  EXPECT_EQ(Batch(jpegs, 64, 0), NvjpegResult::kSuccess);
  EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
  Close();
}

TEST_F(FakeNvjpeg, OneBadImageFailsItsBatch) {
  Open(NvjpegBackend::kHardware);
  std::string cut = MakeJpeg({.seed = 2});
  cut.resize(cut.size() / 2);
  fake_.set("gray", 0);
  EXPECT_EQ(Batch({MakeJpeg({}), cut}, 64, 64 * 48 * 3),
            NvjpegResult::kExecutionFailed);
  EXPECT_EQ(Batch({MakeJpeg({}), "garbage"}, 64, 64 * 48 * 3),
            NvjpegResult::kBadJpeg);
  EXPECT_EQ(Batch({MakeJpeg({.progressive = true})}, 64, 64 * 48 * 3),
            NvjpegResult::kJpegNotSupported);
  const std::vector<std::string> good = {MakeJpeg({})};
  EXPECT_EQ(Batch(good, 64, 64 * 48 * 3), NvjpegResult::kSuccess);
  EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
  Close();
}

TEST_F(FakeNvjpeg, TheCudaBackendTakesProgressiveImages) {
  Open(NvjpegBackend::kGpuHybrid);
  const std::vector<std::string> jpegs = {MakeJpeg({.progressive = true})};
  EXPECT_EQ(Batch(jpegs, 64, 64 * 48 * 3), NvjpegResult::kSuccess);
  EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
  EXPECT_EQ(fake_.count("hardware_images"), 0);
  Close();
}

TEST_F(FakeNvjpeg, AGpuWithoutEnginesHasNoHardwareDecoder) {
  fake_.set("engines", 0);
  EXPECT_EQ(
      n().CreateExV2(NvjpegBackend::kHardware, &device_, &pinned_, 0, &handle_),
      NvjpegResult::kArchMismatch);
  Open(NvjpegBackend::kDefault);
  unsigned engines = 9, cores = 9;
  EXPECT_EQ(n().GetHardwareDecoderInfo(handle_, &engines, &cores),
            NvjpegResult::kSuccess);
  EXPECT_EQ(engines, 0u);
  Close();
}

TEST_F(FakeNvjpeg, AStateThatStillDecodesIsNotUsedAgain) {
  Open(NvjpegBackend::kHardware);
  const std::vector<std::string> jpegs = {MakeJpeg({})};
  fake_.hold();
  EXPECT_EQ(Batch(jpegs, 64, 64 * 48 * 3), NvjpegResult::kSuccess);
  EXPECT_EQ(Batch(jpegs, 64, 64 * 48 * 3), NvjpegResult::kInvalidParameter);
  EXPECT_THAT(fake_.FirstViolation(), HasSubstr("while it decodes"));
  fake_.release();
  EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
  Close();
}

TEST_F(FakeNvjpeg, BytesThatChangeBeforeTheyAreDecodedAreNoticed) {
  Open(NvjpegBackend::kHardware);
  std::vector<std::string> jpegs = {MakeJpeg({})};
  fake_.hold();
  const unsigned char* const data = Bytes(jpegs[0]);
  const size_t bytes = jpegs[0].size();
  NvjpegImage image = ImageAt(0, 64);
  EXPECT_EQ(n().Decode(handle_, state_, data, bytes, NvjpegFormat::kRgbi,
                       &image, stream_),
            NvjpegResult::kSuccess);
  jpegs[0][bytes / 2] = static_cast<char>(~jpegs[0][bytes / 2]);
  fake_.release();
  EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
  EXPECT_THAT(fake_.FirstViolation(), HasSubstr("changed"));
  Close();
}

TEST_F(FakeNvjpeg, ADestinationThatIsTooSmallIsRefused) {
  Open(NvjpegBackend::kHardware);
  EXPECT_EQ(Batch({MakeJpeg({})}, 63, 0), NvjpegResult::kInvalidParameter);
  EXPECT_EQ(fake_.violations(), 1u);
  Close();
}

TEST_F(FakeNvjpeg, RegionsAndScalesAreTheEnginesAlone) {
  Open(NvjpegBackend::kHardware);
  const std::string jpeg = MakeJpeg({.h = 1, .v = 1});
  NvjpegParams params = nullptr;
  ASSERT_EQ(n().DecodeParamsCreate(handle_, &params), NvjpegResult::kSuccess);
  EXPECT_EQ(n().DecodeParamsSetROI(params, 8, 16, 20, 10),
            NvjpegResult::kSuccess);
  NvjpegImage image = ImageAt(0, 20);
  const unsigned char* const data = Bytes(jpeg);
  const size_t bytes = jpeg.size();
  EXPECT_EQ(
      n().DecodeBatchedInitialize(handle_, state_, 1, 1, NvjpegFormat::kRgbi),
      NvjpegResult::kSuccess);
  EXPECT_EQ(n().DecodeBatchedEx(handle_, state_, &data, &bytes, &image, &params,
                                stream_),
            NvjpegResult::kSuccess);
  EXPECT_EQ(driver_->StreamSynchronize(stream_), Result::kSuccess);
  const auto whole = leat::testing::PlainDecode(jpeg);
  EXPECT_EQ(std::memcmp(reinterpret_cast<void*>(memory_),
                        whole.pixels.data() + (16 * 64 + 8) * 3, 20 * 3),
            0);
  EXPECT_EQ(n().DecodeParamsDestroy(params), NvjpegResult::kSuccess);
  Close();
}

}  // namespace
}  // namespace leat::cuda
