// SPDX-License-Identifier: Apache-2.0
//
// A .npy file: listed both as a sample and as an array of rows, and read.
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "worker/source/arrays/numpy.h"

namespace leat::worker::numpy_fuzz {
namespace {

void Run(std::string_view bytes) {
  const NamedFile file(bytes);
  const SourceLimits limits = {.listing_threads = 1};
  for (const bool rows : {false, true}) {
    Node reader{.op = "readers.numpy", .inputs = {}, .args = {}};
    if (rows)
      reader.args["array"] = file.path();
    else
      reader.args["files"] = std::vector<std::string>{file.path()};
    const auto index = BuildNumpyIndex(reader, limits);
    if (!index.ok()) continue;
    const auto source = OpenNumpy(reader, index->blob, limits);
    fuzz::Require(source.ok());  // it was just listed
    for (uint64_t i = 0; i < 3 && i < (*source)->num_samples(); ++i)
      (void)(*source)->Read(i);
  }
}

std::string NumpyOf(const std::string& dict, const std::string& data) {
  std::string header = dict;
  header.resize((10 + dict.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  return std::string("\x93NUMPY\x01\0", 8) +
         static_cast<char>(header.size() % 256) +
         static_cast<char>(header.size() / 256) + header + data;
}

std::vector<std::string> Seeds() {
  return {NumpyOf("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                  std::string(24, 'a')),
          NumpyOf("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2), }",
                  "abcd"),
          NumpyOf("{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }",
                  std::string("\0\1\2", 3)),
          NumpyOf("{'descr': '<i8', 'fortran_order': False, 'shape': (), }",
                  "12345678")};
}

const fuzz::Target kTarget(
    {.name = "numpy", .run = Run, .seeds = Seeds, .runs = 1000});

}  // namespace
}  // namespace leat::worker::numpy_fuzz
