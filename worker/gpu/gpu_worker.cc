// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu_worker.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "worker/gpu/device_memory.h"
#include "worker/gpu/gpu.h"
#include "worker/gpu/gpu_kernel.h"
#include "worker/gpu/gpu_queue.h"
#include "worker/gpu/pinned_memory.h"
#include "worker/gpu/slots.h"

namespace leat::worker {
namespace {

// A GPU and all that belongs to it, in the order of birth.
struct Member {
  std::shared_ptr<Gpu> gpu;
  std::unique_ptr<const NvjpegDevice> nvjpeg;  // null: none
  std::unique_ptr<Slots> slots;
  std::unique_ptr<GpuQueue> queue;
};

// Loads and initialises the driver. `count`: of GPUs.
absl::StatusOr<std::shared_ptr<const cuda::Driver>> StartDriver(int* count) {
  ASSIGN_OR_RETURN(std::shared_ptr<const cuda::Driver> driver,
                   cuda::LoadDriver(cuda::LibrarySearch::FromEnvironment()));
  RETURN_IF_ERROR(cuda::Check(*driver, driver->Init(0), "cuInit"));
  RETURN_IF_ERROR(
      cuda::Check(*driver, driver->DeviceGetCount(count), "cuDeviceGetCount"));
  return driver;
}

class Gpus final : public GpuWorker {
 public:
  Gpus(GpuConfig config, const ImageLimits& limits,
       std::shared_ptr<WakeSignal> wake,
       std::function<void(const absl::Status&)> on_fatal)
      : config_(std::move(config)),
        limits_(limits),
        wake_(std::move(wake)),
        on_fatal_(std::move(on_fatal)) {}

  absl::Status OpenAll();

  const std::vector<GpuInfo>& devices() const override { return infos_; }
  RowKernelFactory kernels() override;
  std::vector<DecoderClass> decoder_classes() const override;
  std::shared_ptr<BufferMemory> buffer_memory() override {
    if (members_.empty()) return nullptr;
    return std::make_shared<PinnedMemory>(members_.front().gpu);
  }
  DeviceImporter* importer() override { return importer_.get(); }
  std::vector<GpuStats> stats() const override {
    std::vector<GpuStats> stats;
    for (const Member& member : members_)
      stats.push_back(member.queue->stats());
    return stats;
  }

 private:
  absl::Status OpenOne(const std::shared_ptr<const cuda::Driver>& driver,
                       const cuda::Nvjpeg* nvjpeg, int index);
  absl::StatusOr<std::unique_ptr<RowKernel>> Compile(
      const CheckedGraph& graph, uint64_t seed, DecoderClass decoder_class);
  void OnLost(const absl::Status& why, bool poisoned);

  const GpuConfig config_;
  const ImageLimits limits_;
  const std::shared_ptr<WakeSignal> wake_;
  const std::function<void(const absl::Status&)> on_fatal_;
  Mutex mu_;
  size_t lost_ ABSL_GUARDED_BY(mu_) = 0;
  size_t working_ ABSL_GUARDED_BY(mu_) = SIZE_MAX;  // once all are open
  bool fatal_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<const cuda::Nvjpeg> nvjpeg_;  // null: not there
  std::vector<Member> members_;
  std::vector<GpuInfo> infos_;
  std::unique_ptr<DeviceImporter> importer_;
};

absl::Status Gpus::OpenAll() {
  const DeviceSelection& selection = config_.devices;
  if (!selection.all && selection.indices.empty()) return absl::OkStatus();
  int count = 0;
  const auto driver = StartDriver(&count);
  if (!driver.ok()) {
    if (!selection.all)
      return Annotate(
          driver.status(),
          fmt::format("--devices {}", fmt::join(selection.indices, ",")));
    LOG_INFO("gpu.none note=\"{}\"", Message(driver.status()));
    return absl::OkStatus();
  }
  auto nvjpeg = cuda::LoadNvjpeg(cuda::LibrarySearch::FromEnvironment());
  if (nvjpeg.ok())
    nvjpeg_ = *std::move(nvjpeg);
  else if (count > 0)
    LOG_WARN("gpu.no_nvjpeg error=\"{}\" note=\"class exact only\"",
             Message(nvjpeg.status()));
  std::vector<int> indices = selection.indices;
  for (int index = 0; selection.all && index < count; ++index)
    indices.push_back(index);
  for (const int index : indices) {
    absl::Status status =
        index < count
            ? OpenOne(*driver, nvjpeg_.get(), index)
            : NotFound("there are {} GPUs here, counted from 0", count);
    if (status.ok()) continue;
    if (!selection.all)
      return Annotate(status, fmt::format("--devices {}", index));
    LOG_WARN("gpu.unusable gpu={} error=\"{}\"", index, Message(status));
  }
  {
    MutexLock lock(&mu_);
    working_ = members_.size();
    if (lost_ > 0) return Unavailable("a GPU was lost while it was opened");
  }
  if (!members_.empty()) {
    std::vector<std::shared_ptr<const Gpu>> gpus;
    for (const Member& member : members_) gpus.push_back(member.gpu);
    ASSIGN_OR_RETURN(importer_, ImportDeviceMemory(std::move(gpus)));
  }
  return absl::OkStatus();
}

absl::Status Gpus::OpenOne(const std::shared_ptr<const cuda::Driver>& driver,
                           const cuda::Nvjpeg* nvjpeg, int index) {
  Member member;
  ASSIGN_OR_RETURN(member.gpu, Gpu::Open(driver, index));
  Gpu& gpu = *member.gpu;
  if (nvjpeg != nullptr) {
    auto opened = NvjpegDevice::Open(nvjpeg, &gpu);
    if (opened.ok())
      member.nvjpeg = *std::move(opened);
    else
      LOG_WARN("gpu.no_nvjpeg gpu={} error=\"{}\" note=\"class exact only\"",
               index, Message(opened.status()));
  }
  ASSIGN_OR_RETURN(member.slots,
                   Slots::Create(config_, &gpu, member.nvjpeg.get()));
  member.queue = std::make_unique<GpuQueue>(
      &gpu, member.slots.get(),
      GpuQueueOptions{.decode_bytes = config_.decode_bytes,
                      .max_failures = config_.max_failures,
                      .image = limits_},
      wake_, [this](const absl::Status& why, bool poisoned) {
        OnLost(why, poisoned);
      });
  RETURN_IF_ERROR(member.queue->started());
  const GpuInfo& info = gpu.info();
  int version = 0;
  driver->DriverGetVersion(&version);
  LOG_INFO(
      "gpu.ready gpu={} name=\"{}\" uuid={} memory_bytes={} compute={} "
      "driver={}.{} nvjpeg={} jpeg_engines={} jpeg_cores={} no_engines=\"{}\" "
      "slots={} held_bytes={} most_bytes={}",
      info.index, info.name, info.uuid, info.memory_bytes, info.compute,
      version / 1000, version % 1000 / 10,
      info.nvjpeg_version.empty() ? "none" : info.nvjpeg_version,
      info.jpeg_engines, info.jpeg_cores, info.no_engines, config_.slots,
      member.slots->device_bytes(), member.slots->most_device_bytes());
  infos_.push_back(info);
  members_.push_back(std::move(member));
  return absl::OkStatus();
}

// A lost GPU is the end if its context is poisoned, or it was the last one.
void Gpus::OnLost(const absl::Status& why, bool poisoned) {
  {
    MutexLock lock(&mu_);
    ++lost_;
    if (fatal_ || (!poisoned && lost_ < working_)) return;
    fatal_ = true;
  }
  if (on_fatal_) on_fatal_(why);
}

std::vector<DecoderClass> Gpus::decoder_classes() const {
  std::vector<DecoderClass> classes = {DecoderClass::kExact};
  if (std::any_of(members_.begin(), members_.end(), [](const Member& member) {
        return member.nvjpeg != nullptr;
      }))
    classes.push_back(DecoderClass::kNvjpeg);
  return classes;
}

absl::StatusOr<std::unique_ptr<RowKernel>> Gpus::Compile(
    const CheckedGraph& graph, uint64_t seed, DecoderClass decoder_class) {
  std::vector<GpuQueue*> queues;
  for (const Member& member : members_)
    if (decoder_class == DecoderClass::kExact || member.nvjpeg != nullptr)
      queues.push_back(member.queue.get());
  if (queues.empty())
    return Unimplemented("decoder class {}: no GPU here has nvJPEG",
                         Name(decoder_class));
  ASSIGN_OR_RETURN(GpuProgram program,
                   CompileForGpu(graph, seed, decoder_class,
                                 config_.group_bytes, config_.slot_bytes));
  return std::make_unique<GpuKernel>(std::move(program), std::move(queues));
}

RowKernelFactory Gpus::kernels() {
  if (members_.empty()) return ImageKernels(limits_);
  return {.compile =
              [this](const CheckedGraph& graph, uint64_t seed,
                     DecoderClass decoder_class) {
                return Compile(graph, seed, decoder_class);
              },
          .make_thread_state = [this]() -> std::unique_ptr<ThreadState> {
            return std::make_unique<GpuThread>(limits_);
          }};
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuWorker>> GpuWorker::Open(
    const GpuConfig& config, const ImageLimits& limits,
    std::shared_ptr<WakeSignal> wake,
    std::function<void(const absl::Status&)> on_fatal) {
  auto gpus = std::make_unique<Gpus>(config, limits, std::move(wake),
                                     std::move(on_fatal));
  RETURN_IF_ERROR(gpus->OpenAll());
  return gpus;
}

}  // namespace leat::worker
