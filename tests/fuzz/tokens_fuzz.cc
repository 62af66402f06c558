// SPDX-License-Identifier: Apache-2.0
//
// An .idx of Megatron's for a .bin of any size, as sequences and as documents;
// and a file of elements only, which is cut at a token.
#include <numeric>

#include "tests/fuzz/input.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tests/worker/source/tokens/megatron_maker.h"
#include "worker/source/tokens/documents.h"

namespace leat::worker::tokens_fuzz {
namespace {

constexpr DocumentBounds kBounds = {.max_documents = 1000};

uint64_t SumOf(const std::vector<uint32_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
}

// The documents fill the data, whatever the index says.
void RunIndex(const MemoryFile& file, uint64_t data_bytes) {
  for (const bool sequences : {false, true}) {
    const auto found = ReadMegatronIndex(file, data_bytes, sequences, kBounds);
    if (!found.ok()) {
      fuzz::Require(!Message(found.status()).empty());
      continue;
    }
    fuzz::Require(found->lengths.size() <= kBounds.max_documents);
    fuzz::Require(SumOf(found->lengths) * SizeOf(found->dtype) == data_bytes);
  }
}

void RunElements(const MemoryFile& file, DType dtype, int64_t end) {
  const uint64_t tokens = file.size() / SizeOf(dtype);
  const auto found = FindDocuments(file, dtype, 0, tokens, end, kBounds);
  if (!found.ok()) return fuzz::Require(!Message(found.status()).empty());
  fuzz::Require(SumOf(found->lengths) == tokens);
}

void Run(std::string_view bytes) {
  fuzz::Input input(bytes);
  const uint8_t kind = input.Byte();
  const auto number = input.Number<uint64_t>();
  const MemoryFile file(input.Rest());
  const int types = static_cast<int>(kLastDType) + 1;
  if (kind % types == 0) return RunIndex(file, number);
  RunElements(file, static_cast<DType>(kind % types),
              static_cast<int64_t>(number));
}

std::string IndexSeed(const MegatronIndex& index, uint64_t data_bytes) {
  return fuzz::PutByte(0) + fuzz::PutNumber(data_bytes) + index.Bytes();
}

std::vector<std::string> Seeds() {
  MegatronIndex modes = MegatronIndex().Add({3, 2}).Add({}).Add({4});
  const std::string plain = IndexSeed(modes, 18);
  modes.modes = std::string(3, '\1');
  MegatronIndex wide;
  wide.type = 5;
  return {plain, IndexSeed(modes, 18), IndexSeed(wide.Add({7}, 8), 56),
          fuzz::PutByte(9) + fuzz::PutNumber(uint64_t{0}) +
              TokensFrom<uint16_t>(-3, 7),
          fuzz::PutByte(4) + fuzz::PutNumber(uint64_t{5}) +
              TokensFrom<int64_t>(0, 9)};
}

const fuzz::Target kTarget(
    {.name = "tokens", .run = Run, .seeds = Seeds, .runs = 3000});

}  // namespace
}  // namespace leat::worker::tokens_fuzz
