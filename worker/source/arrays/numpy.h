// SPDX-License-Identifier: Apache-2.0
//
// NumPy's .npy files: one array per sample (`files`, or `path` and `pattern`),
// or the rows of one large array (`array`), where only the requested rows are
// read.
//
// Samples are row-major whatever the file's order is: arrays in Fortran order
// are transposed as they are read. Rows of an array in Fortran order are
// scattered over the file; that is refused. Axes along which files differ are
// -1 in the reader's type; files that differ in elements or number of axes are
// refused.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/arrays/numpy_header.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// Returns the header of `file`, checked against its size. Errors: as
// ParseNumpyHeader and StorageFile::ReadAt; names the file.
absl::StatusOr<NumpyHeader> ReadNumpyHeader(
    const StorageFile& file, NumpyElements wanted = NumpyElements::kOfTensors);

// Has the contract of SourceFormat::build. kInvalidArgument: not exactly one of
// files, path and array. kNotFound: no file matches the pattern (shows it), or
// the array has no rows.
absl::StatusOr<BuiltIndex> BuildNumpyIndex(const Node& reader,
                                           const SourceLimits& limits);
absl::StatusOr<std::unique_ptr<Source>> OpenNumpy(const Node& reader,
                                                  std::string_view blob,
                                                  const SourceLimits& limits);

// Transposes from column-major to row-major. `from` and `to` have the product
// of `shape` times `element` bytes; `element` is 1, 2, 4 or 8.
void TransposeFortran(const Shape& shape, size_t element,
                      std::span<const std::byte> from, std::span<std::byte> to);

}  // namespace leat::worker
