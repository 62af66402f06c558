// SPDX-License-Identifier: Apache-2.0
//
// Describes the driver, nvJPEG and the compiled kernels on this machine. A
// backend's refusal is a finding; only the backends that the worker opens must
// open.
#include <algorithm>
#include <utility>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/gpu/raw_nvjpeg.h"
#include "worker/gpu/cuda/kernel_image.h"
#include "worker/gpu/kernels/fused.h"
#include "worker/gpu/kernels/names.h"

namespace leat::gpu_check {
namespace {

using cuda::DeviceAttribute;
using cuda::FunctionAttribute;
using cuda::NvjpegBackend;

void DescribeDevice(const worker::CudaDevice& gpu, Report* report) {
  const cuda::Driver& d = gpu.driver();
  int version = 0;
  d.DriverGetVersion(&version);
  report->Fact("driver's CUDA",
               fmt::format("{}.{}", version / 1000, version % 1000 / 10));
  const worker::GpuInfo& info = gpu.info();
  report->Fact("GPU",
               fmt::format("{}, compute capability {}, {:.1f} GiB", info.name,
                           info.compute,
                           static_cast<double>(info.memory_bytes) / 0x1p30));
  for (const auto& [attribute, name] :
       {std::pair(DeviceAttribute::kMultiprocessorCount, "multiprocessors"),
        std::pair(DeviceAttribute::kL2CacheBytes, "L2 cache, bytes"),
        std::pair(DeviceAttribute::kMemoryClockKhz, "memory clock, kHz"),
        std::pair(DeviceAttribute::kMemoryBusWidthBits, "memory bus, bits"),
        std::pair(DeviceAttribute::kVirtualMemorySupported,
                  "virtual memory management"),
        std::pair(DeviceAttribute::kPosixFileDescriptorSupported,
                  "memory as a file descriptor")}) {
    int value = 0;
    if (d.DeviceGetAttribute(&value, attribute, info.index) ==
        cuda::Result::kSuccess)
      report->Figure("device", value, "", {{"attribute", name}});
  }
  const cuda::AllocationProperties properties{
      .handle_types = cuda::HandleType::kPosixFileDescriptor,
      .location = {.id = info.index}};
  for (const auto& [kind, name] :
       {std::pair(cuda::Granularity::kMinimum, "granularity, least"),
        std::pair(cuda::Granularity::kRecommended,
                  "granularity, recommended")}) {
    size_t bytes = 0;
    if (d.HasVirtualMemory() &&
        d.MemGetAllocationGranularity(&bytes, &properties, kind) ==
            cuda::Result::kSuccess)
      report->Figure("device", static_cast<double>(bytes), "bytes",
                     {{"attribute", name}});
  }
}

absl::Status DescribeKernels(const worker::CudaDevice& gpu, Report* report) {
  const cuda::Driver& d = gpu.driver();
  cuda::Module module = nullptr;
  RETURN_IF_ERROR(
      gpu.Check(d.ModuleLoadData(&module, worker::KernelImage().data()),
                "cuModuleLoadData"));
  for (size_t i = 0; i < worker::kNumKernels; ++i) {
    const char* const kernel = worker::NameOf(static_cast<worker::KernelId>(i));
    cuda::Function function = nullptr;
    RETURN_IF_ERROR(gpu.Check(d.ModuleGetFunction(&function, module, kernel),
                              "cuModuleGetFunction"));
    for (const auto& [attribute, name] :
         {std::pair(FunctionAttribute::kRegisters, "registers"),
          std::pair(FunctionAttribute::kLocalBytes, "local bytes"),
          std::pair(FunctionAttribute::kSharedBytes, "shared bytes"),
          std::pair(FunctionAttribute::kMaxThreadsPerBlock,
                    "most threads a block"),
          std::pair(FunctionAttribute::kBinaryVersion, "machine code"),
          std::pair(FunctionAttribute::kPtxVersion, "PTX")}) {
      int value = 0;
      RETURN_IF_ERROR(gpu.Check(d.FuncGetAttribute(&value, attribute, function),
                                "cuFuncGetAttribute"));
      report->Figure("kernel", value, "",
                     {{"kernel", kernel}, {"attribute", name}});
    }
    int blocks = 0;
    RETURN_IF_ERROR(gpu.Check(
        d.OccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, function, static_cast<int>(worker::kFusedBlock), 0),
        "cuOccupancyMaxActiveBlocksPerMultiprocessor"));
    report->Figure(
        "kernel", blocks * static_cast<int>(worker::kFusedBlock), "",
        {{"kernel", kernel}, {"attribute", "threads a multiprocessor"}});
  }
  return gpu.Check(d.ModuleUnload(module), "cuModuleUnload");
}

constexpr NvjpegBackend kBackends[] = {NvjpegBackend::kHybrid,
                                       NvjpegBackend::kGpuHybrid,
                                       NvjpegBackend::kHardware};

// Opens a backend with allocators of ours.
void TryBackend(const cuda::Nvjpeg& nvjpeg, const worker::CudaDevice& gpu,
                NvjpegBackend backend, Report* report) {
  const std::string name(NameOf(backend));
  const auto raw = RawNvjpeg::Open(&nvjpeg, &gpu, backend);
  report->Fact(fmt::format("nvJPEG {} with allocators", name),
               raw.ok() ? "opens" : Message(raw.status()));
  if (backend != NvjpegBackend::kHardware || !raw.ok() ||
      nvjpeg.GetHardwareDecoderInfo == nullptr)
    return;
  unsigned engines = 0, cores = 0;
  const cuda::NvjpegResult asked =
      nvjpeg.GetHardwareDecoderInfo((*raw)->handle(), &engines, &cores);
  report->Figure("engines", engines, "", {{"what", "engines"}}, NameOf(asked));
  report->Figure("engines", cores, "", {{"what", "cores of each"}});
}

void TryNvjpeg(const worker::CudaDevice& gpu, Report* report) {
  const auto nvjpeg = cuda::LoadNvjpeg(cuda::LibrarySearch::FromEnvironment());
  if (!nvjpeg.ok()) return report->Missing("nvJPEG", Message(nvjpeg.status()));
  report->Fact("nvJPEG",
               fmt::format("{}.{}.{}, {}", (*nvjpeg)->major, (*nvjpeg)->minor,
                           (*nvjpeg)->patch, (*nvjpeg)->path));
  const absl::Status video = cuda::LoadVideoLibrary(gpu.driver().path);
  report->Fact("libnvcuvid", video.ok() ? "loads" : Message(video));
  for (const NvjpegBackend backend : kBackends)
    TryBackend(**nvjpeg, gpu, backend, report);
}

absl::StatusOr<std::unique_ptr<worker::CudaDevice>> OpenGpu(
    const Setup& setup) {
  ASSIGN_OR_RETURN(auto driver,
                   cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment()));
  RETURN_IF_ERROR(cuda::Check(*driver, driver->Init(0), "cuInit"));
  return worker::CudaDevice::Open(std::move(driver), nullptr, setup.device);
}

}  // namespace

void CheckHandles(const Setup& setup, Report* report) {
  const auto gpu = OpenGpu(setup);
  report->Check("the GPU opens", gpu.ok(), Message(gpu.status()));
  if (!gpu.ok()) return;
  DescribeDevice(**gpu, report);
  const absl::Status kernels = DescribeKernels(**gpu, report);
  report->Check("the kernels load", kernels.ok(), Message(kernels));
  TryNvjpeg(**gpu, report);
  const auto bench = OpenBench(setup);
  report->Check("the worker's slots and nvJPEG open", bench.ok(),
                Message(bench.status()));
  if (!bench.ok()) return;
  // A group is rounded down to a multiple of the images that the engines decode
  // at once.
  const auto at_once = static_cast<double>(
      std::max<size_t>(1, worker::JpegsAtOnce({bench->gpu->info()})));
  report->Figure("engines", at_once, "", {{"what", "JPEGs at once"}});
  report->Figure("engines",
                 static_cast<double>(worker::kMaxGpuGroupRows) / at_once, "",
                 {{"what", "turns for a group of 128 rows"}});
}

// The worker never does it: it is not documented as allowed, and nvJPEG may
// crash.
void CheckNulls(const Setup& setup, Report* report) {
  const auto gpu = OpenGpu(setup);
  report->Check("the GPU opens", gpu.ok(), Message(gpu.status()));
  if (!gpu.ok()) return;
  const auto nvjpeg = cuda::LoadNvjpeg(cuda::LibrarySearch::FromEnvironment());
  if (!nvjpeg.ok()) return report->Missing("nvJPEG", Message(nvjpeg.status()));
  (void)cuda::LoadVideoLibrary((*gpu)->driver().path);
  for (const NvjpegBackend backend : kBackends) {
    cuda::NvjpegHandle handle = nullptr;
    const cuda::NvjpegResult bare = (*nvjpeg)->CreateExV2(
        backend, nullptr, nullptr, cuda::kNvjpegFlagsDefault, &handle);
    report->Fact(fmt::format("nvJPEG {} without allocators", NameOf(backend)),
                 NameOf(bare));
    if (bare == cuda::NvjpegResult::kSuccess) (*nvjpeg)->Destroy(handle);
  }
}

}  // namespace leat::gpu_check
