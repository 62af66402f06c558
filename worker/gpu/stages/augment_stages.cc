// SPDX-License-Identifier: Apache-2.0
//
// equalize, augment and the policies of automatic augmentation.
//
// A policy draws up to n operations for a sample. Each of the n times has a
// value, and launches for every kind of operation. A sample takes part in the
// launches of its own operation and is left out of the others:
//
//   counts of bytes, a table, a look-up   maps of bytes; also the identity
//   a matrix | a warp | sharpening
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/image_stages.h"
#include "worker/gpu/stages/map_stage.h"

namespace leat::worker {
namespace {

// Returns operation number `time` of the form; the identity, if it has fewer.
absl::StatusOr<AugmentationForm> OperationOf(const Step& step,
                                             const StageRow& row, size_t time) {
  ASSIGN_OR_RETURN(const DeviceForm* const form, row.FormOnce(step));
  const auto* augment = std::get_if<AugmentForm>(form);
  if (augment == nullptr)
    return Internal("node {} has another form", step.node);
  if (augment->operations.size() <= time) return ByteTableForm();
  return augment->operations[time];
}

// A launch for the samples whose operation is a Form.
template <class Form>
class AugmentStage : public Stage {
 public:
  AugmentStage(StageKind kind, const Step& step, size_t time,
               std::vector<StageTensor> in, const StageTensor& out,
               uint32_t threads, size_t descriptor_bytes)
      : Stage(kind, out, threads),
        step_(step),
        time_(time),
        in_(std::move(in)),
        descriptor_bytes_(descriptor_bytes) {}

  size_t descriptor_bytes() const override { return descriptor_bytes_; }
  std::vector<const StageTensor*> operands() const override {
    std::vector<const StageTensor*> all;
    for (const StageTensor& in : in_) all.push_back(&in);
    return all;
  }
  absl::Status Bind(const StageRow& row,
                    const StageMemory& memory) const override {
    ASSIGN_OR_RETURN(const AugmentationForm operation,
                     OperationOf(step_, row, time_));
    memset(memory.descriptor, 0, descriptor_bytes_);
    if (const auto* form = std::get_if<Form>(&operation))
      Write(*form, row, memory.descriptor);
    return absl::OkStatus();
  }

 protected:
  virtual void Write(const Form& form, const StageRow& row,
                     std::byte* descriptor) const = 0;

  const Step step_;
  const size_t time_;
  const std::vector<StageTensor> in_;
  const size_t descriptor_bytes_;
};

uint32_t ChannelsOf(const StageTensor& image) {
  return static_cast<uint32_t>(image.shape[2]);
}

// Counts bytes; samples that need no counts are left out.
class CountStage final : public AugmentStage<ByteTableForm> {
 public:
  CountStage(const Step& step, size_t time, const StageTensor& image,
             const StageTensor& counts)
      : AugmentStage(StageKind::kCount, step, time, {image}, counts,
                     ThreadsFor(image), sizeof(CountRow)) {}

 private:
  void Write(const ByteTableForm& form, const StageRow& row,
             std::byte* descriptor) const override {
    if (!NeedsCounts(form.kind)) return;
    const CountRow count{.head = HeadOf(ElementsOf(row.SizesOf(in_[0]))),
                         .in = row.AddressOf(in_[0]),
                         .channels = ChannelsOf(in_[0])};
    memcpy(descriptor, &count, sizeof count);
  }
};

class ByteTableStage final : public AugmentStage<ByteTableForm> {
 public:
  // `counts` belong to `image`.
  ByteTableStage(const Step& step, size_t time, const StageTensor& counts,
                 const StageTensor& image, const StageTensor& tables)
      : AugmentStage(StageKind::kByteTable, step, time, {counts}, tables,
                     ThreadsFor(tables), sizeof(ByteTableRow)),
        image_(image) {}

 private:
  void Write(const ByteTableForm& form, const StageRow& row,
             std::byte* descriptor) const override {
    const ByteTableRow table{
        .head = HeadOf(threads()),
        .counts = row.AddressOf(in_[0]),
        .kind = form.kind,
        .channels = ChannelsOf(image_),
        .number = form.number,
        .factor = form.factor,
        .constant = form.constant,
        .pixels = static_cast<double>(PixelsOf(row.SizesOf(image_)))};
    memcpy(descriptor, &table, sizeof table);
  }

  const StageTensor image_;
};

class ByteLookupStage final : public AugmentStage<ByteTableForm> {
 public:
  ByteLookupStage(const Step& step, size_t time, const StageTensor& tables,
                  const StageTensor& image, const StageTensor& out)
      : AugmentStage(StageKind::kByteLookup, step, time, {tables, image}, out,
                     ThreadsFor(out), sizeof(ByteLookupRow)) {}

 private:
  void Write(const ByteTableForm&, const StageRow& row,
             std::byte* descriptor) const override {
    const ByteLookupRow lookup{.head = HeadOf(ElementsOf(row.SizesOf(in_[1]))),
                               .in = row.AddressOf(in_[1]),
                               .tables = row.AddressOf(in_[0]),
                               .channels = ChannelsOf(in_[1])};
    memcpy(descriptor, &lookup, sizeof lookup);
  }
};

class SharpenStage final : public AugmentStage<SharpenForm> {
 public:
  SharpenStage(const Step& step, size_t time, const StageTensor& image,
               const StageTensor& out)
      : AugmentStage(StageKind::kSharpen, step, time, {image}, out,
                     ThreadsFor(out), sizeof(SharpenRow)) {}

 private:
  void Write(const SharpenForm& form, const StageRow& row,
             std::byte* descriptor) const override {
    const Sizes sizes = row.SizesOf(in_[0]);
    const SharpenRow sharpen{.head = HeadOf(ElementsOf(sizes)),
                             .in = row.AddressOf(in_[0]),
                             .weights = form.weights,
                             .height = static_cast<int32_t>(sizes[0]),
                             .width = static_cast<int32_t>(sizes[1]),
                             .channels = static_cast<int32_t>(sizes[2])};
    memcpy(descriptor, &sharpen, sizeof sharpen);
  }
};

class MatrixStage final : public AugmentStage<MatrixForm> {
 public:
  MatrixStage(const Step& step, size_t time, const StageTensor& image,
              const StageTensor& out)
      : AugmentStage(StageKind::kPixels, step, time, {image}, out,
                     PixelThreadsFor(out), sizeof(PixelsRow)) {}

 private:
  void Write(const MatrixForm& form, const StageRow& row,
             std::byte* descriptor) const override {
    PixelsRow pixels = PixelsRowOf(form, row, in_[0], out());
    pixels.head = HeadOf(PixelsOf(row.SizesOf(out())));
    memcpy(descriptor, &pixels, sizeof pixels);
  }
};

class MoveStage final : public AugmentStage<WarpForm> {
 public:
  MoveStage(const Step& step, size_t time, const StageTensor& image,
            const StageTensor& out)
      : AugmentStage(StageKind::kWarp, step, time, {image}, out,
                     PixelThreadsFor(out), sizeof(WarpRow)) {}

 private:
  void Write(const WarpForm& form, const StageRow& row,
             std::byte* descriptor) const override {
    WarpRow warp = WarpRowOf(form, row, in_[0], out());
    warp.head = HeadOf(PixelsOf(row.SizesOf(out())));
    memcpy(descriptor, &warp, sizeof warp);
  }
};

// Returns memory for the bytes' counts, set to 0.
StageTensor NewCounts(const StageTensor& image, StageBuilder* builder) {
  constexpr int32_t kZero = 0;
  const StageTensor counts =
      builder->NewValue(DType::kInt32, {image.shape[2], 256});
  const StageTensor zero = builder->NewConstant(
      std::as_bytes(std::span(&kZero, 1)), DType::kInt32, {});
  AddCopy(zero, counts, builder);
  return counts;
}

// Adds operation number `time` of a sample.
void AddOperation(const Step& step, size_t time, bool others,
                  const StageTensor& image, const StageTensor& out,
                  StageBuilder* builder) {
  const StageTensor counts = NewCounts(image, builder);
  builder->Add(std::make_unique<CountStage>(step, time, image, counts));
  const StageTensor tables =
      builder->NewValue(DType::kUint8, {image.shape[2], 256});
  builder->Add(
      std::make_unique<ByteTableStage>(step, time, counts, image, tables));
  builder->Add(
      std::make_unique<ByteLookupStage>(step, time, tables, image, out));
  if (!others) return;
  builder->Add(std::make_unique<MatrixStage>(step, time, image, out));
  builder->Add(std::make_unique<MoveStage>(step, time, image, out));
  builder->Add(std::make_unique<SharpenStage>(step, time, image, out));
}

// Returns the most operations that the node draws for a sample.
int64_t OperationsOf(const Node& node) {
  if (node.op == "auto_augment") return 2;
  if (node.op == "rand_augment") return std::get<int64_t>(node.args.at("n"));
  return 1;
}

}  // namespace

absl::Status AddAugment(const Step& step, const KernelStep& operation,
                        StageBuilder* builder) {
  StageTensor image = builder->TensorOf(operation.inputs[0]);
  RETURN_IF_ERROR(WantChannels(image, 4));
  const int64_t count = OperationsOf(builder->graph().graph.nodes[step.node]);
  const bool others = operation.op != "equalize";
  for (int64_t time = 0; time + 1 < count; ++time) {
    const StageTensor next = builder->NewValueLike(image.dtype, image);
    AddOperation(step, static_cast<size_t>(time), others, image, next, builder);
    image = next;
  }
  AddOperation(step, static_cast<size_t>(std::max<int64_t>(count - 1, 0)),
               others, image, builder->NewResult(step.node), builder);
  return absl::OkStatus();
}

}  // namespace leat::worker
