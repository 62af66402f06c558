// SPDX-License-Identifier: Apache-2.0
//
// libleat_parquet-*.so reads Parquet files by Arrow's C++ library, behind an
// interface of standard C++, so that only readers of Parquet load Arrow (60
// MB).
//
// It reads the footer of a file, finds the pages of a column in a row group
// ("chunk"), and decodes one run of pages ("unit") at a time, the least that
// can be read of a column. It reads through ParquetInput, allocates the bytes
// of pages within bounds, starts no threads, and lets no exception out. Both
// sides are built in one tree; kParquetInterface checks that.
//
// All objects are immutable and thread-safe, and may be held without limit: the
// library is never unloaded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace leat::worker {

// The bytes of one file.
class ParquetInput {
 public:
  virtual uint64_t size() const = 0;
  // Fills `into`. Returns false if it could not; its owner knows the reason.
  virtual bool ReadAt(uint64_t offset, std::span<uint8_t> into) const = 0;

 protected:
  ~ParquetInput() = default;
};

enum class ParquetFault : uint8_t {
  kNone,
  kInput,  // ReadAt returned false
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

// The type of a value as the file declares it.
enum class ParquetElement : uint8_t {
  kOther,  // not supported
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
  int lists = 0;     // number of enclosing lists
  std::string type;  // as the file declares it
};

enum class ParquetRow : uint8_t { kValue, kNull, kNullElement };

// The statistics of a chunk say this of its values. They are not compared with
// the values.
struct ParquetStatistics {
  // No value is less, and none is greater; kBytes as texts. monostate: not
  // known.
  std::variant<std::monostate, int64_t, double, std::string> least, most;
  std::optional<uint64_t> nulls;
};

// The rows of a unit.
class ParquetUnit {
 public:
  virtual ~ParquetUnit() = default;

  uint64_t rows = 0;
  uint64_t bytes = 0;             // its cost
  std::vector<ParquetRow> state;  // of each row; empty: all kValue
  // For kBytes: one entry per row.
  std::vector<std::span<const uint8_t>> items;
  // For other types: elements of `width` bytes each (1: bool; 2: float16; 4:
  // other numbers of up to 32 bits; 8), one per row, or up to ends[row] for
  // lists.
  std::span<const uint8_t> numbers;
  uint32_t width = 0;
  std::vector<uint32_t> ends;  // for lists
};

class ParquetChunk {
 public:
  virtual ~ParquetChunk() = default;
  // `input`: the same file. Returns nullptr and sets `*error` if it fails.
  virtual std::unique_ptr<ParquetUnit> Decode(const ParquetInput& input,
                                              size_t unit,
                                              ParquetError* error) const = 0;

  uint64_t bytes = 0;          // its cost
  std::vector<uint64_t> ends;  // rows up to and including each unit
};

class ParquetFooter {
 public:
  virtual ~ParquetFooter() = default;
  // REQUIRES: such a group and column; the column is in at most one list, and
  // not kOther.
  virtual std::unique_ptr<ParquetChunk> OpenChunk(
      const ParquetInput& input, size_t group, size_t column,
      ParquetError* error) const = 0;
  // Checks that a chunk's codec and position are supported. Returns false and
  // sets `*error` if not.
  virtual bool CheckChunk(uint64_t file_bytes, size_t group, size_t column,
                          ParquetError* error) const = 0;

  // Returns what is known; nothing, if the statistics are malformed, or of a
  // writer whose order of values is not known. REQUIRES: such a group and
  // column.
  virtual ParquetStatistics Statistics(size_t group, size_t column) const = 0;

  uint64_t bytes = 0;  // its approximate cost
  std::vector<ParquetColumn> columns;
  std::vector<uint64_t> group_rows;
};

inline constexpr uint32_t kParquetInterface = 2;

struct ParquetLibrary {
  uint32_t interface = 0;
  std::string release;  // Leat's
  std::string arrow;    // "26.0.1"
  std::unique_ptr<ParquetFooter> (*open)(const ParquetInput& input,
                                         const ParquetBounds& bounds,
                                         ParquetError* error) = nullptr;
};

// The only symbol: const ParquetLibrary* leat_parquet_library().
inline constexpr const char* kParquetSymbol = "leat_parquet_library";

}  // namespace leat::worker
