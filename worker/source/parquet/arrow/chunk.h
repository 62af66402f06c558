// SPDX-License-Identifier: Apache-2.0
//
// A column chunk: the positions of its pages, and its dictionary. Only this
// folder's .cc files include it.
//
// Pages are found by the file's offset index; if it has none, by their headers,
// one after the other. A unit is one page. For lists whose pages do not declare
// their number of rows (version 1, no offset index) it is the whole chunk.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "parquet/column_page.h"
#include "parquet/column_reader.h"
#include "parquet/metadata.h"
#include "worker/source/parquet/arrow/support.h"

namespace leat::worker {

// The footer's data about a chunk.
struct ChunkPlace {
  uint64_t begin = 0, end = 0;
  uint64_t rows = 0, values = 0;
  parquet::Compression::type codec = parquet::Compression::UNCOMPRESSED;
  bool always_compressed = false;
  std::optional<parquet::IndexLocation> offset_index;
  const parquet::ColumnDescriptor* column = nullptr;
};

// Throws ParquetFailure, or Arrow's exceptions.
ChunkPlace PlaceOf(const parquet::FileMetaData& metadata, size_t group,
                   size_t column, uint64_t file_bytes);

// The data that a chunk and its units share; immutable once the chunk is open.
struct ChunkParts {
  explicit ChunkParts(const ParquetBounds& b)
      : bounds(b), pool(b.max_unit_bytes) {}

  const ParquetBounds bounds;
  BoundedPool pool;  // for the dictionary
  std::shared_ptr<const parquet::FileMetaData> metadata;
  ChunkPlace place;
  std::shared_ptr<parquet::Page> dictionary;  // nullptr: none
};

// Consecutive pages as they are stored.
struct PageRun {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t rows = 0;
  uint64_t values = 0;  // 0: those of its first page
};

// Throws.
std::unique_ptr<ParquetChunk> OpenArrowChunk(
    std::shared_ptr<const parquet::FileMetaData> metadata, size_t group,
    size_t column, const ParquetInput& input, const ParquetBounds& bounds);

// Throws.
std::unique_ptr<ParquetUnit> DecodeRun(std::shared_ptr<const ChunkParts> parts,
                                       const ParquetInput& input,
                                       const PageRun& run);

// Returns a reader of the chunk's pages in `stream`, up to `values`. Throws.
std::unique_ptr<parquet::PageReader> PagesOf(
    std::shared_ptr<arrow::io::InputStream> stream, const ChunkPlace& place,
    uint64_t values, arrow::MemoryPool* pool);

}  // namespace leat::worker
