// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/gpus.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>

#include "core/log.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "worker/gpu/decoding/decoder_trial.h"
#include "worker/gpu/decoding/jpeg_upload.h"
#include "worker/gpu/device/error.h"
#include "worker/gpu/groups/kernel.h"
#include "worker/gpu/groups/queue.h"
#include "worker/gpu/resources/device_memory.h"
#include "worker/gpu/resources/pinned_memory.h"
#include "worker/gpu/resources/slots.h"
#include "worker/gpu/resources/watch.h"

namespace leat::worker {
namespace {

// A GPU and the objects that belong to it, in the order of construction.
struct Member {
  std::shared_ptr<const Device> gpu;
  GpuConfig config;  // with its sizes
  // set if its decoder passed the trial
  std::optional<DecoderClass> decoder_class;
  std::unique_ptr<Slots> slots;
  std::unique_ptr<GpuQueue> queue;
};

class Gpus final : public GpuWorker {
 public:
  Gpus(GpuConfig config, const ImageLimits& limits,
       std::shared_ptr<WakeSignal> wake,
       std::function<void(const absl::Status&)> on_fatal)
      : config_(std::move(config)),
        limits_(limits),
        wake_(std::move(wake)),
        on_fatal_(std::move(on_fatal)) {}

  absl::Status OpenAll(
      const std::function<absl::StatusOr<std::unique_ptr<Platform>>()>&
          open_platform);

  const std::vector<GpuInfo>& devices() const override { return infos_; }
  RowKernelFactory kernels() override;
  std::vector<DecoderClass> decoder_classes() const override;
  uint64_t group_bytes() const override {
    uint64_t least = members_.empty() ? 0 : members_.front().config.group_bytes;
    for (const Member& member : members_)
      least = std::min(least, member.config.group_bytes);
    return least;
  }
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
  absl::Status OpenOne(Platform& platform, int index);
  absl::Status MakeSlots(Member* member, GpuInfo* info);
  absl::Status Try(const Slot& slot, int index);
  absl::StatusOr<std::unique_ptr<RowKernel>> Compile(
      const CheckedGraph& graph, DecoderClass decoder_class);
  void OnLost(const absl::Status& why, bool poisoned);

  const GpuConfig config_;
  const ImageLimits limits_;
  const std::shared_ptr<WakeSignal> wake_;
  const std::function<void(const absl::Status&)> on_fatal_;
  Mutex mu_;
  size_t lost_ ABSL_GUARDED_BY(mu_) = 0;
  size_t working_ ABSL_GUARDED_BY(mu_) = SIZE_MAX;  // set once all are open
  bool fatal_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Member> members_;
  std::vector<GpuInfo> infos_;
  std::unique_ptr<DeviceImporter> importer_;
};

absl::Status Gpus::OpenAll(
    const std::function<absl::StatusOr<std::unique_ptr<Platform>>()>&
        open_platform) {
  const DeviceSelection& selection = config_.devices;
  if (!selection.all && selection.indices.empty()) return absl::OkStatus();
  const auto platform = open_platform();
  if (!platform.ok()) {
    if (!selection.all)
      return Annotate(
          platform.status(),
          fmt::format("--devices {}", fmt::join(selection.indices, ",")));
    LOG_INFO("gpu.none note=\"{}\"", Message(platform.status()));
    return absl::OkStatus();
  }
  const int count = (*platform)->num_devices();
  std::vector<int> indices = selection.indices;
  for (int index = 0; selection.all && index < count; ++index)
    indices.push_back(index);
  for (const int index : indices) {
    absl::Status status =
        index < count
            ? OpenOne(**platform, index)
            : NotFound("there are {} GPUs here, counted from 0", count);
    if (status.ok()) continue;
    if (!selection.all)
      return Annotate(status, fmt::format("--devices {}", index));
    LOG_WARN("gpu.unusable gpu={} error=\"{}\"", index, Message(status));
  }
  if (!members_.empty() && !KernelsHaveLibjpegsPixels())
    LOG_WARN(
        "gpu.no_coefficients note=\"the libjpeg that is loaded makes other "
        "pixels of JPEGs than our kernels: in class exact it decodes them, on "
        "the host\"");
  {
    MutexLock lock(&mu_);
    working_ = members_.size();
    if (lost_ > 0) return Unavailable("a GPU was lost while it was opened");
  }
  if (!members_.empty()) {
    std::vector<std::shared_ptr<const Device>> gpus;
    for (const Member& member : members_) gpus.push_back(member.gpu);
    ASSIGN_OR_RETURN(importer_, ImportDeviceMemory(std::move(gpus)));
  }
  return absl::OkStatus();
}

absl::Status Gpus::OpenOne(Platform& platform, int index) {
  Member member;
  ASSIGN_OR_RETURN(member.gpu, platform.Open(index));
  const Device& gpu = *member.gpu;
  GpuInfo info = gpu.info();
  member.config = config_.For(info.memory_bytes);
  RETURN_IF_ERROR(MakeSlots(&member, &info));
  member.queue = std::make_unique<GpuQueue>(
      &gpu, member.slots.get(),
      GpuQueueOptions{.max_failures = config_.max_failures,
                      .clock = config_.clock,
                      .image = limits_},
      wake_, [this](const absl::Status& why, bool poisoned) {
        OnLost(why, poisoned);
      });
  RETURN_IF_ERROR(member.queue->started());
  LOG_INFO(
      "gpu.ready gpu={} name=\"{}\" uuid={} memory_bytes={} compute={} "
      "driver={} nvjpeg={} jpeg_engines={} jpeg_cores={} jpegs_at_once={} "
      "no_engines=\"{}\" "
      "slots={} held_bytes={} most_bytes={}",
      info.index, info.name, info.uuid, info.memory_bytes, info.compute,
      info.driver_version,
      info.decoder_version.empty() ? "none" : info.decoder_version,
      info.jpeg_engines, info.jpeg_cores, JpegsAtOnce({info}), info.no_engines,
      config_.slots, member.slots->device_bytes(),
      member.slots->most_device_bytes());
  infos_.push_back(std::move(info));
  members_.push_back(std::move(member));
  return absl::OkStatus();
}

// Tries the slot's decoder. A trial that does not end is fatal to the worker,
// because its thread cannot be stopped.
absl::Status Gpus::Try(const Slot& slot, int index) {
  GpuWatch watch(config_.clock, [this, index](const std::string& stuck) {
    OnLost(Unavailable("GPU {} cannot be used: {}", index, stuck), true);
  });
  std::thread looks;
  RETURN_IF_ERROR(StartThread(
      fmt::format("gpu-{}-trial", index), [&watch] { watch.Run(); }, &looks));
  absl::Status tried;
  {
    const GpuWatch::Turn turn(&watch, "the trial of its decoder");
    tried = TryDecoder(slot);
  }
  watch.Stop();
  looks.join();
  return tried;
}

// Makes the member's slots. A decoder that makes wrong pixels is not used, and
// `info` does not list it.
absl::Status Gpus::MakeSlots(Member* member, GpuInfo* info) {
  const Device& gpu = *member->gpu;
  member->decoder_class = gpu.decoder_class();
  ASSIGN_OR_RETURN(
      member->slots,
      Slots::Create(member->config, &gpu, member->decoder_class.has_value()));
  if (!member->decoder_class) return absl::OkStatus();
  const absl::Status tried = Try(*member->slots->all().front(), info->index);
  if (tried.ok()) return absl::OkStatus();
  if (IsPoisoned(tried)) return tried;
  LOG_WARN("gpu.no_nvjpeg gpu={} error=\"{}\" note=\"class exact only\"",
           info->index, Message(tried));
  member->decoder_class.reset();
  info->decoder_version.clear();
  info->jpeg_engines = info->jpeg_cores = 0;
  info->no_engines = Message(tried);
  member->slots.reset();
  ASSIGN_OR_RETURN(member->slots, Slots::Create(member->config, &gpu, false));
  return absl::OkStatus();
}

// A lost GPU is fatal if its context is poisoned, or if it was the last one.
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
  for (const Member& member : members_)
    if (const auto own = member.decoder_class;
        own && std::ranges::find(classes, *own) == classes.end()) {
      classes.push_back(*own);
      classes.push_back(WithHostShare(*own));
    }
  return classes;
}

absl::StatusOr<std::unique_ptr<RowKernel>> Gpus::Compile(
    const CheckedGraph& graph, DecoderClass decoder_class) {
  std::vector<GpuQueue*> queues;
  for (const Member& member : members_)
    if (decoder_class == DecoderClass::kExact ||
        member.decoder_class == decoder_class ||
        (member.decoder_class &&
         WithHostShare(*member.decoder_class) == decoder_class))
      queues.push_back(member.queue.get());
  if (queues.empty())
    return Unimplemented("decoder class {}: no GPU here has a decoder of it",
                         Name(decoder_class));
  ASSIGN_OR_RETURN(
      GpuProgram program,
      CompileForGpu(graph, decoder_class, group_bytes(), config_.slot_bytes));
  return std::make_unique<GpuKernel>(std::move(program), std::move(queues));
}

RowKernelFactory Gpus::kernels() {
  if (members_.empty()) return ImageKernels(limits_);
  return {.compile =
              [this](const CheckedGraph& graph, DecoderClass decoder_class) {
                return Compile(graph, decoder_class);
              },
          .make_thread_state = [this]() -> std::unique_ptr<ThreadState> {
            return std::make_unique<GpuThread>(limits_);
          }};
}

}  // namespace

absl::StatusOr<std::unique_ptr<GpuWorker>> OpenGpus(
    const std::function<absl::StatusOr<std::unique_ptr<Platform>>()>&
        open_platform,
    const GpuConfig& config, const ImageLimits& limits,
    std::shared_ptr<WakeSignal> wake,
    std::function<void(const absl::Status&)> on_fatal) {
  auto gpus = std::make_unique<Gpus>(config, limits, std::move(wake),
                                     std::move(on_fatal));
  RETURN_IF_ERROR(gpus->OpenAll(open_platform));
  return gpus;
}

}  // namespace leat::worker
