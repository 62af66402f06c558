// SPDX-License-Identifier: Apache-2.0
//
// Reads files' footers, and exports the library's symbol.
#include <algorithm>
#include <cstring>
#include <utility>

#include "arrow/buffer.h"
#include "arrow/util/config.h"
#include "parquet/metadata.h"
#include "parquet/schema.h"
#include "parquet/statistics.h"
#include "parquet/types.h"
#include "worker/source/parquet/arrow/chunk.h"
#include "worker/source/parquet/arrow/footer_memory.h"

namespace leat::worker {
namespace {

// A footer in memory may take this many times its bytes in the file. What
// writers make takes 8 to 21 times as much.
constexpr uint64_t kMostFooterCost = 48;

ParquetElement IntElement(const parquet::IntLogicalType& type) {
  using E = ParquetElement;
  switch (type.bit_width()) {
    case 8:
      return type.is_signed() ? E::kInt8 : E::kUint8;
    case 16:
      return type.is_signed() ? E::kInt16 : E::kUint16;
    case 32:
      return type.is_signed() ? E::kInt32 : E::kUint32;
    case 64:
      return type.is_signed() ? E::kInt64 : E::kOther;
    default:
      return E::kOther;
  }
}

ParquetElement ElementOf(const parquet::ColumnDescriptor& column) {
  using E = ParquetElement;
  const auto& logical = column.logical_type();
  const bool plain = logical == nullptr || logical->is_none();
  switch (column.physical_type()) {
    case parquet::Type::BOOLEAN:
      return plain ? E::kBool : E::kOther;
    case parquet::Type::INT32:
    case parquet::Type::INT64: {
      const bool wide = column.physical_type() == parquet::Type::INT64;
      if (plain) return wide ? E::kInt64 : E::kInt32;
      if (!logical->is_int()) return E::kOther;
      const E element =
          IntElement(static_cast<const parquet::IntLogicalType&>(*logical));
      return wide == (element == E::kInt64) ? element : E::kOther;
    }
    case parquet::Type::FLOAT:
      return plain ? E::kFloat32 : E::kOther;
    case parquet::Type::DOUBLE:
      return plain ? E::kFloat64 : E::kOther;
    case parquet::Type::BYTE_ARRAY:
      return !plain && logical->is_decimal() ? E::kOther : E::kBytes;
    case parquet::Type::FIXED_LEN_BYTE_ARRAY:
      if (column.type_length() < 1) return E::kOther;
      if (!plain && logical->is_float16())
        return column.type_length() == 2 ? E::kFloat16 : E::kOther;
      if (!plain && (logical->is_decimal() || logical->is_interval()))
        return E::kOther;
      return E::kBytes;
    default:
      return E::kOther;
  }
}

// Returns the name of the list whose elements the column's values are; or
// empty.
std::string ListName(const parquet::ColumnDescriptor& column) {
  const parquet::schema::Node* const leaf = column.schema_node().get();
  const parquet::schema::Node* const group =
      leaf->is_repeated() ? leaf : leaf->parent();
  if (column.max_repetition_level() != 1 || group == nullptr ||
      !group->is_repeated() || group->parent() == nullptr)
    return {};
  const parquet::schema::Node* const list = group->parent();
  const bool annotated =
      (list->logical_type() != nullptr && list->logical_type()->is_list()) ||
      list->converted_type() == parquet::ConvertedType::LIST;
  return annotated ? list->path()->ToDotString() : std::string();
}

ParquetColumn Described(const parquet::ColumnDescriptor& column) {
  ParquetColumn described;
  described.name = column.path()->ToDotString();
  described.list_name = ListName(column);
  described.element = ElementOf(column);
  described.lists = column.max_repetition_level();
  described.type = parquet::TypeToString(column.physical_type());
  const auto& logical = column.logical_type();
  if (logical != nullptr && !logical->is_none())
    described.type += " (" + logical->ToString() + ")";
  return described;
}

template <class Type>
auto BoundsOf(const parquet::Statistics& statistics) {
  const auto& typed =
      static_cast<const parquet::TypedStatistics<Type>&>(statistics);
  return std::pair(typed.min(), typed.max());
}

// Sets the bounds of what ParquetElement says the values are.
void SetBounds(const parquet::Statistics& statistics, ParquetElement element,
               uint32_t length, ParquetStatistics* to) {
  using E = ParquetElement;
  const auto set = [to](auto bounds) {
    to->least = bounds.first;
    to->most = bounds.second;
  };
  const auto whole = [&set](auto bounds) {
    set(std::pair<int64_t, int64_t>(bounds.first, bounds.second));
  };
  const auto text = [&set, length](const auto& bounds) {
    const auto of = [length](const auto& value) {
      uint32_t size = length;
      if constexpr (requires { value.len; }) size = value.len;
      return std::string(reinterpret_cast<const char*>(value.ptr), size);
    };
    set(std::pair(of(bounds.first), of(bounds.second)));
  };
  switch (element) {
    case E::kBool:
      return whole(BoundsOf<parquet::BooleanType>(statistics));
    case E::kInt8:
    case E::kInt16:
    case E::kInt32:
      return whole(BoundsOf<parquet::Int32Type>(statistics));
    case E::kUint8:
    case E::kUint16:
    case E::kUint32: {
      const auto bounds = BoundsOf<parquet::Int32Type>(statistics);
      return whole(std::pair(static_cast<uint32_t>(bounds.first),
                             static_cast<uint32_t>(bounds.second)));
    }
    case E::kInt64:
      return whole(BoundsOf<parquet::Int64Type>(statistics));
    case E::kFloat32:
      return set(
          std::pair<double, double>(BoundsOf<parquet::FloatType>(statistics)));
    case E::kFloat64:
      return set(BoundsOf<parquet::DoubleType>(statistics));
    case E::kBytes:
      return length > 0 ? text(BoundsOf<parquet::FLBAType>(statistics))
                        : text(BoundsOf<parquet::ByteArrayType>(statistics));
    case E::kFloat16:
    case E::kOther:
      return;
  }
}

class ArrowFooter final : public ParquetFooter {
 public:
  ArrowFooter(const ParquetInput& input, const ParquetBounds& bounds)
      : bounds_(bounds) {
    BoundedPool pool(bounds.max_footer_bytes + 64);
    const auto stored = ReadFooter(input, &pool);
    const uint64_t memory =
        FooterMemory::Of(stored->data(), static_cast<size_t>(stored->size()));
    const uint64_t most = kMostFooterCost * bounds.max_footer_bytes;
    if (memory > most)
      ThrowTooLarge("a footer that takes about " + std::to_string(memory) +
                    " bytes of memory: the limit is " + std::to_string(most));
#if ARROW_VERSION_MAJOR < 26
    uint32_t counted = static_cast<uint32_t>(stored->size());  // is bounded
    uint32_t* const size = &counted;
#else
    const int64_t size = stored->size();
#endif
    metadata_ = parquet::FileMetaData::Make(stored->data(), size,
                                            PropertiesFor(DefaultPool()));
    bytes = memory;
    const int count = metadata_->num_columns();
    for (int i = 0; i < count; ++i)
      columns.push_back(Described(*metadata_->schema()->Column(i)));
    for (int i = 0; i < metadata_->num_row_groups(); ++i) {
      const auto group = metadata_->RowGroup(i);
      if (group->num_rows() < 0 || group->num_columns() != count)
        ThrowMalformed("row group " + std::to_string(i) + " has " +
                       std::to_string(group->num_rows()) + " rows of " +
                       std::to_string(group->num_columns()) +
                       " columns, want " + std::to_string(count));
      group_rows.push_back(static_cast<uint64_t>(group->num_rows()));
    }
  }

  std::unique_ptr<ParquetChunk> OpenChunk(const ParquetInput& input,
                                          size_t group, size_t column,
                                          ParquetError* error) const override
      try {
    return OpenArrowChunk(metadata_, group, column, input, bounds_);
  } catch (...) {
    *error = CaughtError();
    return nullptr;
  }

  bool CheckChunk(uint64_t file_bytes, size_t group, size_t column,
                  ParquetError* error) const override try {
    (void)PlaceOf(*metadata_, group, column, file_bytes);
    return true;
  } catch (...) {
    *error = CaughtError();
    return false;
  }

  ParquetStatistics Statistics(size_t group, size_t column) const override {
    try {
      ParquetStatistics known;
      const auto chunk = metadata_->RowGroup(static_cast<int>(group))
                             ->ColumnChunk(static_cast<int>(column));
      if (!chunk->is_stats_set()) return known;
      const auto statistics = chunk->statistics();
      if (statistics == nullptr) return known;
      if (statistics->HasNullCount() && statistics->null_count() >= 0)
        known.nulls = static_cast<uint64_t>(statistics->null_count());
      const parquet::ColumnDescriptor& description =
          *metadata_->schema()->Column(static_cast<int>(column));
      const bool fixed =
          description.physical_type() == parquet::Type::FIXED_LEN_BYTE_ARRAY;
      if (statistics->HasMinMax())
        SetBounds(*statistics, columns[column].element,
                  fixed ? static_cast<uint32_t>(description.type_length()) : 0,
                  &known);
      return known;
    } catch (...) {
      return {};
    }
  }

 private:
  static arrow::MemoryPool* DefaultPool() {
    return arrow::system_memory_pool();
  }

  std::shared_ptr<arrow::Buffer> ReadFooter(const ParquetInput& input,
                                            arrow::MemoryPool* pool) const {
    constexpr uint64_t kTail = 8;  // its length, and the file's magic
    const uint64_t size = input.size();
    if (size < kTail + 4)
      ThrowMalformed(std::to_string(size) + " bytes: no Parquet file");
    const auto tail = ReadInput(input, size - kTail, kTail, pool);
    const std::string_view mark(reinterpret_cast<const char*>(tail->data()) + 4,
                                4);
    if (mark == "PARE")
      throw ParquetFailure(ParquetFault::kUnsupported, "it is encrypted");
    if (mark != "PAR1")
      ThrowMalformed(
          "its last bytes are no Parquet file's: another format, or not "
          "written to its end");
    uint32_t length = 0;
    std::memcpy(&length, tail->data(), sizeof length);
    if (length == 0 || length > size - kTail - 4)
      ThrowMalformed("a footer of " + std::to_string(length) +
                     " bytes in a file of " + std::to_string(size));
    if (length > bounds_.max_footer_bytes)
      ThrowTooLarge("a footer of " + std::to_string(length) +
                    " bytes: the limit is " +
                    std::to_string(bounds_.max_footer_bytes));
    return ReadInput(input, size - kTail - length, length, pool);
  }

  const ParquetBounds bounds_;
  std::shared_ptr<const parquet::FileMetaData> metadata_;
};

std::unique_ptr<ParquetFooter> Open(const ParquetInput& input,
                                    const ParquetBounds& bounds,
                                    ParquetError* error) try {
  return std::make_unique<ArrowFooter>(input, bounds);
} catch (...) {
  *error = CaughtError();
  return nullptr;
}

}  // namespace
}  // namespace leat::worker

extern "C" __attribute__((visibility("default")))
const leat::worker::ParquetLibrary*
leat_parquet_library() {
  static const auto& library = *new leat::worker::ParquetLibrary{
      .interface = leat::worker::kParquetInterface,
      .release = LEAT_VERSION,
      .arrow = ARROW_VERSION_STRING,
      .open = leat::worker::Open};
  return &library;
}
