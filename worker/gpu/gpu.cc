// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/gpu.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <fstream>
#include <utility>

#include "core/log.h"
#include "core/status.h"
#include "worker/gpu/fused_kernel.h"
#include "worker/gpu/kernel_image.h"
#include "worker/gpu/stages/stage_kernel.h"

namespace leat::worker {
namespace {

constexpr char kPoisonedPayload[] = "leat.gpu.poisoned";

// "0-3,8" as a set; empty where it is malformed.
cpu_set_t CoresOf(std::string_view list) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const char* at = list.data();
  const char* const end = at + list.size();
  while (at < end) {
    int first = 0, last = 0;
    auto parsed = std::from_chars(at, end, first);
    last = first;
    if (parsed.ptr < end && *parsed.ptr == '-')
      parsed = std::from_chars(parsed.ptr + 1, end, last);
    if (parsed.ec != std::errc()) break;
    for (int core = first; core <= std::min(last, CPU_SETSIZE - 1); ++core)
      CPU_SET(core, &cores);
    at = parsed.ptr + 1;
  }
  return cores;
}

// The cores of the GPU's NUMA node, as Linux lists them.
std::string CoresNear(std::string pci_bus_id) {
  for (char& c : pci_bus_id)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::ifstream file("/sys/bus/pci/devices/" + pci_bus_id + "/local_cpulist");
  std::string list;
  std::getline(file, list);
  return list;
}

}  // namespace

Gpu::Gpu(std::shared_ptr<const cuda::Driver> driver, int index)
    : driver_(std::move(driver)) {
  info_.index = index;
}

absl::StatusOr<std::unique_ptr<Gpu>> Gpu::Open(
    std::shared_ptr<const cuda::Driver> driver, int index) {
  std::unique_ptr<Gpu> gpu(new Gpu(std::move(driver), index));
  RETURN_IF_ERROR(gpu->Describe());
  const cuda::Driver& d = *gpu->driver_;
  // Threads that wait for the GPU sleep, also within nvJPEG. Who has made the
  // context before us keeps its own way to wait.
  if (const absl::Status status = gpu->Check(
          d.DevicePrimaryCtxSetFlags(gpu->device_, cuda::kContextBlockingSync),
          "cuDevicePrimaryCtxSetFlags");
      !status.ok())
    LOG_INFO("gpu.waits_spinning gpu={} error=\"{}\"", index, Message(status));
  RETURN_IF_ERROR(gpu->Retain());
  RETURN_IF_ERROR(gpu->MakeCurrent());
  RETURN_IF_ERROR(gpu->LoadKernels());
  return gpu;
}

absl::Status Gpu::Retain() {
  const cuda::Result result =
      driver_->DevicePrimaryCtxRetain(&context_, device_);
  absl::Status status = Check(result, "cuDevicePrimaryCtxRetain");
  if (!status.ok()) context_ = nullptr;
  if (result == cuda::Result::kDeviceUnavailable)
    return Annotate(status,
                    "another process has the GPU for itself (compute mode "
                    "exclusive: nvidia-smi -c DEFAULT lets several use it)");
  return status;
}

Gpu::~Gpu() {
  if (context_ == nullptr) return;
  // What fails here fails because the GPU is lost, and nothing can be done.
  (void)MakeCurrent();
  if (module_ != nullptr) driver_->ModuleUnload(module_);
  driver_->DevicePrimaryCtxRelease(device_);
}

absl::Status Gpu::Describe() {
  const cuda::Driver& d = *driver_;
  RETURN_IF_ERROR(Check(d.DeviceGet(&device_, info_.index), "cuDeviceGet"));
  std::array<char, 256> name{};
  RETURN_IF_ERROR(Check(
      d.DeviceGetName(name.data(), static_cast<int>(name.size()) - 1, device_),
      "cuDeviceGetName"));
  info_.name = name.data();
  cuda::Uuid uuid;
  RETURN_IF_ERROR(Check(d.DeviceGetUuid(&uuid, device_), "cuDeviceGetUuid"));
  for (const unsigned char byte : uuid.bytes)
    info_.uuid += fmt::format("{:02x}", byte);
  size_t bytes = 0;
  RETURN_IF_ERROR(Check(d.DeviceTotalMem(&bytes, device_), "cuDeviceTotalMem"));
  info_.memory_bytes = bytes;
  int major = 0, minor = 0;
  RETURN_IF_ERROR(Check(
      d.DeviceGetAttribute(
          &major, cuda::DeviceAttribute::kComputeCapabilityMajor, device_),
      "cuDeviceGetAttribute"));
  RETURN_IF_ERROR(Check(
      d.DeviceGetAttribute(
          &minor, cuda::DeviceAttribute::kComputeCapabilityMinor, device_),
      "cuDeviceGetAttribute"));
  info_.compute = fmt::format("{}.{}", major, minor);
  int imports = 0;
  RETURN_IF_ERROR(Check(
      d.DeviceGetAttribute(&imports,
                           cuda::DeviceAttribute::kPosixFileDescriptorSupported,
                           device_),
      "cuDeviceGetAttribute"));
  imports_ = imports != 0 && d.HasVirtualMemory();
  std::array<char, 32> bus{};
  if (d.DeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()) - 1,
                          device_) == cuda::Result::kSuccess)
    cores_ = CoresNear(bus.data());
  return absl::OkStatus();
}

absl::Status Gpu::LoadKernels() {
  const cuda::Driver& d = *driver_;
  int version = 0;
  d.DriverGetVersion(&version);
  RETURN_IF_ERROR(Check(
      d.ModuleLoadData(&module_, KernelImage().data()),
      fmt::format("cuModuleLoadData of Leat's kernels, which want compute "
                  "capability 7.5 and a driver for CUDA 12, or later; here are "
                  "{} and a driver for {}.{}",
                  info_.compute, version / 1000, version % 1000 / 10)
          .c_str()));
  for (size_t i = 0; i < fused_.size(); ++i)
    RETURN_IF_ERROR(
        Check(d.ModuleGetFunction(&fused_[i], module_, kFusedKernels[i]),
              "cuModuleGetFunction"));
  for (size_t kind = 0; kind < stages_.size(); ++kind)
    RETURN_IF_ERROR(
        Check(d.ModuleGetFunction(&stages_[kind], module_, kStageKernels[kind]),
              "cuModuleGetFunction"));
  return absl::OkStatus();
}

absl::Status Gpu::MakeCurrent() const {
  return Check(driver_->CtxSetCurrent(context_), "cuCtxSetCurrent");
}

void Gpu::NearThread() const {
  cpu_set_t near = CoresOf(cores_), allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  CPU_AND(&near, &near, &allowed);
  if (CPU_COUNT(&near) > 0)
    pthread_setaffinity_np(pthread_self(), sizeof near, &near);
}

absl::Status Gpu::ToDevice(uint64_t to, const void* from, size_t bytes,
                           cuda::Stream stream) const {
  return Check(driver_->MemcpyHtoDAsync(to, from, bytes, stream),
               "cuMemcpyHtoDAsync");
}

absl::Status Gpu::ToHost(void* to, uint64_t from, size_t bytes,
                         cuda::Stream stream) const {
  return Check(driver_->MemcpyDtoHAsync(to, from, bytes, stream),
               "cuMemcpyDtoHAsync");
}

absl::Status Gpu::Fill(uint64_t to, uint8_t value, size_t bytes,
                       cuda::Stream stream) const {
  return Check(driver_->MemsetD8Async(to, value, bytes, stream),
               "cuMemsetD8Async");
}

absl::Status Gpu::Launch(const FusedProgram& program, size_t rows,
                         uint64_t block, cuda::Stream stream) const {
  RETURN_IF_ERROR(Launch(fused_[program.kernel_index()], program.launch(rows),
                         block, stream));
  for (size_t i = 0; i < program.stages(); ++i) {
    const StageLaunch stage = program.stage(i, rows);
    RETURN_IF_ERROR(Launch(stages_[static_cast<size_t>(stage.kind)],
                           stage.config, block + stage.rows_at, stream));
  }
  return absl::OkStatus();
}

absl::Status Gpu::Launch(cuda::Function kernel, const LaunchConfig& config,
                         uint64_t parameter, cuda::Stream stream) const {
  void* parameters[] = {&parameter};
  return Check(
      driver_->LaunchKernel(kernel, config.grid_x, config.grid_y, config.grid_z,
                            config.block_x, config.block_y, config.block_z,
                            config.shared_bytes, stream, parameters, nullptr),
      "cuLaunchKernel");
}

absl::Status Gpu::Record(const Slot& slot) const {
  return Check(driver_->EventRecord(slot.done, slot.stream), "cuEventRecord");
}

absl::Status Gpu::WaitEvent(const Slot& slot) const {
  return Check(driver_->EventSynchronize(slot.done), "cuEventSynchronize");
}

absl::Status Gpu::WaitStream(cuda::Stream stream) const {
  return Check(driver_->StreamSynchronize(stream), "cuStreamSynchronize");
}

absl::Status Gpu::Check(cuda::Result result, const char* call) const {
  return cuda::Check(*driver_, result, call);
}

bool Gpu::IsPoisoned(const absl::Status& status) {
  return cuda::PoisonsContext(status) ||
         status.GetPayload(kPoisonedPayload).has_value();
}

absl::Status Gpu::Poisoned(absl::Status status) {
  status.SetPayload(kPoisonedPayload, absl::Cord("1"));
  return status;
}

}  // namespace leat::worker
