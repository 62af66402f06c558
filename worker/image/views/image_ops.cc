// SPDX-License-Identifier: Apache-2.0
#include "worker/image/views/image_ops.h"

#include <algorithm>
#include <cstring>

#include "core/status.h"
#include "worker/image/resample/gather.h"

namespace leat::worker {
namespace {

double ValueOf(const PerSampleArg<double>& arg,
               const std::vector<Tensor>& values) {
  if (!arg.value) return arg.constant;
  float value;
  memcpy(&value, values[*arg.value].data, sizeof value);
  return value;
}

bool ValueOf(const PerSampleArg<bool>& arg, const std::vector<Tensor>& values) {
  if (!arg.value) return arg.constant;
  return values[*arg.value].data[0] != std::byte{0};
}

uint8_t* AsBytes(std::byte* p) { return reinterpret_cast<uint8_t*>(p); }

// Receives rows of pixels, and passes them through the resampler or straight to
// the output. For rule "dali" it collects them in memory until Finish.
class RowSink {
 public:
  // `channels`: of the result; rows arrive with 1 or 4 bytes per pixel.
  RowSink(const View& view, int channels, ImageScratch& scratch, std::byte* out)
      : view_(view),
        channels_(channels),
        scratch_(scratch),
        row_bytes_(static_cast<size_t>(view.size().width) * channels),
        out_(out) {}

  // Returns the part of the source that must be fed.
  absl::StatusOr<Rect> Start() {
    const int64_t height = view_.size().height;
    std::byte* const last = out_ + (height - 1) * row_bytes_;
    next_ = view_.mirror_y() ? last : out_;
    step_ = static_cast<ptrdiff_t>(row_bytes_) * (view_.mirror_y() ? -1 : 1);
    if (!view_.resampled()) return view_.before();
    if (view_.by_dali()) return StartDali();
    const Rect part = BuildTables(view_, &scratch_.resampler.horizontal(),
                                  &scratch_.resampler.vertical());
    RETURN_IF_ERROR(
        scratch_.resampler.Start(channels_, AsBytes(next_), step_, &scratch_));
    return part;
  }

  void Feed(const PixelRows& rows) {
    if (view_.by_dali()) return Keep(rows);
    if (view_.resampled()) return scratch_.resampler.Feed(rows);
    const auto width = static_cast<size_t>(view_.size().width);
    for (int i = 0; i < rows.count; ++i, next_ += step_) {
      const uint8_t* row = rows.first + i * rows.stride;
      if (channels_ == 1)
        memcpy(next_, row, width);
      else
        BestKernels().compact(row, width, AsBytes(next_));
      if (view_.mirror_x()) MirrorRow(next_, width, channels_);
    }
  }

  // Called after the last row.
  absl::Status Finish() {
    if (!view_.by_dali()) return absl::OkStatus();
    const uint8_t* const first = AsBytes(scratch_.window.data());
    return scratch_.dali.Run(
        {first, kept_pitch_, channels_ == 1 ? size_t{1} : size_t{4}, kept_},
        static_cast<size_t>(channels_), AsBytes(next_), step_, &scratch_);
  }

 private:
  absl::StatusOr<Rect> StartDali() {
    const Rect part = scratch_.dali.Plan(view_);
    kept_pitch_ = static_cast<size_t>(part.width) * (channels_ == 1 ? 1 : 4);
    RETURN_IF_ERROR(scratch_.Reserve(
        kept_pitch_ * static_cast<size_t>(part.height), &scratch_.window));
    kept_ = AsBytes(scratch_.window.data());
    return part;
  }
  void Keep(const PixelRows& rows) {
    for (int i = 0; i < rows.count; ++i, kept_ += kept_pitch_)
      memcpy(kept_, rows.first + i * rows.stride, kept_pitch_);
  }

  const View& view_;
  const int channels_;
  ImageScratch& scratch_;
  const size_t row_bytes_;
  std::byte* const out_;
  std::byte* next_ = nullptr;
  ptrdiff_t step_ = 0;
  uint8_t* kept_ = nullptr;  // after the rows in scratch_.window
  size_t kept_pitch_ = 0;
};

template <class Pixel>
void Turn(const Pixel* stored, StoredSize size, size_t stored_pitch,
          Orientation o, Pixel* turned, size_t turned_pitch) {
  const TurnedSize out = o.Turned(size);
  for (int64_t y = 0; y < out.height; ++y)
    for (int64_t x = 0; x < out.width; ++x) {
      const int64_t u = o.transposed ? y : x;
      const int64_t v = o.transposed ? x : y;
      turned[y * turned_pitch + x] =
          stored[(o.mirror_y ? size.height - 1 - v : v) * stored_pitch +
                 (o.mirror_x ? size.width - 1 - u : u)];
    }
}

// Decodes `window` of the turned image whole, turns it, and feeds its rows.
absl::Status FeedTurned(const TurnedRect& window, Orientation orientation,
                        bool gray, bool partial, ImageScratch& scratch,
                        RowSink& sink) {
  const size_t pixel = gray ? 1 : 4;
  const StoredRect rect = orientation.Stored(window, scratch.decoder.size());
  const auto pitch = static_cast<size_t>(rect.width);
  const size_t out_pitch =
      static_cast<size_t>(window.width) + kRowPadding / pixel;
  RETURN_IF_ERROR(
      scratch.Reserve(pitch * rect.height * pixel, &scratch.stored));
  RETURN_IF_ERROR(
      scratch.Reserve(out_pitch * window.height * pixel, &scratch.turned));
  RETURN_IF_ERROR(scratch.decoder.Start(rect, gray, partial));
  PixelRows rows;
  for (int64_t y = 0; y < rect.height; y += rows.count) {
    RETURN_IF_ERROR(scratch.decoder.ReadRows(&rows));
    for (int i = 0; i < rows.count; ++i)
      memcpy(scratch.stored.data() + (y + i) * pitch * pixel,
             rows.first + i * rows.stride, pitch * pixel);
  }
  const StoredSize size{rect.height, rect.width};
  if (gray)
    Turn(AsBytes(scratch.stored.data()), size, pitch, orientation,
         AsBytes(scratch.turned.data()), out_pitch);
  else
    Turn(reinterpret_cast<const uint32_t*>(scratch.stored.data()), size, pitch,
         orientation, reinterpret_cast<uint32_t*>(scratch.turned.data()),
         out_pitch);
  sink.Feed({AsBytes(scratch.turned.data()), out_pitch * pixel,
             static_cast<int>(window.height)});
  return absl::OkStatus();
}

// Feeds the rows of an image: RGB as 4-byte pixels, a few rows at a time; gray
// unchanged; other numbers of channels one channel at a time.
absl::Status FeedTensor(const Rect& window, const Tensor& image, int channel,
                        ImageScratch& scratch, RowSink& sink) {
  const auto channels = static_cast<size_t>(image.dims[2]);
  const size_t in_pitch = static_cast<size_t>(image.dims[1]) * channels;
  const auto width = static_cast<size_t>(window.width);
  const size_t pitch = width * 4 + kRowPadding;
  RETURN_IF_ERROR(scratch.Reserve(kRowsAtOnce * pitch, &scratch.rows));
  uint8_t* const rows = AsBytes(scratch.rows.data());
  for (int64_t y = 0; y < window.height; y += kRowsAtOnce) {
    const int count =
        static_cast<int>(std::min<int64_t>(kRowsAtOnce, window.height - y));
    for (int i = 0; i < count; ++i) {
      const uint8_t* from = AsBytes(image.data) +
                            (window.y + y + i) * in_pitch + window.x * channels;
      uint8_t* to = rows + i * pitch;
      if (channel < 0)
        BestKernels().expand(from, width, to);
      else
        for (size_t x = 0; x < width; ++x) to[x] = from[x * channels + channel];
    }
    sink.Feed({rows, pitch, count});
  }
  return absl::OkStatus();
}

// Copies pixels: every pixel of the result is one of the image's.
void CopyNearest(const View& view, const Tensor& image, ImageScratch& scratch,
                 std::byte* out) {
  const ResampleTable& across = scratch.resampler.horizontal();
  const ResampleTable& down = scratch.resampler.vertical();
  BuildTables(view, &scratch.resampler.horizontal(),
              &scratch.resampler.vertical());
  const auto take = [](const ResampleTable& table, int64_t first, bool turned,
                       std::vector<int32_t>* taken) {
    taken->resize(static_cast<size_t>(table.size()));
    for (int i = 0; i < table.size(); ++i)
      (*taken)[static_cast<size_t>(turned ? table.size() - 1 - i : i)] =
          table.entry(i).start + static_cast<int32_t>(first);
  };
  take(across, view.before().x, false, &scratch.columns_taken);
  take(down, view.before().y, view.mirror_y(), &scratch.rows_taken);
  const auto channels = static_cast<size_t>(image.dims[2]);
  const size_t pitch = static_cast<size_t>(image.dims[1]) * channels;
  const uint8_t* const pixels = AsBytes(image.data);
  Gather({.first = pixels,
          .pitch = pitch,
          .step = channels,
          .end = pixels + static_cast<size_t>(image.dims[0]) * pitch,
          .channels = channels,
          .rows = scratch.rows_taken,
          .columns = scratch.columns_taken},
         AsBytes(out),
         static_cast<ptrdiff_t>(scratch.columns_taken.size() * channels),
         &scratch.offsets_taken);
}

absl::Status ResampleByDali(const View& view, const Tensor& image,
                            ImageScratch& scratch, std::byte* out) {
  const Rect part = scratch.dali.Plan(view);
  const auto step = static_cast<size_t>(image.dims[2]);
  const size_t pitch = static_cast<size_t>(image.dims[1]) * step;
  const uint8_t* const pixels = AsBytes(image.data);
  const size_t stride = static_cast<size_t>(view.size().width) * step;
  const size_t rows = static_cast<size_t>(view.size().height);
  uint8_t* const first =
      AsBytes(out) + (view.mirror_y() ? (rows - 1) * stride : 0);
  return scratch.dali.Run(
      {pixels + static_cast<size_t>(part.y) * pitch +
           static_cast<size_t>(part.x) * step,
       pitch, step, pixels + static_cast<size_t>(image.dims[0]) * pitch},
      step, first,
      view.mirror_y() ? -static_cast<ptrdiff_t>(stride)
                      : static_cast<ptrdiff_t>(stride),
      &scratch);
}

absl::Status ResampleChannelwise(const View& view, const Tensor& image,
                                 ImageScratch& scratch, std::byte* out) {
  const auto channels = static_cast<size_t>(image.dims[2]);
  const size_t pixels =
      static_cast<size_t>(view.size().height) * view.size().width;
  RETURN_IF_ERROR(scratch.Reserve(pixels, &scratch.plane));
  for (size_t c = 0; c < channels; ++c) {
    RowSink sink(view, 1, scratch, scratch.plane.data());
    ASSIGN_OR_RETURN(const Rect part, sink.Start());
    RETURN_IF_ERROR(
        FeedTensor(part, image, static_cast<int>(c), scratch, sink));
    for (size_t i = 0; i < pixels; ++i)
      out[i * channels + c] = scratch.plane[i];
  }
  return absl::OkStatus();
}

absl::StatusOr<Resizing> ResizingOf(const ImageOp& op, ImageSize size,
                                    const std::vector<Tensor>& values) {
  if (!op.side) return op.resize.Of(size);
  ASSIGN_OR_RETURN(const ResizeRule rule,
                   WithSide(op.resize, ValueOf(*op.side, values)));
  return rule.Of(size);
}

// Under rule "dali" the window is a region of the image, and pixels around it
// count where the filter reaches them.
void DrawAndResize(const ImageOp& op, const Rect& window, View* view) {
  if (!op.filters.dali) {
    view->Crop(window);
    return view->Resize(op.size, op.filters);
  }
  const auto part = [](int64_t begin, int64_t size) {
    return Resizing::Part{static_cast<double>(begin),
                          static_cast<double>(begin + size)};
  };
  view->Resize(
      {op.size, part(window.y, window.height), part(window.x, window.width)},
      op.filters);
}

absl::Status Apply(const ImageOp& op, const RowInput& input,
                   const std::vector<Tensor>& values, View* view) {
  const ImageSize size = view->size();
  switch (op.kind) {
    case ImageOp::Kind::kRandomResizedCrop:
      RETURN_IF_ERROR(CheckResized(size));
      DrawAndResize(op, DrawnWindow(op, input, size), view);
      break;
    case ImageOp::Kind::kResize: {
      ASSIGN_OR_RETURN(const Resizing resizing, ResizingOf(op, size, values));
      view->Resize(resizing, op.filters);
      break;
    }
    case ImageOp::Kind::kRandomCrop:
      view->Crop(DrawnWindow(op, input, size));
      break;
    case ImageOp::Kind::kWindow: {
      ASSIGN_OR_RETURN(
          const WindowParts parts,
          op.place.At(size, ValueOf(op.pos_y, values),
                      ValueOf(op.pos_x, values), ValueOf(op.height, values),
                      ValueOf(op.width, values)));
      const auto& [rows, columns] = parts;
      view->Crop({columns.begin, rows.begin, columns.size(), rows.size()});
      break;
    }
    case ImageOp::Kind::kCrop: {
      Rect window;
      RETURN_IF_ERROR(CropWindow(size, op.size, ValueOf(op.pos_y, values),
                                 ValueOf(op.pos_x, values), &window));
      view->Crop(window);
      break;
    }
    case ImageOp::Kind::kFlip:
      view->Flip(ValueOf(op.horizontal, values), ValueOf(op.vertical, values));
      break;
    case ImageOp::Kind::kColours:  // moves nothing
      break;
  }
  return absl::OkStatus();
}

}  // namespace

Rect DrawnWindow(const ImageOp& op, const RowInput& input, ImageSize size) {
  SampleRng rng(input.seed, input.epoch, input.sample, op.node);
  return op.window.Draw(size, &rng);
}

absl::Status ComposeView(const std::vector<ImageOp>& ops, const RowInput& input,
                         const std::vector<Tensor>& values, View* view) {
  for (const ImageOp& op : ops) RETURN_IF_ERROR(Apply(op, input, values, view));
  return absl::OkStatus();
}

Rect BuildTables(const View& view, ResampleTable* horizontal,
                 ResampleTable* vertical) {
  const Rect& from = view.before();
  const Rect& after = view.after();
  horizontal->Build(view.across(), static_cast<int>(after.x),
                    static_cast<int>(after.width), view.mirror_x());
  vertical->Build(view.down(), static_cast<int>(after.y),
                  static_cast<int>(after.height), false);
  return {from.x + horizontal->first_input(), from.y + vertical->first_input(),
          horizontal->end_input() - horizontal->first_input(),
          vertical->end_input() - vertical->first_input()};
}

Rect PartRead(const View& view, ImageScratch& scratch) {
  if (!view.resampled()) return view.before();
  if (view.by_dali()) return scratch.dali.Plan(view);
  return BuildTables(view, &scratch.resampler.horizontal(),
                     &scratch.resampler.vertical());
}

absl::Status RunOnJpeg(const View& view, Orientation orientation, bool gray,
                       bool partial, ImageScratch& scratch, std::byte* out) {
  if (!view.resampled() && !view.mirror_x() && orientation.identity() &&
      scratch.decoder.CanReadInto(view.before())) {
    const ptrdiff_t row = view.size().width * (gray ? 1 : 3);
    uint8_t* const top = AsBytes(out);
    if (!view.mirror_y())
      return scratch.decoder.ReadInto(view.before(), gray, partial, top, row);
    return scratch.decoder.ReadInto(view.before(), gray, partial,
                                    top + (view.size().height - 1) * row, -row);
  }
  RowSink sink(view, gray ? 1 : 3, scratch, out);
  ASSIGN_OR_RETURN(const Rect part, sink.Start());
  if (!orientation.identity()) {
    RETURN_IF_ERROR(FeedTurned(TurnedRect(part), orientation, gray, partial,
                               scratch, sink));
    return sink.Finish();
  }
  RETURN_IF_ERROR(scratch.decoder.Start(part, gray, partial));
  PixelRows rows;
  for (int64_t y = 0; y < part.height; y += rows.count) {
    RETURN_IF_ERROR(scratch.decoder.ReadRows(&rows));
    sink.Feed(rows);
  }
  return sink.Finish();
}

absl::Status RunOnTensor(const View& view, const Tensor& image,
                         ImageScratch& scratch, std::byte* out) {
  if (!view.resampled()) {
    CopyWindow(image, view.before(), view.mirror_x(), view.mirror_y(), out);
    return absl::OkStatus();
  }
  if (view.by_dali()) return ResampleByDali(view, image, scratch, out);
  if (view.across().filter == Filter::kNearest &&
      view.down().filter == Filter::kNearest) {
    CopyNearest(view, image, scratch, out);
    return absl::OkStatus();
  }
  const auto channels = static_cast<int>(image.dims[2]);
  if (channels != 1 && channels != 3)
    return ResampleChannelwise(view, image, scratch, out);
  RowSink sink(view, channels, scratch, out);
  ASSIGN_OR_RETURN(const Rect part, sink.Start());
  return FeedTensor(part, image, channels == 1 ? 0 : -1, scratch, sink);
}

}  // namespace leat::worker
