// SPDX-License-Identifier: Apache-2.0
#include "worker/source/parquet/arrow/support.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <utility>

#include "arrow/buffer.h"
#include "parquet/exception.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxText = 300;
// The result of allocating no bytes.
alignas(64) uint8_t nothing[64];

std::string Printable(std::string_view text) {
  std::string out(text.substr(0, kMaxText));
  for (char& c : out)
    if (c < ' ' || c > '~') c = '?';
  return out;
}

ParquetFault ParquetFaultOf(const arrow::Status& status) {
  if (status.IsOutOfMemory() || status.IsCapacityError())
    return ParquetFault::kTooLarge;
  if (status.IsNotImplemented()) return ParquetFault::kUnsupported;
  return ParquetFault::kMalformed;
}

}  // namespace

void ThrowMalformed(std::string text) {
  throw ParquetFailure(ParquetFault::kMalformed, std::move(text));
}
void ThrowTooLarge(std::string text) {
  throw ParquetFailure(ParquetFault::kTooLarge, std::move(text));
}

ParquetError CaughtError() {
  try {
    throw;
  } catch (const ParquetFailure& e) {
    return {e.fault(), Printable(e.what())};
  } catch (const parquet::ParquetStatusException& e) {
    return {ParquetFaultOf(e.status()), Printable(e.status().message())};
  } catch (const parquet::ParquetException& e) {
    const std::string_view text = e.what();
    const bool known = text.starts_with("Not yet implemented");
    return {known ? ParquetFault::kUnsupported : ParquetFault::kMalformed,
            Printable(text)};
  } catch (const std::bad_alloc&) {
    return {ParquetFault::kTooLarge, "more memory than there is"};
  } catch (const std::length_error&) {
    return {ParquetFault::kTooLarge, "more memory than there can be"};
  } catch (const std::exception& e) {
    return {ParquetFault::kMalformed, Printable(e.what())};
  } catch (...) {
    return {ParquetFault::kMalformed, "an unknown exception"};
  }
}

arrow::Status BoundedPool::Allocate(int64_t size, int64_t alignment,
                                    uint8_t** out) {
  if (size < 0) return arrow::Status::Invalid("an allocation of ", size);
  if (size == 0) {
    *out = nothing;
    return arrow::Status::OK();
  }
  if (size > max_bytes_ - used_)
    return arrow::Status::OutOfMemory("it needs ", size, " bytes more than ",
                                      used_, ": the limit is ", max_bytes_);
  void* at = nullptr;
  if (posix_memalign(&at, static_cast<size_t>(std::max<int64_t>(alignment, 8)),
                     static_cast<size_t>(size)) != 0)
    return arrow::Status::OutOfMemory("no ", size, " bytes of memory are free");
  used_ += size;
  total_ += size;
  ++allocations_;
  *out = static_cast<uint8_t*>(at);
  return arrow::Status::OK();
}

arrow::Status BoundedPool::Reallocate(int64_t old_size, int64_t new_size,
                                      int64_t alignment, uint8_t** at) {
  uint8_t* const before = *at;
  uint8_t* after = nullptr;
  ARROW_RETURN_NOT_OK(Allocate(new_size, alignment, &after));
  if (const int64_t kept = std::min(old_size, new_size); kept > 0)
    std::memcpy(after, before, static_cast<size_t>(kept));
  Free(before, old_size, alignment);
  *at = after;
  return arrow::Status::OK();
}

void BoundedPool::Free(uint8_t* buffer, int64_t size, int64_t alignment) {
  if (buffer == nothing) return;
  used_ -= size;
  std::free(buffer);
}

parquet::ReaderProperties PropertiesFor(arrow::MemoryPool* pool) {
  parquet::ReaderProperties properties(pool);
  properties.set_page_checksum_verification(true);
  return properties;
}

std::shared_ptr<arrow::Buffer> ReadInput(const ParquetInput& input,
                                         uint64_t offset, uint64_t bytes,
                                         arrow::MemoryPool* pool) {
  if (offset > input.size() || bytes > input.size() - offset)
    ThrowMalformed("it names " + std::to_string(bytes) + " bytes at " +
                   std::to_string(offset) + " of " +
                   std::to_string(input.size()));
  PARQUET_ASSIGN_OR_THROW(
      std::unique_ptr<arrow::Buffer> buffer,
      arrow::AllocateBuffer(static_cast<int64_t>(bytes), pool));
  if (!input.ReadAt(offset, {buffer->mutable_data(), bytes}))
    throw ParquetFailure(ParquetFault::kInput, "not read");
  return buffer;
}

}  // namespace leat::worker
