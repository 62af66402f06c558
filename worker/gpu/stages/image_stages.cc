// SPDX-License-Identifier: Apache-2.0
//
// Operators on images: maps of colours, views, warps, blur.
#include "worker/gpu/stages/image_stages.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/kernels/stages.h"
#include "worker/gpu/layout/fused_layout.h"
#include "worker/gpu/layout/table_copy.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/map_stage.h"
#include "worker/gpu/stages/row_stage.h"

namespace leat::worker {
namespace {

constexpr int64_t kMostWarpChannels = 4;
constexpr size_t kMostBlurWeights = 256;
// Bounds on the tables of a row's resampling, and on the pixels that one thread
// adds up.
constexpr uint64_t kMostTableBytes = uint64_t{64} << 10;
constexpr uint64_t kMostTaps = uint64_t{1} << 21;
// The tables' room if sizes differ from row to row: enough for sides of up to
// 2,400 pixels to 224 with linear, of up to 800 with lanczos3.
constexpr uint64_t kRowTableBytes = uint64_t{24} << 10;

// --- Views ------------------------------------------------------------------

absl::StatusOr<View> ViewFor(const ImageStep& image, Sizes in, Sizes out,
                             const StageRow& row) {
  View view(ImageSize{in[0], in[1]});
  RETURN_IF_ERROR(ComposeView(image.ops, row.input(), row.values(), &view));
  const ImageSize size = view.size();
  if (size.height != out[0] || size.width != out[1])
    return Internal("view of {} × {}, want {} × {}", size.width, size.height,
                    out[1], out[0]);
  return view;
}

// Sets up a view that copies pixels unchanged.
absl::Status PlaceWindow(const View& view, Sizes in, MapRow* map) {
  const Rect& window = view.before();
  const int64_t element = static_cast<int64_t>(SizeOf(map->in[0].dtype));
  int64_t steps[3] = {in[1] * in[2], in[2], 1};
  int64_t first = window.y * steps[0] + window.x * steps[1];
  if (view.mirror_y()) {
    first += (window.height - 1) * steps[0];
    steps[0] = -steps[0];
  }
  if (view.mirror_x()) {
    first += (window.width - 1) * steps[1];
    steps[1] = -steps[1];
  }
  for (int axis = 0; axis < 3; ++axis)
    map->in[0].steps[axis] = static_cast<int32_t>(steps[axis]);
  map->in[0].at += static_cast<uint64_t>(first * element);
  return absl::OkStatus();
}

uint32_t StripsOf(Sizes image) {
  return FusedStrips(static_cast<uint32_t>(image[1]),
                     static_cast<uint32_t>(image[0]));
}

// Makes the descriptors of a resampled view, with tables in the stage's memory.
struct Resampling {
  absl::StatusOr<ResampleRow> RowOf(const StageRow& row,
                                    const StageMemory& memory) const {
    const Sizes sizes = row.SizesOf(in), out_sizes = row.SizesOf(out);
    ASSIGN_OR_RETURN(const View view, ViewFor(std::get<ImageStep>(step.what),
                                              sizes, out_sizes, row));
    const ImageSize size = view.size();
    ResampleRow result{.head = HeadOf(StripsOf(out_sizes)),
                       .view = {.width = static_cast<uint32_t>(size.width),
                                .height = static_cast<uint32_t>(size.height)},
                       .tables = memory.extra_at,
                       .channels = static_cast<uint32_t>(sizes[2])};
    Rect part;
    if (view.by_dali()) {
      ASSIGN_OR_RETURN(part, WriteDali(view, sizes, memory, &result.from));
    } else {
      ASSIGN_OR_RETURN(part, WriteTables(view, sizes, memory, &result.from));
    }
    const int64_t pitch = sizes[1] * sizes[2];
    result.from.step_x = static_cast<int32_t>(sizes[2]);
    result.from.step_y = static_cast<int32_t>(pitch);
    result.from.step_c = 1;
    result.from.source =
        row.AddressOf(in) +
        static_cast<uint64_t>(part.y * pitch + part.x * sizes[2]);
    return result;
  }

  absl::Status CheckRoom(uint64_t bytes, Sizes sizes, int across,
                         int down) const {
    const auto taps =
        static_cast<uint64_t>(across) *
        static_cast<uint64_t>(std::min(sizes[0], int64_t{kStripRows} * down));
    if (bytes <= table_bytes && taps <= kMostTaps) return absl::OkStatus();
    return ResourceExhausted(
        "resampling takes tables of {} bytes and {} pixels in one thread",
        bytes, taps);
  }
  // Both functions return the part that is read.
  absl::StatusOr<Rect> WriteTables(const View& view, Sizes sizes,
                                   const StageMemory& memory,
                                   FusedRow* row) const {
    const int across = ResampleTable::MostTaps(view.across());
    const int down = ResampleTable::MostTaps(view.down());
    const ImageSize size = view.size();
    RETURN_IF_ERROR(CheckRoom(TableBytes(size.width, across, size.height, down),
                              sizes, across, down));
    ResampleTable horizontal, vertical;
    const Rect part = BuildTables(view, &horizontal, &vertical);
    CopyTables(horizontal, vertical, view.mirror_y(), memory.extra, 0, row);
    return part;
  }
  absl::StatusOr<Rect> WriteDali(const View& view, Sizes sizes,
                                 const StageMemory& memory,
                                 FusedRow* row) const {
    DaliTable across, down;
    across.SetAxis(view.across());
    down.SetAxis(view.down());
    RETURN_IF_ERROR(CheckRoom(DaliTableBytes(across, down, view.size()), sizes,
                              across.taps(), down.taps()));
    const Rect part = BuildDaliTables(view, &across, &down);
    CopyDaliTables(across, down, view.mirror_y(), memory.extra, 0, row);
    return part;
  }

  Step step;
  StageTensor in, out;
  size_t table_bytes;
};

// Returns the bytes of the tables of any view of the image; kUnimplemented: too
// many.
absl::StatusOr<size_t> TableRoom(const ImageStep& image, const Shape& in,
                                 const Shape& out) {
  uint64_t most = 0;
  for (const ImageOp& op : image.ops) {
    if (!op.Resamples()) continue;
    const auto taps = [&](int64_t from, int64_t to) {
      ResampleAxis axis =
          ResampleAxis::Whole(static_cast<int>(from), static_cast<int>(to),
                              op.filters.shrink, op.filters.antialias);
      const int shrunk = ResampleTable::MostTaps(axis);
      axis.filter = op.filters.other;
      axis.end = axis.out;
      return std::max(shrunk, ResampleTable::MostTaps(axis));
    };
    // Rule "dali" has more taps, and twice the bytes per tap.
    const int64_t wide = op.filters.dali ? 2 : 1;
    const int64_t more = op.filters.dali ? 2 : 0;
    most =
        std::max(most, TableBytes(out[1], (taps(in[1], out[1]) + more) * wide,
                                  out[0], (taps(in[0], out[0]) + more) * wide));
  }
  if (most > kMostTableBytes)
    return Unimplemented("its tables may take {} bytes, over the limit of {}",
                         most, kMostTableBytes);
  return static_cast<size_t>(most);
}

// --- Blur -------------------------------------------------------------------

// Describes a row's pass of a blur, across or down its image, and copies the
// weights to the row's memory. kResourceExhausted: too many weights.
absl::StatusOr<BlurRow> BlurRowOf(const Step& step, const StageTensor& in,
                                  bool across, const StageRow& row,
                                  const StageMemory& memory) {
  ASSIGN_OR_RETURN(const auto form, FormFor<BlurForm>(step, row));
  if (form.weights.size() > kMostBlurWeights)
    return ResourceExhausted("a blur of {} weights, over the limit of {}",
                             form.weights.size(), kMostBlurWeights);
  memcpy(memory.extra, form.weights.data(),
         form.weights.size() * sizeof(float));
  const Sizes sizes = row.SizesOf(in);
  return BlurRow{.head = HeadOf(ElementsOf(sizes)),
                 .in = row.AddressOf(in),
                 .in_dtype = in.dtype,
                 .across = across,
                 .radius = static_cast<int32_t>(form.weights.size()) - 1,
                 .weights = memory.extra_at,
                 .height = static_cast<int32_t>(sizes[0]),
                 .width = static_cast<int32_t>(sizes[1]),
                 .channels = static_cast<int32_t>(sizes[2])};
}

}  // namespace

absl::Status WantChannels(const StageTensor& image, int64_t most) {
  if (image.shape[2] >= 1 && image.shape[2] <= most) return absl::OkStatus();
  return Unimplemented("an image of {} channels, want 1 to {}", image.shape[2],
                       most);
}

PixelsRow PixelsRowOf(const MatrixForm& form, const StageRow& row,
                      const StageTensor& in, const StageTensor& out) {
  return {.head = HeadOf(PixelsOf(row.SizesOf(out))),
          .in = row.AddressOf(in),
          .in_dtype = in.dtype,
          .in_channels = static_cast<uint32_t>(in.shape[2]),
          .channels = static_cast<uint32_t>(out.shape[2]),
          .matrix = form.matrix};
}

WarpRow WarpRowOf(const WarpForm& form, const StageRow& row,
                  const StageTensor& in, const StageTensor& out) {
  const Sizes sizes = row.SizesOf(in);
  return {.head = HeadOf(PixelsOf(row.SizesOf(out))),
          .in = row.AddressOf(in),
          .in_dtype = in.dtype,
          .dali = form.dali,
          .nearest = form.nearest,
          .clamped = !form.fill.has_value(),
          .fill = form.fill.value_or(0),
          .in_height = static_cast<int32_t>(sizes[0]),
          .in_width = static_cast<int32_t>(sizes[1]),
          .width = static_cast<uint32_t>(row.SizesOf(out)[1]),
          .channels = static_cast<uint32_t>(sizes[2]),
          .map = form.map,
          .dali_map = form.dali_map};
}

absl::Status AddMatrix(const Step& step, const KernelStep& operation,
                       StageBuilder* builder) {
  const StageTensor in = builder->TensorOf(operation.inputs[0]);
  RETURN_IF_ERROR(WantChannels(in, 3));
  const StageTensor out = builder->NewResult(step.node);
  builder->Add(std::make_unique<RowStage<PixelsRow>>(
      StageKind::kPixels, std::vector{in}, out, PixelThreadsFor(out),
      [step, in, out](const StageRow& row,
                      const StageMemory&) -> absl::StatusOr<PixelsRow> {
        ASSIGN_OR_RETURN(const auto form, FormFor<MatrixForm>(step, row));
        return PixelsRowOf(form, row, in, out);
      }));
  return absl::OkStatus();
}

absl::Status AddView(const Step& step, const ImageStep& image,
                     StageBuilder* builder) {
  const StageTensor in = builder->TensorOf(image.input);
  const StageTensor out = builder->NewResult(step.node);
  const bool resamples = std::ranges::any_of(
      image.ops, [](const ImageOp& op) { return op.Resamples(); });
  if (resamples) {
    size_t bytes = kRowTableBytes;
    if (!in.by_row() && !out.by_row()) {
      ASSIGN_OR_RETURN(bytes, TableRoom(image, in.shape, out.shape));
    }
    builder->Add(std::make_unique<RowStage<ResampleRow>>(
        StageKind::kResample, std::vector{in}, out,
        out.by_row() ? 0 : StripsOf(out.shape),
        [resampling = Resampling{step, in, out, bytes}](
            const StageRow& row, const StageMemory& memory) {
          return resampling.RowOf(row, memory);
        },
        bytes));
    return absl::OkStatus();
  }
  auto stage = std::make_unique<MapStage>(
      out, std::vector{in}, MapRow{},
      [step, in, out](const StageRow& row, const StageMemory&,
                      MapRow* map) -> absl::Status {
        const Sizes sizes = row.SizesOf(in);
        ASSIGN_OR_RETURN(const View view,
                         ViewFor(std::get<ImageStep>(step.what), sizes,
                                 row.SizesOf(out), row));
        return PlaceWindow(view, sizes, map);
      });
  builder->Add(std::move(stage));
  return absl::OkStatus();
}

absl::Status AddWarp(const Step& step, const KernelStep& operation,
                     StageBuilder* builder) {
  const StageTensor in = builder->TensorOf(operation.inputs[0]);
  RETURN_IF_ERROR(WantChannels(in, kMostWarpChannels));
  const StageTensor out = builder->NewResult(step.node);
  builder->Add(std::make_unique<RowStage<WarpRow>>(
      StageKind::kWarp, std::vector{in}, out, PixelThreadsFor(out),
      [step, in, out](const StageRow& row,
                      const StageMemory&) -> absl::StatusOr<WarpRow> {
        ASSIGN_OR_RETURN(const auto form, FormFor<WarpForm>(step, row));
        return WarpRowOf(form, row, in, out);
      }));
  return absl::OkStatus();
}

absl::Status AddBlur(const Step& step, const KernelStep& operation,
                     StageBuilder* builder) {
  const StageTensor in = builder->TensorOf(operation.inputs[0]);
  const StageTensor middle = builder->NewValueLike(DType::kFloat32, in);
  const auto add = [&](const StageTensor& from, const StageTensor& to,
                       bool across) {
    builder->Add(std::make_unique<RowStage<BlurRow>>(
        StageKind::kBlur, std::vector{from}, to, ThreadsFor(to),
        [step, from, across](const StageRow& row, const StageMemory& memory) {
          return BlurRowOf(step, from, across, row, memory);
        },
        kMostBlurWeights * sizeof(float)));
  };
  add(in, middle, false);
  add(middle, builder->NewResult(step.node), true);
  return absl::OkStatus();
}

}  // namespace leat::worker
