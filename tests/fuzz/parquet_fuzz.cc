// SPDX-License-Identifier: Apache-2.0
//
// Parquet files, by libleat_parquet-*.so (LEAT_PARQUET_LIBRARY). Arrow itself
// is not instrumented: its bugs are found if it crashes, or if it corrupts our
// memory. The first byte selects the columns that are read. The corpus begins
// with files of tests/golden/parquet, each after such a byte.
#include <algorithm>
#include <string>
#include <vector>

#include "core/status.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "worker/source/parquet/parquet.h"

namespace leat::worker::parquet_fuzz {
namespace {

constexpr uint64_t kMaxRows = 8;  // maximum that is converted of a unit

// Returns a type that the column's values can have.
ValueType TypeFor(const ParquetColumn& column) {
  ValueType type;
  for (const DType dtype : {DType::kUint8, DType::kBool, DType::kInt8,
                            DType::kInt16, DType::kUint16, DType::kUint32,
                            DType::kInt64, DType::kFloat32, DType::kFloat16}) {
    type.dtype = dtype;
    type.shape.clear();
    if (column.lists > 0 || column.element == ParquetElement::kBytes)
      type.shape = {-1};
    if (CheckParquetType(column, type).ok()) break;
  }
  return type;
}

// Reads all bytes of a text.
void CompareAll(const ColumnValue& value) {
  fuzz::Require(Compare(value, value) != Ordering::kLess);
}

void ReadUnit(const ParquetUnit& unit, const ParquetColumn& column) {
  const ValueType type = TypeFor(column);
  fuzz::Require(unit.state.empty() || unit.state.size() == unit.rows);
  for (uint64_t row = 0; row < std::min(unit.rows, kMaxRows); ++row) {
    const auto bytes = ParquetBytes(unit, row, column, type);
    if (!bytes.ok()) continue;
    std::vector<std::byte> value(*bytes);
    ConvertParquet(unit, row, column, type, value);
    if (column.lists == 0) CompareAll(ParquetValue(unit, row, column));
  }
}

void Run(std::string_view bytes) {
  static const ParquetLibrary* const library = [] {
    const auto loaded = LoadParquetLibrary();
    return loaded.ok() ? *loaded : nullptr;
  }();
  if (library == nullptr || bytes.empty()) return;
  const auto chosen = static_cast<uint8_t>(bytes[0]);
  const MemoryFile file(bytes.substr(1));
  const StoredParquet input(file);
  const ParquetBounds bounds = {.max_footer_bytes = 64 << 10,
                                .max_unit_bytes = 1 << 20};
  ParquetError error;
  const auto footer = library->open(input, bounds, &error);
  if (footer == nullptr) return fuzz::Require(!error.text.empty());
  for (size_t c = 0; c < footer->columns.size(); ++c) {
    const ParquetColumn& column = footer->columns[c];
    if ((chosen >> c % 8 & 1) == 0 || column.lists > 1 ||
        !CheckParquetType(column, TypeFor(column)).ok())
      continue;
    for (size_t g = 0; g < std::min<size_t>(2, footer->group_rows.size());
         ++g) {
      const ParquetStatistics known = footer->Statistics(g, c);
      if (const auto* least = std::get_if<std::string>(&known.least))
        CompareAll(std::string_view(*least));
      if (!footer->CheckChunk(input.size(), g, c, &error)) continue;
      const auto chunk = footer->OpenChunk(input, g, c, &error);
      if (chunk == nullptr) continue;
      fuzz::Require(!chunk->ends.empty() &&
                    chunk->ends.back() == footer->group_rows[g]);
      for (size_t u = 0; u < std::min<size_t>(3, chunk->ends.size()); ++u) {
        const auto unit = chunk->Decode(input, u, &error);
        if (unit != nullptr) ReadUnit(*unit, column);
      }
    }
  }
}

std::vector<std::string> Seeds() { return {}; }

const fuzz::Target kTarget(
    {.name = "parquet", .run = Run, .seeds = Seeds, .runs = 300});

}  // namespace
}  // namespace leat::worker::parquet_fuzz
