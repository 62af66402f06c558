// SPDX-License-Identifier: Apache-2.0
//
// A file of CIFAR-10 and of CIFAR-100: a label that is read is within the
// range.
#include <cstring>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "worker/source/formats.h"

namespace leat::worker::cifar_fuzz {
namespace {

void Run(std::string_view bytes) {
  const NamedFile file(bytes);
  const SourceLimits limits = {.listing_threads = 1};
  for (const SourceFormat* format : {&kCifar10Format, &kCifar100Format}) {
    const Node reader{
        .op = std::string(format->op),
        .inputs = {},
        .args = {{"paths", std::vector<std::string>{file.path()}}}};
    const auto index = format->build(reader, limits);
    if (!index.ok()) continue;
    const auto source = format->open(reader, index->blob, limits);
    fuzz::Require(source.ok());
    for (uint64_t i = 0; i < 3 && i < (*source)->num_samples(); ++i) {
      const auto sample = (*source)->Read(i);
      if (!sample.ok()) continue;
      int32_t label = -1;
      std::memcpy(&label, sample->fields[1].bytes.data(), sizeof label);
      fuzz::Require(label >= 0 && label < 100);
    }
  }
}

std::vector<std::string> Seeds() {
  const std::string planes(3072, 'p');
  return {"\x05" + planes + "\x09" + planes, "\x0a" + planes,
          std::string("\x13\x63", 2) + planes};
}

const fuzz::Target kTarget(
    {.name = "cifar", .run = Run, .seeds = Seeds, .runs = 300});

}  // namespace
}  // namespace leat::worker::cifar_fuzz
