// SPDX-License-Identifier: Apache-2.0
//
// DecodeShape: the part of an image that nvJPEG's JPEG engines decode, and its
// scale.
//
// Shapes are functions of the image's header and the row's views: never of
// load, of memory or of the other rows of a group. Reasons and sources:
// docs/decisions/0015-nvjpeg-regions-and-scales.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/tensor/image_size.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {

struct DecodeShape {
  StoredRect region;
  bool cut = false;  // true if it is not all of the image
  // The image is decoded at 1 / 2^halvings; if that is not 1, the shape is the
  // whole image: how nvJPEG combines a region with a scale is not documented.
  int halvings = 0;
  friend bool operator==(const DecodeShape&, const DecodeShape&) = default;
};

// Returns the whole image, at full size.
DecodeShape WholeImage(StoredSize stored);
// Returns the size of the decoded pixels.
StoredSize DecodedSize(const DecodeShape& shape);
// Returns the size of the memory that it is decoded into: whole MCUs of any
// sampling. No document says that a decoder which works in MCUs writes only
// those parts of its last ones that lie in the image.
StoredSize RoomOf(const DecodeShape& shape);
// Bytes by which the room of an image of at most kMaxNvjpegImageBytes may
// exceed the image: 45 × (width + height) + 675, and sides are below 65,536.
inline constexpr uint64_t kMostRoomBytes = 4ull << 20;

// Shapes in order of preference: the first one that the engines take is
// decoded.
struct DecodeShapes {
  std::array<DecodeShape, 3> shapes;
  size_t count = 0;
  std::span<const DecodeShape> span() const {
    return std::span(shapes).first(count);
  }
};

// Returns the shapes, best first, for an image whose `window` is read, and
// which may be halved up to `most_halvings` times: the region or the reduced
// image, whichever has fewer pixels (the region, if they have equally many),
// then the other, then the whole.
//
// The region is the window, widened to whole iMCUs and by one more on each
// side, as far as the image goes: upsampled chroma depends on its neighbours,
// and nvJPEG before 13.2 gets it wrong along a region's edge.
// REQUIRES: the window lies inside the image, and is not empty.
DecodeShapes ShapesOf(const JpegDecoder::Header& header,
                      const StoredRect& window, int most_halvings);

// Returns the most halvings that the view permits: it must be resampled with
// antialiasing, neither to the nearest pixel nor by rule "dali", and the rest
// of the shrinking must be at least by 1 along both axes.
int MostHalvings(const View& view);

}  // namespace leat::worker
