// SPDX-License-Identifier: Apache-2.0
#include "worker/source/parquet/arrow/chunk.h"

#include <algorithm>
#include <utility>

#include "arrow/buffer.h"
#include "arrow/io/interfaces.h"
#include "arrow/io/memory.h"
#include "arrow/util/compression.h"
#include "parquet/exception.h"
#include "parquet/page_index.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxUnits = 1 << 20;
constexpr uint32_t kMaxPageHeader = 1 << 20;
constexpr int64_t kWindow = 32 << 10;
// The bytes by which a dictionary's header may exceed what old writers declare.
constexpr uint64_t kMissingHeader = 100;

// Walks over a chunk without reading pages. Arrow peeks at a header, skips it,
// and skips the page's bytes if its filter says so (OnPage); it skips by reads
// whose bytes it drops.
class HeaderStream final : public arrow::io::InputStream {
 public:
  HeaderStream(const ParquetInput& input, uint64_t begin, uint64_t end,
               arrow::MemoryPool* pool)
      : input_(input), pool_(pool), at_(begin), end_(end) {}

  // Returns the last header, and notes that its page's bytes are skipped.
  uint64_t OnPage() {
    dropped_ = true;
    return header_;
  }

  arrow::Status Close() override { return arrow::Status::OK(); }
  bool closed() const override { return false; }
  arrow::Result<int64_t> Tell() const override {
    return static_cast<int64_t>(at_);
  }
  arrow::Result<std::string_view> Peek(int64_t wanted) override {
    header_ = at_;
    dropped_ = true;
    const auto size = std::min(
        static_cast<uint64_t>(std::max<int64_t>(wanted, 0)), end_ - at_);
    if (at_ < begin_ || at_ + size > begin_ + window_.size()) {
      window_.resize(
          std::min(std::max<uint64_t>(size, static_cast<uint64_t>(kWindow)),
                   end_ - at_));
      begin_ = at_;
      if (!input_.ReadAt(begin_, window_))
        throw ParquetFailure(ParquetFault::kInput, "not read");
    }
    return std::string_view(
        reinterpret_cast<const char*>(window_.data()) + (at_ - begin_), size);
  }
  arrow::Result<int64_t> Read(int64_t, void*) override {
    return arrow::Status::NotImplemented("a read into memory");
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t size) override {
    const bool dropped = std::exchange(dropped_, false);
    if (size < 0 || static_cast<uint64_t>(size) > end_ - at_)
      return arrow::Status::Invalid("a page of ", size, " bytes, ", end_ - at_,
                                    " are left of its column");
    const uint64_t from = at_;
    at_ += static_cast<uint64_t>(size);
    if (dropped) return std::make_shared<arrow::Buffer>(nullptr, 0);
    return ReadInput(input_, from, static_cast<uint64_t>(size), pool_);
  }

 private:
  const ParquetInput& input_;
  arrow::MemoryPool* const pool_;
  uint64_t at_;
  const uint64_t end_;
  uint64_t header_ = 0;
  bool dropped_ = false;
  uint64_t begin_ = 0;  // of window_
  std::vector<uint8_t> window_;
};

// The facts about a page that are known without reading it.
struct Page {
  uint64_t header = 0;
  std::optional<uint64_t> rows;
};

class ArrowChunk final : public ParquetChunk {
 public:
  explicit ArrowChunk(std::shared_ptr<ChunkParts> parts)
      : parts_(std::move(parts)) {}

  void Open(const ParquetInput& input) {
    const ChunkPlace& place = parts_->place;
    std::vector<Page> pages =
        place.offset_index ? ByOffsets(input) : ByHeaders(input);
    if (pages.empty()) ThrowMalformed("a column without pages");
    const bool by_page =
        std::all_of(pages.begin(), pages.end(),
                    [](const Page& page) { return page.rows.has_value(); });
    if (!by_page)
      pages = {{.header = pages.front().header, .rows = place.rows}};
    if (pages.size() > kMaxUnits)
      ThrowTooLarge(std::to_string(pages.size()) + " pages of a column: the " +
                    "limit is " + std::to_string(kMaxUnits));
    const bool list = place.column->max_repetition_level() > 0;
    uint64_t sum = 0;
    for (size_t i = 0; i < pages.size(); ++i) {
      const uint64_t next =
          i + 1 < pages.size() ? pages[i + 1].header : place.end;
      runs_.push_back({.offset = pages[i].header,
                       .bytes = next - pages[i].header,
                       .rows = *pages[i].rows,
                       .values = !by_page ? place.values
                                 : list   ? 0
                                          : *pages[i].rows});
      if (*pages[i].rows > place.rows - sum) ThrowMalformed("too many rows");
      ends.push_back(sum += *pages[i].rows);
    }
    if (sum != place.rows)
      ThrowMalformed("its pages have " + std::to_string(sum) + " rows, want " +
                     std::to_string(place.rows));
    bytes = sizeof *this + runs_.size() * (sizeof runs_[0] + sizeof ends[0]) +
            static_cast<uint64_t>(parts_->pool.bytes_allocated());
  }

  std::unique_ptr<ParquetUnit> Decode(const ParquetInput& input, size_t unit,
                                      ParquetError* error) const override try {
    return DecodeRun(parts_, input, runs_[unit]);
  } catch (...) {
    *error = CaughtError();
    return nullptr;
  }

 private:
  std::vector<Page> ByHeaders(const ParquetInput& input) {
    const ChunkPlace& place = parts_->place;
    const bool list = place.column->max_repetition_level() > 0;
    std::vector<Page> pages;
    const auto stream = std::make_shared<HeaderStream>(
        input, place.begin, place.end, &parts_->pool);
    const auto reader = PagesOf(stream, place, place.values, &parts_->pool);
    reader->set_data_page_filter([&](const parquet::DataPageStats& stats) {
      const uint64_t header = stream->OnPage();
      if (stats.num_values < 0 || stats.num_rows.value_or(0) < 0)
        ThrowMalformed("a page of a negative size");
      if (stats.num_values == 0) return true;
      Page page{.header = header, .rows = std::nullopt};
      if (!list)
        page.rows = static_cast<uint64_t>(stats.num_values);
      else if (stats.num_rows)
        page.rows = static_cast<uint64_t>(*stats.num_rows);
      pages.push_back(page);
      return true;
    });
    while (const std::shared_ptr<parquet::Page> page = reader->NextPage())
      KeepDictionary(page, pages.empty());
    return pages;
  }

  std::vector<Page> ByOffsets(const ParquetInput& input) {
    const ChunkPlace& place = parts_->place;
    const parquet::IndexLocation& at = *place.offset_index;
    if (at.offset < 0 || at.length < 1 ||
        static_cast<uint64_t>(at.length) > parts_->bounds.max_footer_bytes)
      ThrowMalformed("an index of " + std::to_string(at.length) + " bytes");
    const auto stored =
        ReadInput(input, static_cast<uint64_t>(at.offset),
                  static_cast<uint64_t>(at.length), &parts_->pool);
    const auto index = parquet::OffsetIndex::Make(stored->data(), at.length,
                                                  PropertiesFor(&parts_->pool));
    std::vector<Page> pages;
    const auto& places = index->page_locations();
    uint64_t least = place.begin;
    for (size_t i = 0; i < places.size(); ++i) {
      const auto header = static_cast<uint64_t>(places[i].offset);
      const auto first = static_cast<uint64_t>(places[i].first_row_index);
      const uint64_t next =
          i + 1 < places.size()
              ? static_cast<uint64_t>(places[i + 1].first_row_index)
              : place.rows;
      if (header < least || header >= place.end || next < first ||
          next > place.rows || (i == 0 && first != 0))
        ThrowMalformed("page " + std::to_string(i) + " of its index is wrong");
      least = header + 1;
      // Writers may end with an empty page.
      if (next > first)
        pages.push_back({.header = header, .rows = next - first});
    }
    if (!pages.empty() && pages.front().header > place.begin) {
      const uint64_t size = pages.front().header - place.begin;
      const auto reader =
          PagesOf(std::make_shared<arrow::io::BufferReader>(
                      ReadInput(input, place.begin, size, &parts_->pool)),
                  place, place.values, &parts_->pool);
      const auto page = reader->NextPage();
      if (page != nullptr && page->type() == parquet::PageType::DICTIONARY_PAGE)
        KeepDictionary(page, true);
    }
    return pages;
  }

  void KeepDictionary(std::shared_ptr<parquet::Page> page, bool first) {
    if (!first || parts_->dictionary != nullptr ||
        page->type() != parquet::PageType::DICTIONARY_PAGE)
      ThrowMalformed("a dictionary that is not its first page");
    parts_->dictionary = std::move(page);
  }

  const std::shared_ptr<ChunkParts> parts_;
  std::vector<PageRun> runs_;
};

}  // namespace

ChunkPlace PlaceOf(const parquet::FileMetaData& metadata, size_t group,
                   size_t column, uint64_t file_bytes) {
  const auto row_group = metadata.RowGroup(static_cast<int>(group));
  const auto chunk = row_group->ColumnChunk(static_cast<int>(column));
  if (chunk->crypto_metadata() != nullptr)
    throw ParquetFailure(ParquetFault::kUnsupported, "it is encrypted");
  if (!chunk->file_path().empty())
    throw ParquetFailure(ParquetFault::kUnsupported, "it is in another file");
  ChunkPlace place;
  place.codec = chunk->compression();
  if (!chunk->can_decompress())
    throw ParquetFailure(ParquetFault::kUnsupported,
                         "compressed by " +
                             arrow::util::Codec::GetCodecAsString(place.codec) +
                             ", which this build of Arrow has not");
  place.column = metadata.schema()->Column(static_cast<int>(column));
  int64_t begin = chunk->data_page_offset();
  if (chunk->has_dictionary_page() && chunk->dictionary_page_offset() > 0)
    begin = std::min(begin, chunk->dictionary_page_offset());
  const int64_t bytes = chunk->total_compressed_size();
  if (begin < 0 || bytes < 1 || static_cast<uint64_t>(begin) >= file_bytes ||
      static_cast<uint64_t>(bytes) >
          file_bytes - static_cast<uint64_t>(begin) ||
      chunk->num_values() < row_group->num_rows() || row_group->num_rows() < 1)
    ThrowMalformed(std::to_string(chunk->num_values()) + " values in " +
                   std::to_string(bytes) + " bytes at " +
                   std::to_string(begin) + " of " + std::to_string(file_bytes));
  place.begin = static_cast<uint64_t>(begin);
  place.end = place.begin + static_cast<uint64_t>(bytes);
  place.rows = static_cast<uint64_t>(row_group->num_rows());
  place.values = static_cast<uint64_t>(chunk->num_values());
  // Corrects errors of old writers as Arrow's own reader does.
  const parquet::ApplicationVersion& writer = metadata.writer_version();
  using Version = parquet::ApplicationVersion;
  if (writer.VersionLt(Version::PARQUET_816_FIXED_VERSION()))
    place.end += std::min(kMissingHeader, file_bytes - place.end);
  place.always_compressed =
      writer.VersionLt(Version::PARQUET_CPP_10353_FIXED_VERSION());
  place.offset_index = chunk->GetOffsetIndexLocation();
  return place;
}

std::unique_ptr<parquet::PageReader> PagesOf(
    std::shared_ptr<arrow::io::InputStream> stream, const ChunkPlace& place,
    uint64_t values, arrow::MemoryPool* pool) {
  auto pages = parquet::PageReader::Open(
      std::move(stream), static_cast<int64_t>(values), place.codec,
      PropertiesFor(pool), *place.column, place.always_compressed);
  pages->set_max_page_header_size(kMaxPageHeader);
  return pages;
}

std::unique_ptr<ParquetChunk> OpenArrowChunk(
    std::shared_ptr<const parquet::FileMetaData> metadata, size_t group,
    size_t column, const ParquetInput& input, const ParquetBounds& bounds) {
  auto parts = std::make_shared<ChunkParts>(bounds);
  parts->place = PlaceOf(*metadata, group, column, input.size());
  parts->metadata = std::move(metadata);
  auto chunk = std::make_unique<ArrowChunk>(std::move(parts));
  chunk->Open(input);
  return chunk;
}

}  // namespace leat::worker
