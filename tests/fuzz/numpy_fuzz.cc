// SPDX-License-Identifier: Apache-2.0
//
// A .npy file: listed as a sample and as an array of rows, and read.
#include "tests/fuzz/one_file.h"
#include "worker/source/numpy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace leat::worker;
  const OneFile file(data, size);
  SourceLimits limits;
  limits.listing_threads = 1;
  for (const char* how : {"files", "array"}) {
    leat::Node reader{.op = "readers.numpy", .inputs = {}, .args = {}};
    if (how[0] == 'a') reader.args["array"] = file.path();
    if (how[0] == 'f')
      reader.args["files"] = std::vector<std::string>{file.path()};
    const auto index = BuildNumpyIndex(reader, limits);
    if (!index.ok()) continue;
    const auto source = OpenNumpy(reader, index->blob, limits);
    if (!source.ok()) abort();  // what was just listed can be opened
    for (uint64_t i = 0; i < 3 && i < (*source)->num_samples(); ++i)
      (void)(*source)->Read(i);
  }
  return 0;
}
