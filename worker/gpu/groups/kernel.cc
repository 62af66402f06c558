// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/groups/kernel.h"

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "core/pipeline/device_forms.h"
#include "core/status.h"

namespace leat::worker {
namespace {

// The most tables of a row; with more, libjpeg-turbo and the CPU compute it. It
// helps to decide bytes in class nvjpeg, and is therefore fixed per release.
constexpr FusedLimits kLimits{.max_table_bytes = size_t{128} << 10};

// Bytes between the fields of a group's results.
constexpr size_t kFieldPadding = 256;

// The fewest rows of a group in class exact, if its results are not larger:
// with fewer rows a GPU is not worth its launches.
constexpr size_t kFewestRows = 8;

// Half of a slot is for values between operators, the rest for pixels on their
// way.
uint64_t RoomForValues(uint64_t slot_bytes) { return slot_bytes / 2; }

// The assumed number of elements of a value whose size differs per sample: that
// of a usual photo in a dataset. Groups are smaller if their rows have less
// room, since the CPU computes rows with larger values.
constexpr uint64_t kPhotoElements = uint64_t{500} * 375 * 3;

// Returns a program that gives values of per-sample sizes the room that a group
// of at most `*rows` leaves them; sets *rows to the final number.
absl::StatusOr<std::unique_ptr<FusedProgram>> CompileWithRoom(
    const CheckedGraph& graph, uint64_t slot_bytes, uint64_t* rows) {
  for (;; *rows = std::max<uint64_t>(*rows - *rows / 4, kFewestRows)) {
    FusedLimits limits = kLimits;
    limits.value_bytes = RoomForValues(slot_bytes) / *rows;
    absl::StatusOr<std::unique_ptr<FusedProgram>> fused =
        FusedProgram::Compile(graph, limits);
    const bool enough =
        fused.ok() && (!(*fused)->has_own_sizes() ||
                       (*fused)->most_elements() >= kPhotoElements);
    if (enough || *rows <= kFewestRows) return fused;
  }
}

// Returns the most rows of a group, from `fewest` up to `rows`, for whose
// descriptors and values a slot has room. kUnimplemented: too few.
absl::StatusOr<size_t> MostRows(const FusedProgram& fused, size_t fewest,
                                size_t rows, uint64_t slot_bytes) {
  const uint64_t room = RoomForValues(slot_bytes);
  while (rows > fewest && (fused.BlockBytes(rows) > kSlotBlockBytes ||
                           fused.ValueBytes(rows) > room))
    --rows;
  if (fused.BlockBytes(rows) > kSlotBlockBytes)
    return Unimplemented(
        "{} rows need {} bytes of descriptors, more than a GPU's slot has: {}",
        rows, fused.BlockBytes(rows), kSlotBlockBytes);
  if (fused.ValueBytes(rows) > room)
    return Unimplemented(
        "{} rows hold values of {} bytes between operators, more than half of "
        "a GPU's slot of {} (--gpu-slot-bytes)",
        rows, fused.ValueBytes(rows), slot_bytes);
  return rows;
}

// Sets the GPU's part of the program. kUnimplemented: why the kernel cannot run
// it.
absl::Status Fuse(const CheckedGraph& graph, uint64_t group_bytes,
                  uint64_t slot_bytes, GpuProgram* program) {
  const bool exact = program->decoder_class == DecoderClass::kExact;
  RETURN_IF_ERROR(exact ? CheckDeviceForms(graph) : CheckDecoderForms(graph));
  const size_t row_bytes = graph.schema.row_bytes();
  const size_t padding = graph.schema.fields.size() * kFieldPadding;
  if (row_bytes + padding > group_bytes)
    return Unimplemented(
        "a row of {} bytes does not fit a GPU's groups of {} bytes "
        "(--gpu-group-bytes)",
        row_bytes, group_bytes);
  uint64_t rows = std::clamp<uint64_t>((group_bytes - padding) / row_bytes, 1,
                                       kMaxGpuGroupRows);
  ASSIGN_OR_RETURN(std::unique_ptr<FusedProgram> fused,
                   CompileWithRoom(graph, slot_bytes, &rows));
  ASSIGN_OR_RETURN(
      program->most_rows,
      MostRows(*fused, exact ? std::min<size_t>(rows, kFewestRows) : 1, rows,
               slot_bytes));
  program->fused = std::move(fused);
  return absl::OkStatus();
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
                                         DecoderClass decoder_class,
                                         uint64_t group_bytes,
                                         uint64_t slot_bytes) {
  GpuProgram program{.decoder_class = decoder_class,
                     .fields = graph.schema.fields.size()};
  ASSIGN_OR_RETURN(program.cpu, RowProgram::Compile(graph));
  const absl::Status fused = Fuse(graph, group_bytes, slot_bytes, &program);
  if (fused.ok()) return program;
  if (decoder_class != DecoderClass::kExact || !absl::IsUnimplemented(fused))
    return fused;
  LOG_INFO("gpu.rows_by_cpu reason=\"{}\"", Message(fused));
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

// A lost GPU has slots, too, for groups that are then refused. Groups in the
// memory of a GPU that does not compute the job are refused as well.
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
