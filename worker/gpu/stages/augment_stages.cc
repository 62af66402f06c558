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
#include <memory>
#include <type_traits>
#include <variant>

#include "core/status.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/image_stages.h"
#include "worker/gpu/stages/row_stage.h"

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

// Adds a launch for the samples whose operation is a Form: `write` makes their
// descriptors. The others are left out.
template <class Form, class Write>
void AddLaunch(StageKind kind, const Step& step, size_t time,
               const std::vector<StageTensor>& in, const StageTensor& out,
               uint32_t threads, StageBuilder* builder, const Write& write) {
  using Row = std::invoke_result_t<Write, const Form&, const StageRow&>;
  builder->Add(std::make_unique<RowStage<Row>>(
      kind, in, out, threads,
      [step, time, write](const StageRow& row,
                          const StageMemory&) -> absl::StatusOr<Row> {
        ASSIGN_OR_RETURN(const AugmentationForm operation,
                         OperationOf(step, row, time));
        const auto* form = std::get_if<Form>(&operation);
        return form == nullptr ? Row() : write(*form, row);
      }));
}

uint32_t ChannelsOf(const StageTensor& image) {
  return static_cast<uint32_t>(image.shape[2]);
}

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

// Adds operations that map bytes. Samples that need no counts are left out of
// the first launch.
void AddByteMap(const Step& step, size_t time, const StageTensor& image,
                const StageTensor& out, StageBuilder* builder) {
  const StageTensor counts = NewCounts(image, builder);
  AddLaunch<ByteTableForm>(
      StageKind::kCount, step, time, {image}, counts, ThreadsFor(image),
      builder, [image](const ByteTableForm& form, const StageRow& row) {
        if (!NeedsCounts(form.kind)) return CountRow();
        return CountRow{.head = HeadOf(ElementsOf(row.SizesOf(image))),
                        .in = row.AddressOf(image),
                        .channels = ChannelsOf(image)};
      });
  const StageTensor tables =
      builder->NewValue(DType::kUint8, {image.shape[2], 256});
  AddLaunch<ByteTableForm>(
      StageKind::kByteTable, step, time, {counts}, tables, ThreadsFor(tables),
      builder,
      [image, counts, tables](const ByteTableForm& form, const StageRow& row) {
        return ByteTableRow{
            .head = HeadOf(ThreadsFor(tables)),
            .counts = row.AddressOf(counts),
            .kind = form.kind,
            .channels = ChannelsOf(image),
            .number = form.number,
            .factor = form.factor,
            .constant = form.constant,
            .pixels = static_cast<double>(PixelsOf(row.SizesOf(image)))};
      });
  AddLaunch<ByteTableForm>(
      StageKind::kByteLookup, step, time, {tables, image}, out, ThreadsFor(out),
      builder, [image, tables](const ByteTableForm&, const StageRow& row) {
        return ByteLookupRow{.head = HeadOf(ElementsOf(row.SizesOf(image))),
                             .in = row.AddressOf(image),
                             .tables = row.AddressOf(tables),
                             .channels = ChannelsOf(image)};
      });
}

// Adds operation number `time` of a sample.
void AddOperation(const Step& step, size_t time, bool others,
                  const StageTensor& image, const StageTensor& out,
                  StageBuilder* builder) {
  AddByteMap(step, time, image, out, builder);
  if (!others) return;
  AddLaunch<MatrixForm>(
      StageKind::kPixels, step, time, {image}, out, PixelThreadsFor(out),
      builder, [image, out](const MatrixForm& form, const StageRow& row) {
        return PixelsRowOf(form, row, image, out);
      });
  AddLaunch<WarpForm>(StageKind::kWarp, step, time, {image}, out,
                      PixelThreadsFor(out), builder,
                      [image, out](const WarpForm& form, const StageRow& row) {
                        return WarpRowOf(form, row, image, out);
                      });
  AddLaunch<SharpenForm>(
      StageKind::kSharpen, step, time, {image}, out, ThreadsFor(out), builder,
      [image](const SharpenForm& form, const StageRow& row) {
        const Sizes sizes = row.SizesOf(image);
        return SharpenRow{.head = HeadOf(ElementsOf(sizes)),
                          .in = row.AddressOf(image),
                          .weights = form.weights,
                          .height = static_cast<int32_t>(sizes[0]),
                          .width = static_cast<int32_t>(sizes[1]),
                          .channels = static_cast<int32_t>(sizes[2])};
      });
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
