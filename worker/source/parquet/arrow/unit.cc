// SPDX-License-Identifier: Apache-2.0
//
// Converts pages to rows. Arrow returns values without the nulls among them,
// and for each position two levels:
//   definition   how much of the path to the value exists: the greatest, all
//   repetition   0 where a row begins (lists)
// If a list's definition level is at least that of its repeated group
// (`filled`), it has an element here; if one less, it is empty; if still less,
// it is null.
#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "arrow/io/memory.h"
#include "parquet/column_reader.h"
#include "parquet/schema.h"
#include "parquet/types.h"
#include "worker/source/parquet/arrow/chunk.h"

namespace leat::worker {
namespace {

using PagePtr = std::shared_ptr<parquet::Page>;

// The dictionary, then the pages of a run that have values; only one page
// unless `several`, because Arrow's values refer to memory that ends with their
// page.
class RunPages final : public parquet::PageReader {
 public:
  RunPages(PagePtr dictionary, std::unique_ptr<parquet::PageReader> pages,
           bool several)
      : dictionary_(std::move(dictionary)),
        pages_(std::move(pages)),
        several_(several) {}

  // Returns the number of values of the first page.
  uint64_t Begin() {
    first_ = NextData();
    if (first_ == nullptr) ThrowMalformed("a page without values");
    return static_cast<uint64_t>(ValuesOf(*first_));
  }

  PagePtr NextPage() override {
    if (dictionary_ != nullptr) return std::move(dictionary_);
    if (first_ != nullptr) return std::move(first_);
    if (!several_) ThrowMalformed("a page with fewer values than it says");
    return NextData();
  }
  void set_max_page_header_size(uint32_t) override {}

 private:
  static int32_t ValuesOf(const parquet::Page& page) {
    const auto* const data = dynamic_cast<const parquet::DataPage*>(&page);
    if (data == nullptr || data->num_values() < 0)
      ThrowMalformed("a page among others that is no data");
    return data->num_values();
  }
  PagePtr NextData() {
    PagePtr page = pages_->NextPage();
    // Arrow takes an empty page for the end.
    while (page != nullptr && ValuesOf(*page) == 0) page = pages_->NextPage();
    return page;
  }

  PagePtr dictionary_;
  const std::unique_ptr<parquet::PageReader> pages_;
  const bool several_;
  PagePtr first_;
};

// Returns the definition level of the repeated group that contains the column.
int16_t FilledLevel(const parquet::ColumnDescriptor& column) {
  const parquet::schema::Node* node = column.schema_node().get();
  while (node != nullptr && !node->is_repeated()) node = node->parent();
  int16_t level = 0;
  for (; node != nullptr && node->parent() != nullptr; node = node->parent())
    level = static_cast<int16_t>(level + (node->is_required() ? 0 : 1));
  return level;
}

struct Levels {
  std::vector<int16_t> definition, repetition;  // empty: all are 0
};

void FindFlatRows(const Levels& levels, int16_t full, ParquetUnit* unit) {
  if (std::all_of(levels.definition.begin(), levels.definition.end(),
                  [&](int16_t level) { return level == full; }))
    return;
  unit->state.resize(unit->rows, ParquetRow::kValue);
  for (size_t i = 0; i < levels.definition.size(); ++i)
    if (levels.definition[i] != full) unit->state[i] = ParquetRow::kNull;
}

void FindListRows(const Levels& levels, int16_t full, int16_t filled,
                  ParquetUnit* unit) {
  if (levels.repetition.empty() || levels.repetition[0] != 0)
    ThrowMalformed("a page that begins within a row");
  unit->ends.reserve(unit->rows);
  unit->state.reserve(unit->rows);
  uint32_t end = 0;
  for (size_t i = 0; i < levels.repetition.size(); ++i) {
    const int16_t level =
        levels.definition.empty() ? full : levels.definition[i];
    if (levels.repetition[i] == 0) {
      if (unit->ends.size() == unit->rows)
        ThrowMalformed("a page with more rows than it says");
      unit->ends.push_back(end);
      unit->state.push_back(ParquetRow::kValue);
      if (level + 1 < filled) unit->state.back() = ParquetRow::kNull;
    } else if (level < filled) {
      ThrowMalformed("an element of a list that is none");
    }
    if (level == full)
      unit->ends.back() = ++end;
    else if (level >= filled)
      unit->state.back() = ParquetRow::kNullElement;
  }
  if (unit->ends.size() != unit->rows)
    ThrowMalformed("pages with " + std::to_string(unit->ends.size()) +
                   " rows, want " + std::to_string(unit->rows));
}

template <class Type>
class ArrowUnit final : public ParquetUnit {
 public:
  using T = typename Type::c_type;

  explicit ArrowUnit(std::shared_ptr<const ChunkParts> parts)
      : parts_(std::move(parts)), pool_(parts_->bounds.max_unit_bytes) {}

  void Decode(const ParquetInput& input, const PageRun& run) {
    rows = run.rows;
    const parquet::ColumnDescriptor& column = *parts_->place.column;
    const bool list = column.max_repetition_level() > 0;
    constexpr uint64_t kOnePage = std::numeric_limits<int32_t>::max();
    auto pages = std::make_unique<RunPages>(
        parts_->dictionary,
        PagesOf(std::make_shared<arrow::io::BufferReader>(
                    ReadInput(input, run.offset, run.bytes, &pool_)),
                parts_->place, run.values > 0 ? run.values : kOnePage, &pool_),
        /*several=*/list && run.values > 0);
    const uint64_t first = pages->Begin();
    const uint64_t values = run.values > 0 ? run.values : first;
    if (!list && first != rows)
      ThrowMalformed("a page with " + std::to_string(first) + " values, want " +
                     std::to_string(rows));
    const uint64_t each =
        sizeof(T) + 2 * sizeof(int16_t) + sizeof(std::span<const uint8_t>);
    const auto used = static_cast<uint64_t>(pool_.bytes_allocated());
    if (values > (parts_->bounds.max_unit_bytes - used) / each)
      ThrowTooLarge(std::to_string(values) + " values in pages of " +
                    std::to_string(used) + " bytes: the limit is " +
                    std::to_string(parts_->bounds.max_unit_bytes) + " bytes");
    Levels levels;
    const uint64_t present = ReadValues(std::move(pages), values, &levels);
    const int16_t full = column.max_definition_level();
    if (list) {
      FindListRows(levels, full, FilledLevel(column), this);
    } else {
      FindFlatRows(levels, full, this);
      if (!state.empty()) Spread(present);
    }
    Show(list ? present : rows);
    bytes = sizeof *this + static_cast<uint64_t>(pool_.bytes_allocated()) +
            values * sizeof(T) + packed_.size() + state.size() +
            items.size() * sizeof items[0] + ends.size() * sizeof ends[0];
  }

 private:
  // Returns how many there are without nulls.
  uint64_t ReadValues(std::unique_ptr<RunPages> pages, uint64_t wanted,
                      Levels* levels) {
    const parquet::ColumnDescriptor& column = *parts_->place.column;
    if (column.max_definition_level() > 0) levels->definition.resize(wanted);
    if (column.max_repetition_level() > 0) levels->repetition.resize(wanted);
    values_ = std::make_unique<T[]>(wanted);
    reader_ = parquet::ColumnReader::Make(&column, std::move(pages), &pool_);
    auto& reader = static_cast<parquet::TypedColumnReader<Type>&>(*reader_);
    uint64_t at = 0, present = 0;
    while (at < wanted) {
      int64_t got = 0;
      const int64_t places = reader.ReadBatch(
          static_cast<int64_t>(wanted - at),
          levels->definition.empty() ? nullptr : levels->definition.data() + at,
          levels->repetition.empty() ? nullptr : levels->repetition.data() + at,
          values_.get() + present, &got);
      if (places <= 0 || got < 0 || got > places) break;
      at += static_cast<uint64_t>(places);
      present += static_cast<uint64_t>(got);
    }
    if (at != wanted)
      ThrowMalformed("pages that end after " + std::to_string(at) + " of " +
                     std::to_string(wanted) + " values");
    const auto full =
        std::count(levels->definition.begin(), levels->definition.end(),
                   column.max_definition_level());
    if (present !=
        (levels->definition.empty() ? wanted : static_cast<uint64_t>(full)))
      ThrowMalformed("pages whose levels and values differ in number");
    return present;
  }

  // Moves the values of rows to their positions, and clears those of nulls.
  void Spread(uint64_t present) {
    for (uint64_t i = rows; i-- > 0;)
      values_[i] = state[i] == ParquetRow::kValue ? values_[--present] : T{};
  }

  void Show(uint64_t count) {
    if constexpr (std::is_same_v<Type, parquet::ByteArrayType>) {
      items.reserve(count);
      for (uint64_t i = 0; i < count; ++i)
        items.emplace_back(values_[i].ptr, values_[i].len);
    } else if constexpr (std::is_same_v<Type, parquet::FLBAType>) {
      const auto length =
          static_cast<uint32_t>(parts_->place.column->type_length());
      items.reserve(count);
      for (uint64_t i = 0; i < count; ++i)
        items.emplace_back(values_[i].ptr,
                           values_[i].ptr == nullptr ? 0 : length);
      if (!IsFloat16()) return;
      packed_.resize(count * length);
      for (uint64_t i = 0; i < count; ++i)
        if (!items[i].empty())
          std::memcpy(packed_.data() + i * length, items[i].data(), length);
      items.clear();
      width = length;
      numbers = packed_;
    } else {
      width = sizeof(T);
      numbers = {reinterpret_cast<const uint8_t*>(values_.get()),
                 count * sizeof(T)};
    }
  }

  bool IsFloat16() const {
    const auto& logical = parts_->place.column->logical_type();
    return logical != nullptr && logical->is_float16();
  }

  const std::shared_ptr<const ChunkParts> parts_;
  BoundedPool pool_;
  std::shared_ptr<parquet::ColumnReader> reader_;  // owns what items refer to
  std::unique_ptr<T[]> values_;
  std::vector<uint8_t> packed_;
};

template <class Type>
std::unique_ptr<ParquetUnit> Decoded(std::shared_ptr<const ChunkParts> parts,
                                     const ParquetInput& input,
                                     const PageRun& run) {
  auto unit = std::make_unique<ArrowUnit<Type>>(std::move(parts));
  unit->Decode(input, run);
  return unit;
}

}  // namespace

std::unique_ptr<ParquetUnit> DecodeRun(std::shared_ptr<const ChunkParts> parts,
                                       const ParquetInput& input,
                                       const PageRun& run) {
  switch (parts->place.column->physical_type()) {
    case parquet::Type::BOOLEAN:
      return Decoded<parquet::BooleanType>(std::move(parts), input, run);
    case parquet::Type::INT32:
      return Decoded<parquet::Int32Type>(std::move(parts), input, run);
    case parquet::Type::INT64:
      return Decoded<parquet::Int64Type>(std::move(parts), input, run);
    case parquet::Type::FLOAT:
      return Decoded<parquet::FloatType>(std::move(parts), input, run);
    case parquet::Type::DOUBLE:
      return Decoded<parquet::DoubleType>(std::move(parts), input, run);
    case parquet::Type::BYTE_ARRAY:
      return Decoded<parquet::ByteArrayType>(std::move(parts), input, run);
    case parquet::Type::FIXED_LEN_BYTE_ARRAY:
      return Decoded<parquet::FLBAType>(std::move(parts), input, run);
    default:
      throw ParquetFailure(ParquetFault::kUnsupported,
                           "values of a type that is not read");
  }
}

}  // namespace leat::worker
