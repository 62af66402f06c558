// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as a Datum or TensorProtos: the image lies within them and has the
// bytes that its sizes say.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "worker/source/caffe_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using leat::worker::ParseDatum;
  using leat::worker::ParseTensorProtos;
  const auto bytes = std::as_bytes(std::span(data, size));
  for (const auto parse : {ParseDatum, ParseTensorProtos}) {
    const auto record = parse(bytes);
    if (!record.ok()) continue;
    const auto& image = record->image;
    if (!image.empty() &&
        (image.data() < bytes.data() ||
         image.data() + image.size() > bytes.data() + bytes.size()))
      abort();
    if (!record->encoded &&
        (record->height < 1 || record->width < 1 || record->channels < 1 ||
         static_cast<uint64_t>(record->height * record->width *
                               record->channels) != image.size()))
      abort();
  }
  return 0;
}
