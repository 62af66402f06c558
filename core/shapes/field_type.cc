// SPDX-License-Identifier: Apache-2.0
#include "core/shapes/field_type.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "core/tensor/tensor.h"
#include "core/utf8.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

constexpr size_t kMaxAxes = 8;

absl::Status Malformed(std::string_view text) {
  return InvalidArgument(
      "\"{}\" is no type: want \"encoded\", \"bytes\", or an element type and "
      "maybe sizes, as \"int64\", \"float32[4]\", \"int64[?]\"",
      ToUtf8(text, 60));
}

// Returns -1 for "?".
std::optional<int64_t> SizeFrom(std::string_view text, bool may_be_open) {
  if (may_be_open && text == "?") return -1;
  int64_t size = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), size);
  if (error != std::errc() || end != text.data() + text.size() || size < 1)
    return std::nullopt;
  return size;
}

// Any other byte would be undefined behaviour when read as a bool.
absl::Status CheckBools(std::span<const std::byte> bytes) {
  const auto odd = std::ranges::find_if(
      bytes, [](std::byte each) { return each > std::byte{1}; });
  if (odd == bytes.end()) return absl::OkStatus();
  return InvalidArgument("element {} of a bool is the byte {}, want 0 or 1",
                         odd - bytes.begin(), static_cast<int>(*odd));
}

}  // namespace

absl::StatusOr<ValueType> ParseFieldType(std::string_view text,
                                         OpenSizes open) {
  ValueType type;
  if (text == "encoded") {
    type.kind = ValueType::Kind::kEncoded;
    return type;
  }
  if (text == "bytes") {
    type.shape = {-1};
    return type;
  }
  const size_t bracket = text.find('[');
  const auto dtype = ParseDType(text.substr(0, bracket));
  if (!dtype) return Malformed(text);
  type.dtype = *dtype;
  if (bracket == std::string_view::npos) return type;
  if (!text.ends_with(']')) return Malformed(text);
  std::string_view sizes = text.substr(bracket + 1);
  sizes.remove_suffix(1);
  uint64_t bytes = SizeOf(*dtype);
  while (true) {
    const size_t comma = sizes.find(',');
    const auto size = SizeFrom(sizes.substr(0, comma),
                               type.shape.empty() || open == OpenSizes::kAny);
    if (!size || type.shape.size() == kMaxAxes) return Malformed(text);
    type.shape.push_back(*size);
    const uint64_t factor = *size < 0 ? 1 : static_cast<uint64_t>(*size);
    if (factor > kMaxRowBytes / bytes)
      return InvalidArgument("\"{}\" has more than {} bytes: the limit", text,
                             kMaxRowBytes);
    bytes *= factor;
    if (comma == std::string_view::npos) break;
    sizes.remove_prefix(comma + 1);
  }
  return type;
}

bool IsOpen(const ValueType& type) {
  return type.kind == ValueType::Kind::kTensor && !type.shape.empty() &&
         type.shape.front() < 0;
}

uint64_t StoredElements(const ValueType& type) {
  uint64_t elements = 1;
  for (const int64_t size : type.shape)
    if (size > 0) elements *= static_cast<uint64_t>(size);
  return elements;
}

absl::Status CheckStored(const ValueType& type,
                         std::span<const std::byte> bytes,
                         std::span<const int64_t> shape) {
  if (type.kind == ValueType::Kind::kEncoded) {
    if (!bytes.empty() && shape.empty()) return absl::OkStatus();
    return InvalidArgument("{} bytes of {} axes, want an encoded image",
                           bytes.size(), shape.size());
  }
  const std::span<const int64_t> sizes =
      shape.empty() ? std::span<const int64_t>(type.shape) : shape;
  // A value may be empty if the number of rows is open, but an image may not.
  const int64_t least =
      std::count(type.shape.begin(), type.shape.end(), -1) > 1 ? 1 : 0;
  bool fits = sizes.size() == type.shape.size();
  uint64_t want = SizeOf(type.dtype);
  for (size_t i = 0; fits && i < sizes.size(); ++i)
    fits =
        sizes[i] >= least && (type.shape[i] < 0 || type.shape[i] == sizes[i]) &&
        !__builtin_mul_overflow(want, static_cast<uint64_t>(sizes[i]), &want);
  if (fits && want == bytes.size())
    return type.dtype == DType::kBool ? CheckBools(bytes) : absl::OkStatus();
  return InvalidArgument(
      "{} bytes{}, want {}", bytes.size(),
      shape.empty() ? ""
                    : fmt::format(" of shape ({})", fmt::join(shape, ", ")),
      TypeText(type));
}

}  // namespace leat
