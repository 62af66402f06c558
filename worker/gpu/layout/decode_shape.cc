// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/layout/decode_shape.h"

#include <algorithm>

namespace leat::worker {
namespace {

constexpr int64_t kBlock = 8;  // pixels along a side
// pixels along a side, for images that nvJPEG is given
constexpr int64_t kMostMcu = 16;

// Widens [begin, begin + length) along an axis of `size`.
void Widen(int64_t unit, int64_t size, int64_t* begin, int64_t* length) {
  const int64_t end = *begin + *length;
  const int64_t first = std::max<int64_t>(0, (*begin / unit - 1) * unit);
  const int64_t last = std::min(size, ((end + unit - 1) / unit + 1) * unit);
  *begin = first;
  *length = last - first;
}

int64_t Pixels(const DecodeShape& shape) {
  const ImageSize size = DecodedSize(shape);
  return size.width * size.height;
}

}  // namespace

DecodeShape WholeImage(StoredSize stored) {
  return {.region = {0, 0, stored.width, stored.height}};
}

StoredSize DecodedSize(const DecodeShape& shape) {
  return Halved({shape.region.height, shape.region.width}, shape.halvings);
}

StoredSize RoomOf(const DecodeShape& shape) {
  const ImageSize size = DecodedSize(shape);
  const auto whole = [](int64_t side) {
    return (side + kMostMcu - 1) / kMostMcu * kMostMcu;
  };
  return {whole(size.height), whole(size.width)};
}

DecodeShapes ShapesOf(const JpegDecoder::Header& header,
                      const StoredRect& window, int most_halvings) {
  const DecodeShape whole = WholeImage(header.size);
  DecodeShapes shapes;
  const auto add = [&](const DecodeShape& shape) {
    shapes.shapes[shapes.count++] = shape;
  };
  // The blocks of a single component follow one another.
  const bool single = header.components == 1;
  DecodeShape region{.region = window, .cut = true};
  Widen(kBlock * (single ? 1 : header.h_samp[0]), header.size.width,
        &region.region.x, &region.region.width);
  Widen(kBlock * (single ? 1 : header.v_samp[0]), header.size.height,
        &region.region.y, &region.region.height);
  if (region.region != whole.region) add(region);
  if (most_halvings > 0)
    add({.region = whole.region, .halvings = most_halvings});
  if (shapes.count == 2 && Pixels(shapes.shapes[1]) < Pixels(region))
    std::swap(shapes.shapes[0], shapes.shapes[1]);
  add(whole);
  return shapes;
}

int MostHalvings(const View& view) {
  // Rule "dali" has its own tables, which do not exist for halves.
  if (!view.resampled() || view.by_dali()) return 0;
  const auto blurs = [](const ResampleAxis& axis) {
    return axis.antialias && axis.filter != Filter::kNearest;
  };
  return blurs(view.across()) && blurs(view.down()) ? view.MostHalvings() : 0;
}

}  // namespace leat::worker
