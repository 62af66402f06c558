// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/gpu_kernel.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/status.h"

namespace leat::worker {
namespace {

// Tables of a row; with more, libjpeg-turbo and the CPU compute it. Part of
// what decides bytes in class nvjpeg, therefore the release's.
constexpr FusedLimits kLimits{.max_table_bytes = size_t{128} << 10};

// Between the fields of a group's results.
constexpr size_t kFieldPadding = 256;

// kUnimplemented: why the kernel cannot.
absl::StatusOr<std::unique_ptr<FusedProgram>> Fuse(const CheckedGraph& graph,
                                                   uint64_t seed,
                                                   DecoderClass decoder_class,
                                                   uint64_t group_bytes,
                                                   uint64_t slot_bytes) {
  const size_t row_bytes = graph.schema.row_bytes();
  const size_t padding = graph.schema.fields.size() * kFieldPadding;
  if (row_bytes + padding > group_bytes)
    return Unimplemented(
        "a row of {} bytes does not fit a GPU's groups of {} bytes "
        "(--gpu-group-bytes)",
        row_bytes, group_bytes);
  // Half of the slot is for pixels on their way.
  const uint64_t rows =
      std::clamp<uint64_t>(group_bytes / row_bytes, 1, kMaxGpuGroupRows);
  FusedLimits limits = kLimits;
  limits.value_bytes = slot_bytes / 2 / rows;
  ASSIGN_OR_RETURN(std::unique_ptr<FusedProgram> fused,
                   FusedProgram::Compile(graph, seed, limits));
  if (decoder_class == DecoderClass::kNvjpeg &&
      (fused->stages() > 0 || fused->dali()))
    return Unimplemented(
        "operators behind the fused kernel, and resizing by rule \"dali\", run "
        "in class exact, not nvjpeg");
  if (fused->BlockBytes(kMaxGpuGroupRows) > kSlotBlockBytes)
    return Unimplemented(
        "{} rows need {} bytes of descriptors, more than a GPU's slot has: {}",
        kMaxGpuGroupRows, fused->BlockBytes(kMaxGpuGroupRows), kSlotBlockBytes);
  if (fused->ValueBytes(rows) > slot_bytes / 2)
    return Unimplemented(
        "{} rows hold values of {} bytes between operators, more than half of "
        "a GPU's slot of {} (--gpu-slot-bytes)",
        rows, fused->ValueBytes(rows), slot_bytes);
  return fused;
}

// Rows that no GPU here computes.
class RefusedGroup final : public KernelGroup {
 public:
  RefusedGroup(size_t rows, absl::Status why)
      : rows_(rows), why_(std::move(why)) {}
  absl::Status Prepare(size_t, const RowInput&, StoredSample,
                       ThreadState*) override {
    return why_;
  }
  void Forget(size_t) override {}
  void Run(Done done) override {
    done(std::vector<absl::Status>(rows_, why_), nullptr);
  }

 private:
  const size_t rows_;
  const absl::Status why_;
};

}  // namespace

absl::StatusOr<GpuProgram> CompileForGpu(const CheckedGraph& graph,
                                         uint64_t seed,
                                         DecoderClass decoder_class,
                                         uint64_t group_bytes,
                                         uint64_t slot_bytes) {
  GpuProgram program{.decoder_class = decoder_class,
                     .fields = graph.schema.fields.size()};
  ASSIGN_OR_RETURN(program.cpu, RowProgram::Compile(graph, seed));
  absl::StatusOr<std::unique_ptr<FusedProgram>> fused =
      Fuse(graph, seed, decoder_class, group_bytes, slot_bytes);
  if (fused.ok()) {
    program.fused = *std::move(fused);
  } else if (decoder_class == DecoderClass::kExact &&
             absl::IsUnimplemented(fused.status())) {
    LOG_INFO("gpu.rows_by_cpu reason=\"{}\"", Message(fused.status()));
  } else {
    return fused.status();
  }
  return program;
}

absl::Status GpuKernel::Run(
    const RowInput& input, ThreadState* state,
    std::span<const std::span<std::byte>> outputs) const {
  if (program_.decoder_class != DecoderClass::kExact)
    return Internal("rows of class {} go in groups",
                    Name(program_.decoder_class));
  return program_.cpu->Run(input, static_cast<ImageThread*>(state)->scratch(),
                           outputs);
}

bool GpuKernel::IsOf(const GpuQueue* queue, int device) {
  return device < 0 || queue->gpu().info().index == device;
}

// A lost GPU has slots too: for groups that are told so. So are groups in the
// memory of a GPU that does not compute the job.
bool GpuKernel::CanBegin(int device) const {
  if (Choose(device) == nullptr) return true;
  bool working = false, lost = false;
  for (const GpuQueue* queue : queues_) {
    if (!IsOf(queue, device)) continue;
    const bool free = queue->free_slots() > 0;
    if (queue->lost())
      lost = lost || free;
    else if (free)
      return true;
    else
      working = true;
  }
  return lost && !working;
}

GpuQueue* GpuKernel::Choose(int device) const {
  GpuQueue* chosen = nullptr;
  for (GpuQueue* queue : queues_) {
    if (!IsOf(queue, device)) continue;
    const auto rank = [](const GpuQueue* q) {
      return std::pair(!q->lost(), q->free_slots());
    };
    if (chosen == nullptr || rank(queue) > rank(chosen)) chosen = queue;
  }
  return chosen;
}

std::unique_ptr<KernelGroup> GpuKernel::BeginGroup(
    const GroupOutputs& outputs) const {
  GpuQueue* const queue = Choose(outputs.device);
  if (queue == nullptr)
    return std::make_unique<RefusedGroup>(
        outputs.rows,
        Unavailable("GPU {}, whose memory the rows were to go to, does not "
                    "compute jobs of class {} here",
                    outputs.device, Name(program_.decoder_class)));
  Slot* const slot = queue->TakeSlot();
  if (slot == nullptr) return nullptr;
  return std::make_unique<GpuGroup>(program_, outputs, queue, slot);
}

}  // namespace leat::worker
