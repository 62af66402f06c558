// SPDX-License-Identifier: Apache-2.0
//
// ArrayRecord. The first byte says what the rest is: a chunk's data, whose
// hashes are then right, or records of a footer.
#include "tests/fuzz/one_file.h"
#include "tests/worker/riegeli_writer.h"
#include "worker/source/array_record.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leat::worker;
  if (size < 3) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 3, size - 3);
  RiegeliWriter writer;
  const uint64_t at = writer.Chunk(rest, data[1], data[2]);
  std::string bytes = writer.Finish({at}, {1});
  if (data[0] % 2 == 1) {
    RiegeliWriter other;
    std::vector<std::string> footer;
    for (size_t i = 0; i < rest.size();) {
      const size_t length = std::min<size_t>(data[1] % 16 + 1, rest.size() - i);
      footer.push_back(rest.substr(i, i == 0 ? data[2] : length));
      i += footer.back().size() + (footer.back().empty() ? 1 : 0);
    }
    bytes = other.FinishWith(other.Chunk(footer));
  }
  const OneFile file(reinterpret_cast<const uint8_t*>(bytes.data()),
                     bytes.size());
  const leat::Node reader{
      .op = "readers.array_record",
      .inputs = {},
      .args = {{"paths", std::vector<std::string>{file.path()}}}};
  SourceLimits limits;
  limits.listing_threads = 1;
  const auto index = BuildArrayRecordIndex(reader, limits);
  if (!index.ok()) return 0;
  const auto source = OpenArrayRecord(reader, index->blob, limits);
  if (!source.ok()) abort();
  for (uint64_t i = 0; i < 4 && i < (*source)->num_samples(); ++i)
    (void)(*source)->Read(i);
  return 0;
}
