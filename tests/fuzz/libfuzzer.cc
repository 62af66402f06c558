// SPDX-License-Identifier: Apache-2.0
//
// The functions that libFuzzer calls, for the only target of the program.
#include <cstdint>

#include "tests/fuzz/target.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max_size, unsigned int seed) {
  const size_t mutated = LLVMFuzzerMutate(data, size, max_size);
  const auto repair = leat::fuzz::Target::All().front().repair;
  if (repair != nullptr && seed % 16 != 0)
    repair({reinterpret_cast<char*>(data), mutated});
  return mutated;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  leat::fuzz::Target::All().front().run(
      {reinterpret_cast<const char*>(data), size});
  return 0;
}
