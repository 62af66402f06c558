// SPDX-License-Identifier: Apache-2.0
//
// The compiled kernels on the first GPU: their bytes, and how fast they are.
// Skipped if there is no GPU.
#include <cstdio>
#include <random>

#include "cuda/driver.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/worker/gpu/fused/compare.h"
#include "tests/worker/gpu/kernels/jpeg_support.h"
#include "worker/gpu/cuda/kernel_image.h"
#include "worker/gpu/kernels/fused.h"

namespace leat::worker {
namespace {

#define CUDA_OK(call)                                                  \
  do {                                                                 \
    const absl::Status cuda_ok = cuda::Check(*driver_, (call), #call); \
    ASSERT_TRUE(cuda_ok.ok()) << Message(cuda_ok);                     \
  } while (false)

class DeviceRunner : public KernelRunner {
 public:
  static constexpr size_t kMemory = size_t{256} << 20;

  ~DeviceRunner() override {
    if (driver_ == nullptr || context_ == nullptr) return;
    driver_->MemFree(memory_);
    if (module_ != nullptr) driver_->ModuleUnload(module_);
    if (stream_ != nullptr) driver_->StreamDestroy(stream_);
    driver_->DevicePrimaryCtxRelease(device_);
  }

  // Not OK: there is no GPU; the status says why.
  absl::Status Start() {
    ASSIGN_OR_RETURN(driver_,
                     cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment()));
    const auto check = [&](cuda::Result result, const char* what) {
      return cuda::Check(*driver_, result, what);
    };
    RETURN_IF_ERROR(check(driver_->Init(0), "cuInit"));
    RETURN_IF_ERROR(check(driver_->DeviceGet(&device_, 0), "cuDeviceGet"));
    RETURN_IF_ERROR(check(driver_->DevicePrimaryCtxRetain(&context_, device_),
                          "cuDevicePrimaryCtxRetain"));
    RETURN_IF_ERROR(check(driver_->CtxSetCurrent(context_), "cuCtxSetCurrent"));
    RETURN_IF_ERROR(
        check(driver_->StreamCreate(&stream_, cuda::kStreamNonBlocking),
              "cuStreamCreate"));
    RETURN_IF_ERROR(check(driver_->MemAlloc(&memory_, kMemory), "cuMemAlloc"));
    return absl::OkStatus();
  }

  void Load() {
    CUDA_OK(driver_->ModuleLoadData(&module_, KernelImage().data()));
  }

  DeviceAddress Upload(std::span<const std::byte> bytes) override {
    const DeviceAddress address = memory() + used_;
    used_ += (bytes.size() + 255) / 256 * 256;
    Put(address, bytes);
    return address;
  }
  void Download(DeviceAddress address, std::span<std::byte> to) override {
    CUDA_OK(driver_->MemcpyDtoHAsync(to.data(), address.number(), to.size(),
                                     stream_));
    CUDA_OK(driver_->StreamSynchronize(stream_));
  }
  void Reset() override { used_ = 0; }

  absl::Status Launch(const char* kernel, const LaunchConfig& config,
                      DeviceAddress block) override {
    RETURN_IF_ERROR(Enqueue(kernel, config, block));
    return cuda::Check(*driver_, driver_->StreamSynchronize(stream_), kernel);
  }
  absl::Status Enqueue(const char* kernel, const LaunchConfig& config,
                       DeviceAddress block) {
    cuda::Function function;
    uint64_t number = block.number();
    RETURN_IF_ERROR(cuda::Check(
        *driver_, driver_->ModuleGetFunction(&function, module_, kernel),
        kernel));
    void* params[] = {&number};
    return cuda::Check(
        *driver_,
        driver_->LaunchKernel(function, config.grid_x, config.grid_y,
                              config.grid_z, config.block_x, config.block_y,
                              config.block_z, config.shared_bytes, stream_,
                              params, nullptr),
        kernel);
  }

  // Returns the fastest time, in µs, of the work that `enqueue` enqueues.
  template <class Enqueue>
  double Time(Enqueue enqueue) {
    cuda::Event start, end;
    driver_->EventCreate(&start, cuda::kEventDefault);
    driver_->EventCreate(&end, cuda::kEventDefault);
    float fastest = 1e9f;
    for (int i = 0; i < 20; ++i) {
      driver_->EventRecord(start, stream_);
      enqueue();
      driver_->EventRecord(end, stream_);
      driver_->EventSynchronize(end);
      float milliseconds = 0;
      driver_->EventElapsedTime(&milliseconds, start, end);
      fastest = std::min(fastest, milliseconds);
    }
    driver_->EventDestroy(start);
    driver_->EventDestroy(end);
    return fastest * 1e3;
  }

  const cuda::Driver& driver() const { return *driver_; }
  cuda::Stream stream() const { return stream_; }
  cuda::Module module() const { return module_; }
  DeviceAddress memory() const { return DeviceAddress(memory_); }

 private:
  void Put(DeviceAddress address, std::span<const std::byte> bytes) override {
    ASSERT_LE(used_, kMemory);
    CUDA_OK(driver_->MemcpyHtoDAsync(address.number(), bytes.data(),
                                     bytes.size(), stream_));
    CUDA_OK(driver_->StreamSynchronize(stream_));
  }

  std::shared_ptr<const cuda::Driver> driver_;
  cuda::Device device_ = 0;
  cuda::Context context_ = nullptr;
  cuda::Stream stream_ = nullptr;
  cuda::Module module_ = nullptr;
  cuda::DevicePtr memory_ = 0;
  size_t used_ = 0;
};

class FusedDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    const absl::Status status = gpu_.Start();
    if (!status.ok()) GTEST_SKIP() << "no GPU: " << Message(status);
    gpu_.Load();
  }
  DeviceRunner gpu_;
};

TEST_F(FusedDevice, ComputesWhatTheCpuDoes) { CompareRandom(gpu_, 1, 400, 12); }
TEST_F(FusedDevice, ComputesWhatTheCpuDoesAgain) {
  CompareRandom(gpu_, 77'000, 400, 12);
}
TEST_F(FusedDevice, ResamplesByAnyScale) { CompareScales(gpu_); }

TEST_F(FusedDevice, PixelsOfCoefficientsAndCodesAreLibjpegs) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(9);
  JpegBlocks blocks;
  for (int i = 0; i < 96; ++i) {
    const testing::JpegSpec spec{.width = 1 + static_cast<int>(random() % 200),
                                 .height = 1 + static_cast<int>(random() % 200),
                                 .h = 1 + i % 2,
                                 .v = 1 + i / 2 % 2,
                                 .quality = 20 + i % 81,
                                 .seed = static_cast<uint32_t>(i)};
    const std::string file = testing::MakeJpeg(spec);
    const bool gray = i % 5 == 0;
    const MadeForms made = MakeFormsOf(decoder, BytesOf(file));
    const Rect window = RandomPart(random, spec.width, spec.height);
    const WindowOfJpeg want = DecodeJpeg(decoder, BytesOf(file), window, gray);
    for (const JpegForm* form :
         {static_cast<const JpegForm*>(nullptr), made.coefficients->get()}) {
      ASSERT_TRUE(decoder.Open(BytesOf(file), form).ok());
      const auto of = decoder.BlocksOf(window, gray);
      ASSERT_TRUE(of.has_value());
      ASSERT_TRUE(decoder.ReadBlocks(*of, kAnyFormBytes, &blocks).value());
      ASSERT_EQ(PixelsOn(gpu_, blocks) == want.pixels, true) << i;
    }
    DeviceCodes codes;
    for (const JpegForm* form :
         {static_cast<const JpegForm*>(nullptr), made.seek_index->get()}) {
      ASSERT_TRUE(decoder.Open(BytesOf(file), form).ok());
      ASSERT_TRUE(
          decoder.FindCodes(*decoder.BlocksOf(window, gray), &codes).value());
      ASSERT_EQ(PixelsOn(gpu_, codes) == want.pixels, true) << i;
    }
  }
}
TEST_F(FusedDevice, CastsToEveryTypeAtAnyAddress) { CompareTypes(gpu_); }
TEST_F(FusedDevice, ComputesWhatTheCpuDoesForPhotos) {
  const char* const name = "imagenet-sample";
  const auto photos = TestDataFiles(BestTestData(name), name, 50);
  ASSERT_FALSE(photos.empty());
  ComparePhotos(gpu_, photos);
}

// 64 pictures of 500 × 375 to 224 × 224, as bytes alone and with float16.
class FusedRate : public FusedDevice {
 protected:
  static constexpr size_t kRows = 64;

  void Measure(const Graph& graph, const char* what) {
    const auto program = Fuse(graph);
    Block block(program->BlockBytes(kRows));
    FusedGroup group;
    FusedScratch scratch;
    const StoredSample stored = StoredImage({}, 7);
    ASSERT_TRUE(group.Begin(*program, kRows, block.span()).ok());
    const BatchSchema schema = Check(graph)->schema;
    const DeviceAddress out = gpu_.memory() + (size_t{192} << 20);
    uint64_t bytes = 0, at = 0;
    for (size_t row = 0; row < kRows; ++row) {
      const StoredSize size{375, 500};
      const auto part = group.PrepareRow(
          row, {.seed = 1, .sample = row, .fields = stored.fields}, size, 1,
          &scratch);
      ASSERT_TRUE(part.ok());
      FusedSource source{.held = {0, 0, 500, 375}, .pitch = 1500};
      source.address = gpu_.memory() + (size_t{64} << 20) + row * 1500 * 375;
      ASSERT_TRUE(group.BindSource(row, source).ok());
      bytes += static_cast<uint64_t>(part->width * part->height * 3);
      for (size_t f = 0; f < schema.fields.size();
           ++f, at = (at + 255) & ~255u) {
        group.BindOutput(row, f, out + at);
        at += schema.fields[f].row_bytes;
        bytes += schema.fields[f].row_bytes;
      }
    }
    bytes += group.used_bytes();
    const DeviceAddress copy =
        gpu_.Upload(block.span().first(group.used_bytes()));
    const double us = gpu_.Time([&] {
      ASSERT_TRUE(
          gpu_.Enqueue(program->kernel(), program->launch(kRows), copy).ok());
    });
    const double limit = Limit(bytes);
    int registers = 0, blocks = 0;
    cuda::Function function;
    const cuda::Driver& driver = gpu_.driver();
    driver.ModuleGetFunction(&function, gpu_.module(), program->kernel());
    driver.FuncGetAttribute(&registers, cuda::FunctionAttribute::kRegisters,
                            function);
    driver.OccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function,
                                                     kFusedBlock, 0);
    std::printf(
        "%s: %zu rows in %.1f us, %.2f million img/s; %.1f MB, %.0f GB/s; as "
        "long as a copy of them %.2f times; %d registers, %u threads a "
        "multiprocessor\n",
        what, kRows, us, kRows / us, bytes * 1e-6, bytes * 1e-3 / us,
        us / limit, registers, blocks * kFusedBlock);
    RecordProperty("us", fmt::format("{:.2f}", us));
    RecordProperty("bytes", fmt::format("{}", bytes));
    RecordProperty("times_memory_limit", fmt::format("{:.3f}", us / limit));
    RecordProperty("registers", registers);
    RecordProperty("threads_per_multiprocessor",
                   static_cast<int>(blocks * kFusedBlock));
  }

  // The time in which a copy within the device moves as many bytes, at the rate
  // of large copies.
  double Limit(uint64_t bytes) {
    const size_t half = size_t{128} << 20;
    const double us = gpu_.Time([&] {
      gpu_.driver().MemcpyDtoDAsync((gpu_.memory() + half).number(),
                                    gpu_.memory().number(), half,
                                    gpu_.stream());
    });
    return us * static_cast<double>(bytes) / (2.0 * half);
  }
};

TEST_F(FusedRate, OfBytes) {
  Graph graph = TrainingGraph(224);
  graph.outputs.resize(2);
  Measure(graph, "uint8");
}
TEST_F(FusedRate, OfBytesAndFloat16) {
  Measure(TrainingGraph(224), "uint8 and float16, channels first");
}

}  // namespace
}  // namespace leat::worker
