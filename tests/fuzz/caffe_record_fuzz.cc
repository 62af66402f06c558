// SPDX-License-Identifier: Apache-2.0
//
// A Datum or TensorProtos: the image lies within it and has the size in bytes
// that its sizes imply.
#include <cstdint>
#include <span>

#include "tests/fuzz/target.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "worker/source/lmdb/caffe_record.h"

namespace leat::worker::caffe_record_fuzz {
namespace {

void Run(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  for (const auto parse : {ParseDatum, ParseTensorProtos}) {
    const auto record = parse(bytes);
    if (!record.ok()) continue;
    const auto& image = record->image;
    fuzz::Require(image.empty() ||
                  (image.data() >= bytes.data() &&
                   image.data() + image.size() <= bytes.data() + bytes.size()));
    if (record->encoded) continue;
    fuzz::Require(record->height >= 1 && record->width >= 1 &&
                  record->channels >= 1);
    fuzz::Require(static_cast<uint64_t>(record->height * record->width *
                                        record->channels) == image.size());
  }
}

std::string NumberOf(uint32_t field, uint64_t value) {
  return VarintOf(field << 3) + VarintOf(value);
}

std::vector<std::string> Seeds() {
  const std::string sizes =
      NumberOf(1, 3) + NumberOf(2, 1) + NumberOf(3, 2) + FieldOf(4, "rRgGbB");
  const std::string label =
      FieldOf(1, NumberOf(1, 1) + NumberOf(2, 2) + NumberOf(4, 7));
  const std::string pixels =
      FieldOf(1, NumberOf(1, 1) + NumberOf(1, 2) + NumberOf(1, 3) +
                     NumberOf(2, 3) + FieldOf(5, "rgbrgb"));
  return {sizes + NumberOf(5, 4),
          sizes + NumberOf(5, 4) + NumberOf(7, 1),
          NumberOf(1, 1) + NumberOf(2, 1) + NumberOf(3, 1) +
              VarintOf(6 << 3 | 5) + LittleEndian(0.5f),
          FieldOf(1, NumberOf(2, 4) + FieldOf(6, "jpeg")) + label,
          pixels + label,
          pixels + FieldOf(1, NumberOf(2, 1) + FieldOf(3, LittleEndian(2.f)))};
}

const fuzz::Target kTarget(
    {.name = "caffe_record", .run = Run, .seeds = Seeds, .runs = 5000});

}  // namespace
}  // namespace leat::worker::caffe_record_fuzz
