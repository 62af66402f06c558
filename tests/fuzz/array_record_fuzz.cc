// SPDX-License-Identifier: Apache-2.0
//
// ArrayRecord. The first byte selects the rest: a chunk's data, whose hashes
// are then corrected, or records of a footer.
#include <algorithm>

#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tests/worker/source/array_record/riegeli_writer.h"
#include "tests/worker/source/packed/packing.h"
#include "worker/source/array_record/array_record.h"

namespace leat::worker::array_record_fuzz {
namespace {

std::string FileWith(std::string_view bytes) {
  const std::string rest(bytes.substr(3));
  const auto first = static_cast<uint8_t>(bytes[1]);
  const auto second = static_cast<uint8_t>(bytes[2]);
  RiegeliWriter writer;
  if (bytes[0] % 2 == 0) {
    const uint64_t at = writer.Chunk(rest, first, second);
    return writer.Finish({at}, {1});
  }
  std::vector<std::string> footer;
  for (size_t i = 0; i < rest.size();) {
    const size_t length = std::min<size_t>(first % 16 + 1, rest.size() - i);
    footer.push_back(rest.substr(i, i == 0 ? second : length));
    i += footer.back().size() + (footer.back().empty() ? 1 : 0);
  }
  return writer.FinishWith(writer.Chunk(footer));
}

void Run(std::string_view bytes) {
  if (bytes.size() < 3) return;
  const NamedFile file(FileWith(bytes));
  const Node reader{.op = "readers.array_record",
                    .inputs = {},
                    .args = {{"paths", std::vector<std::string>{file.path()}}}};
  const SourceLimits limits = {.listing_threads = 1};
  const auto index = BuildArrayRecordIndex(reader, limits);
  if (!index.ok()) return;
  const auto source = OpenArrayRecord(reader, index->blob, limits);
  fuzz::Require(source.ok());
  for (uint64_t i = 0; i < 4 && i < (*source)->num_samples(); ++i)
    (void)(*source)->Read(i);
}

std::vector<std::string> Seeds() {
  const std::string simple = RiegeliWriter::Simple({"a", "", "bcd"});
  const std::string sizes = "\x01\x03", values = "abcd";
  const std::string packed_sizes = VarintOf(sizes.size()) + Zstd(sizes);
  const std::string packed = "z" + VarintOf(packed_sizes.size()) +
                             packed_sizes + VarintOf(values.size()) +
                             Zstd(values);
  // In groups of one: first the file's footer, then that of a chunk of one
  // record.
  const std::string footer =
      "\x0a\x06\x08\x01\x10\x01\x18\x01" + std::string("\x08\x00\x18\x01", 4);
  return {std::string("\0\x03\x04", 3) + simple,
          std::string("\0\x01\x04", 3) + RiegeliWriter::Simple({"abcd"}),
          std::string("\0\x02\x04", 3) + packed, "\x01\x03\x08" + footer};
}

const fuzz::Target kTarget(
    {.name = "array_record", .run = Run, .seeds = Seeds, .runs = 300});

}  // namespace
}  // namespace leat::worker::array_record_fuzz
