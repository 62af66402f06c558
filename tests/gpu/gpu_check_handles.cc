// SPDX-License-Identifier: Apache-2.0
//
// What the driver, nvJPEG and the compiled kernels are on this machine. What a
// backend refuses is a finding; only what the worker itself opens must open.
#include <algorithm>

#include "core/status.h"
#include "tests/gpu/gpu_bench.h"
#include "tests/gpu/raw_nvjpeg.h"
#include "worker/gpu/fused_kernel.h"
#include "worker/gpu/kernel_image.h"

namespace leat::gpu_check {
namespace {

using cuda::DeviceAttribute;
using cuda::FunctionAttribute;
using cuda::NvjpegBackend;

void DescribeDevice(const worker::Gpu& gpu, Report* report) {
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

absl::Status DescribeKernels(const worker::Gpu& gpu, Report* report) {
  const cuda::Driver& d = gpu.driver();
  cuda::Module module = nullptr;
  RETURN_IF_ERROR(
      gpu.Check(d.ModuleLoadData(&module, worker::KernelImage().data()),
                "cuModuleLoadData"));
  for (const char* const kernel :
       {worker::kFusedKernel1, worker::kFusedKernel3}) {
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

// With allocators of ours, and without any.
void TryBackend(const Bench& bench, NvjpegBackend backend, Report* report) {
  const std::string name(NameOf(backend));
  const auto raw =
      RawNvjpeg::Open(bench.library.get(), bench.gpu.get(), backend);
  report->Fact(fmt::format("nvJPEG {} with allocators", name),
               raw.ok() ? "opens" : Message(raw.status()));
  cuda::NvjpegHandle handle = nullptr;
  const cuda::NvjpegResult bare = bench.library->CreateExV2(
      backend, nullptr, nullptr, cuda::kNvjpegFlagsDefault, &handle);
  report->Fact(fmt::format("nvJPEG {} without allocators", name), NameOf(bare));
  if (bare == cuda::NvjpegResult::kSuccess) bench.library->Destroy(handle);
  if (backend != NvjpegBackend::kHardware || !raw.ok()) return;
  unsigned engines = 0, cores = 0;
  if (bench.library->GetHardwareDecoderInfo == nullptr) return;
  const cuda::NvjpegResult asked =
      bench.library->GetHardwareDecoderInfo((*raw)->handle(), &engines, &cores);
  report->Figure("engines", engines, "", {{"what", "engines"}}, NameOf(asked));
  report->Figure("engines", cores, "", {{"what", "cores of each"}});
}

}  // namespace

void CheckHandles(const Setup& setup, Report* report) {
  const auto bench = OpenBench(setup);
  report->Check("the worker's GPU, slots and nvJPEG open", bench.ok(),
                bench.ok() ? "" : Message(bench.status()));
  if (!bench.ok()) return;
  DescribeDevice(*bench->gpu, report);
  const absl::Status kernels = DescribeKernels(*bench->gpu, report);
  report->Check("the kernels load", kernels.ok(), Message(kernels));
  if (bench->library == nullptr) {
    report->Missing("nvJPEG", "there is no libnvjpeg");
    return;
  }
  report->Fact(
      "nvJPEG",
      fmt::format("{}.{}.{}, {}", bench->library->major, bench->library->minor,
                  bench->library->patch, bench->library->path));
  for (const NvjpegBackend backend :
       {NvjpegBackend::kHybrid, NvjpegBackend::kGpuHybrid,
        NvjpegBackend::kHardware})
    TryBackend(*bench, backend, report);
  // A group is rounded down to whole turns of the engines.
  const auto at_once = static_cast<double>(
      std::max<size_t>(1, worker::JpegsAtOnce({bench->gpu->info()})));
  report->Figure("engines", at_once, "", {{"what", "JPEGs at once"}});
  report->Figure("engines",
                 static_cast<double>(worker::kMaxGpuGroupRows) / at_once, "",
                 {{"what", "turns for a group of 128 rows"}});
}

}  // namespace leat::gpu_check
