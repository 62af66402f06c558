// SPDX-License-Identifier: Apache-2.0
//
// libleat_parquet-*.so: Parquet files by Arrow's C++ library, behind a border
// of standard C++, so that only who reads Parquet loads Arrow (60 MB).
//
// Of a file it knows the footer; of a column in a row group ("chunk") where the
// pages are; and it decodes one run of pages ("unit") at a time, the least that
// can be read of a column. It reads by what it is given, allocates the bytes of
// pages within bounds, starts no threads, and lets no exception out. Both sides
// are built in one tree; kParquetInterface says so.
//
// All objects are immutable and thread-safe, and live as long as they are held:
// the library is never unloaded.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace leat::worker {

// The bytes of one file.
class ParquetInput {
 public:
  virtual uint64_t size() const = 0;
  // Fills `into`; false: it could not, and its owner knows why.
  virtual bool ReadAt(uint64_t offset, std::span<uint8_t> into) const = 0;

 protected:
  ~ParquetInput() = default;
};

enum class ParquetFault : uint8_t {
  kNone,
  kInput,  // ReadAt said false
  kMalformed,
  kUnsupported,
  kTooLarge
};

struct ParquetError {
  ParquetFault fault = ParquetFault::kNone;
  std::string text;  // printable ASCII
};

struct ParquetBounds {
  uint64_t max_footer_bytes = 0;
  // The bytes of a unit: its pages as stored, unpacked, and its values.
  uint64_t max_unit_bytes = 0;
};

// What the file says that a value is.
enum class ParquetElement : uint8_t {
  kOther,  // not read here
  kBytes,
  kBool,
  kInt8,
  kUint8,
  kInt16,
  kUint16,
  kInt32,
  kUint32,
  kInt64,
  kFloat16,
  kFloat32,
  kFloat64
};

// A leaf of the file's schema.
struct ParquetColumn {
  std::string name;       // "image.bytes", "boxes.list.element"
  std::string list_name;  // "boxes": of an annotated list's elements; or empty
  ParquetElement element = ParquetElement::kOther;
  int lists = 0;     // that it is inside of
  std::string type;  // as the file says it
};

enum class ParquetRow : uint8_t { kValue, kNull, kNullElement };

// The rows of a unit.
class ParquetUnit {
 public:
  virtual ~ParquetUnit() = default;

  uint64_t rows = 0;
  uint64_t bytes = 0;             // what it costs
  std::vector<ParquetRow> state;  // of each row; empty: all kValue
  // For kBytes: one entry a row.
  std::vector<std::span<const uint8_t>> items;
  // For other types: elements of `width` bytes each (1: bool; 2: float16; 4:
  // other numbers of up to 32 bits; 8), a row each, or up to ends[row] of
  // lists.
  std::span<const uint8_t> numbers;
  uint32_t width = 0;
  std::vector<uint32_t> ends;  // of lists
};

class ParquetChunk {
 public:
  virtual ~ParquetChunk() = default;
  // `input`: the same file. Null: `*error` says why.
  virtual std::unique_ptr<ParquetUnit> Decode(const ParquetInput& input,
                                              size_t unit,
                                              ParquetError* error) const = 0;

  uint64_t bytes = 0;          // what it costs
  std::vector<uint64_t> ends;  // rows up to and with each unit
};

class ParquetFooter {
 public:
  virtual ~ParquetFooter() = default;
  // REQUIRES: such a group and column; the column is inside of one list at
  // most, and not kOther.
  virtual std::unique_ptr<ParquetChunk> OpenChunk(
      const ParquetInput& input, size_t group, size_t column,
      ParquetError* error) const = 0;
  // That a chunk's codec, and where it lies, are such as can be read. False:
  // `*error` says what is not.
  virtual bool CheckChunk(uint64_t file_bytes, size_t group, size_t column,
                          ParquetError* error) const = 0;

  uint64_t bytes = 0;  // what it costs, about
  std::vector<ParquetColumn> columns;
  std::vector<uint64_t> group_rows;
};

inline constexpr uint32_t kParquetInterface = 1;

struct ParquetLibrary {
  uint32_t interface = 0;
  std::string release;  // Leat's
  std::string arrow;    // "26.0.1"
  std::unique_ptr<ParquetFooter> (*open)(const ParquetInput& input,
                                         const ParquetBounds& bounds,
                                         ParquetError* error) = nullptr;
};

// The one symbol: const ParquetLibrary* leat_parquet_library().
inline constexpr const char* kParquetSymbol = "leat_parquet_library";

}  // namespace leat::worker
