// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arrays/numpy_header.h"

#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "core/status.h"

namespace leat::worker {
namespace {

constexpr std::string_view kNumpyMagic = "\x93NUMPY";
constexpr size_t kMaxRank = 32;
constexpr uint64_t kMaxBytes = uint64_t{1} << 48;

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Returns at most 40 characters, all printable, for messages.
std::string Shown(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 40))
    shown += c >= ' ' && c < 127 ? c : '?';
  return shown;
}

// Returns a type as NumPy names and writes it, as "complex64 ('<c8')".
std::string TypeOf(std::string_view descr) {
  struct Kind {
    char code;
    std::string_view name;
    bool sized;  // by bytes, which the name tells in bits
  };
  static constexpr Kind kKinds[] = {
      {'b', "bool", false},       {'i', "int", true},
      {'u', "uint", true},        {'f', "float", true},
      {'c', "complex", true},     {'U', "texts", false},
      {'S', "bytes", false},      {'O', "Python objects", false},
      {'M', "datetime64", false}, {'m', "timedelta64", false}};
  const std::string shown = fmt::format("'{}'", Shown(descr));
  uint32_t bytes = 0;
  for (const Kind& kind : kKinds) {
    if (descr.size() < 2 || descr[1] != kind.code) continue;
    if (!kind.sized) return fmt::format("{} ({})", kind.name, shown);
    if (absl::SimpleAtoi(std::string(descr.substr(2)), &bytes) && bytes <= 64)
      return fmt::format("{}{} ({})", kind.name, 8 * bytes, shown);
  }
  return shown;
}

absl::Status NoInteger(std::string_view descr) {
  if (descr.size() > 1 && descr[1] == 'b')
    return InvalidArgument(
        "its elements are {}: want integers; numpy.flatnonzero makes them of a "
        "mask",
        TypeOf(descr));
  return InvalidArgument(
      "its elements are {}: want integers of int64 or a smaller type: "
      "array.astype(\"int64\") makes them",
      TypeOf(descr));
}

absl::StatusOr<DType> DTypeOf(std::string_view descr, NumpyElements wanted) {
  struct Known {
    std::string_view code;
    DType dtype;
  };
  constexpr Known kKnown[] = {
      {"b1", DType::kBool},
      {"u1", DType::kUint8},
      {"i4", DType::kInt32},
      {"i8", DType::kInt64},
      {"f2", DType::kFloat16},
      {"f4", DType::kFloat32},
      {"i1", DType::kInt8},
      {"i2", DType::kInt16},
      {"u2", DType::kUint16},
      {"u4", DType::kUint32},
      // NumPy has no name for bfloat16, and saves it as two bytes.
      {"V2", DType::kBfloat16},
  };
  const bool integers = wanted == NumpyElements::kIntegers;
  const char order = descr.empty() ? ' ' : descr[0];
  const std::string_view code = descr.substr(descr.empty() ? 0 : 1);
  for (const Known& known : kKnown) {
    if (known.code != code) continue;
    if (integers && code[0] != 'i' && code[0] != 'u') break;
    const bool one_byte = SizeOf(known.dtype) == 1;
    const bool is_opaque = code[0] == 'V';
    if (order == '<' || (one_byte && (order == '|' || order == '>')) ||
        (is_opaque && order == '|'))
      return known.dtype;
    if (order == '>')
      return MakeStatus(integers ? absl::StatusCode::kInvalidArgument
                                 : absl::StatusCode::kUnimplemented,
                        "its elements are {}, big-endian: save them as '<{}'",
                        TypeOf(descr), code);
  }
  if (integers) return NoInteger(descr);
  return Unimplemented(
      "its elements are {}: want bool ('|b1'), int8 ('|i1'), int16 ('<i2'), "
      "int32 ('<i4'), int64 ('<i8'), uint8 ('|u1'), uint16 ('<u2'), uint32 "
      "('<u4'), float16 ('<f2'), float32 ('<f4'){} or bfloat16 ('<V2')",
      TypeOf(descr),
      wanted == NumpyElements::kFloat64Too ? ", float64 ('<f8')" : "");
}

// The dictionary's text, consumed from its front.
class Dictionary {
 public:
  Dictionary(std::string_view text, NumpyElements wanted)
      : bytes_(text.size()), rest_(text), wanted_(wanted) {}

  absl::StatusOr<NumpyHeader> Parse() {
    if (!Take('{')) return Malformed("a dictionary");
    while (!Take('}')) {
      ASSIGN_OR_RETURN(const std::string_view key, Text());
      if (!Take(':')) return Malformed("a colon");
      RETURN_IF_ERROR(Entry(key));
      if (Take(',')) continue;
      if (Take('}')) break;
      return Malformed("a comma or the dictionary's end");
    }
    SkipBlanks();
    if (!rest_.empty()) return Malformed("the header's end");
    if (!has_descr_ || !has_order_ || !has_shape_)
      return DataLoss(
          "its header has not all of 'descr', 'fortran_order' and 'shape'");
    RETURN_IF_ERROR(CountBytes());
    return header_;
  }

 private:
  absl::Status Malformed(std::string_view wanted) const {
    return DataLoss("its header is malformed: want {} at byte {} of {}", wanted,
                    bytes_ - rest_.size(), bytes_);
  }

  void SkipBlanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n'))
      rest_.remove_prefix(1);
  }

  bool Take(char c) {
    SkipBlanks();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool TakeWord(std::string_view word) {
    SkipBlanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  absl::StatusOr<std::string_view> Text() {
    SkipBlanks();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"'))
      return Malformed("a quoted text");
    const size_t end = rest_.find(rest_[0], 1);
    if (end == std::string_view::npos) return Malformed("a text that ends");
    const std::string_view text = rest_.substr(1, end - 1);
    if (text.find('\\') != std::string_view::npos)
      return Malformed("a text without escapes");
    rest_.remove_prefix(end + 1);
    return text;
  }

  absl::Status Once(bool* has, std::string_view key) {
    if (*has) return DataLoss("its header has '{}' twice", key);
    *has = true;
    return absl::OkStatus();
  }

  absl::Status Entry(std::string_view key) {
    if (key == "descr") {
      RETURN_IF_ERROR(Once(&has_descr_, key));
      SkipBlanks();
      if (!rest_.empty() && (rest_[0] == '[' || rest_[0] == '('))
        return RefuseRecords();
      ASSIGN_OR_RETURN(const std::string_view descr, Text());
      if (wanted_ == NumpyElements::kFloat64Too && descr == "<f8") {
        header_.float64 = true;
        header_.dtype = DType::kInt64;
        return absl::OkStatus();
      }
      ASSIGN_OR_RETURN(header_.dtype, DTypeOf(descr, wanted_));
      return absl::OkStatus();
    }
    if (key == "fortran_order") {
      RETURN_IF_ERROR(Once(&has_order_, key));
      header_.fortran_order = TakeWord("True");
      if (!header_.fortran_order && !TakeWord("False"))
        return Malformed("True or False");
      return absl::OkStatus();
    }
    if (key == "shape") {
      RETURN_IF_ERROR(Once(&has_shape_, key));
      return ParseShape();
    }
    return DataLoss("its header has an unknown key '{}'", Shown(key));
  }

  absl::Status RefuseRecords() const {
    const std::string type = Shown(rest_.substr(0, rest_.find(']') + 1));
    if (wanted_ == NumpyElements::kIntegers)
      return InvalidArgument(
          "its elements are records with fields, {}: want integers", type);
    return Unimplemented(
        "its elements are records with fields, {}: want one type of numbers",
        type);
  }

  absl::Status ParseShape() {
    if (!Take('(')) return Malformed("a tuple");
    while (!Take(')')) {
      SkipBlanks();
      if (rest_.empty() || rest_[0] < '0' || rest_[0] > '9')
        return Malformed("a size");
      uint64_t size = 0;
      while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
        size = size * 10 + static_cast<uint64_t>(rest_[0] - '0');
        if (size > kMaxBytes)
          return DataLoss("its header has an axis of over {} elements",
                          kMaxBytes);
        rest_.remove_prefix(1);
      }
      // Python 2 wrote long numbers with this suffix.
      if (!rest_.empty() && rest_[0] == 'L') rest_.remove_prefix(1);
      if (header_.shape.size() == kMaxRank)
        return DataLoss("its header has over {} axes", kMaxRank);
      header_.shape.push_back(static_cast<int64_t>(size));
      if (Take(',')) continue;
      if (Take(')')) break;
      return Malformed("a comma or the tuple's end");
    }
    return absl::OkStatus();
  }

  absl::Status CountBytes() {
    uint64_t bytes = SizeOf(header_.dtype);
    bool empty = false;
    for (const int64_t side : header_.shape) {
      const auto size = static_cast<uint64_t>(side);
      empty = empty || size == 0;
      if (size > 0 && bytes > kMaxBytes / size)
        return DataLoss("its header claims over {} bytes", kMaxBytes);
      if (size > 0) bytes *= size;
    }
    header_.data_bytes = empty ? 0 : bytes;
    return absl::OkStatus();
  }

  const size_t bytes_;
  std::string_view rest_;
  const NumpyElements wanted_;
  NumpyHeader header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

absl::StatusOr<size_t> NumpyHeaderBytes(std::span<const std::byte> begin) {
  const std::string_view text = AsText(begin);
  if (!text.starts_with(kNumpyMagic))
    return DataLoss("no .npy file: it does not begin with \\x93NUMPY");
  if (begin.size() < kNumpyPrefixBytes)
    return DataLoss("a .npy file of {} bytes: it ends in its header",
                    begin.size());
  const auto at = [&](size_t i) { return static_cast<size_t>(begin[i]); };
  size_t bytes = 0;
  if (at(6) == 1) {
    bytes = 10 + at(8) + (at(9) << 8);
  } else if (at(6) == 2 || at(6) == 3) {
    bytes = 12 + at(8) + (at(9) << 8) + (at(10) << 16) + (at(11) << 24);
  } else {
    return Unimplemented(".npy version {}.{}: want 1.0, 2.0 or 3.0", at(6),
                         at(7));
  }
  if (bytes < kNumpyPrefixBytes || bytes > kMaxNumpyHeaderBytes)
    return DataLoss("a .npy header of {} bytes: want {} to {}", bytes,
                    kNumpyPrefixBytes, kMaxNumpyHeaderBytes);
  return bytes;
}

absl::StatusOr<NumpyHeader> ParseNumpyHeader(std::span<const std::byte> header,
                                             NumpyElements wanted) {
  ASSIGN_OR_RETURN(const size_t bytes, NumpyHeaderBytes(header));
  if (bytes != header.size())
    return DataLoss("it ends in its header, at byte {} of {}", header.size(),
                    bytes);
  const size_t prefix = header[6] == std::byte{1} ? 10 : 12;
  ASSIGN_OR_RETURN(NumpyHeader parsed,
                   Dictionary(AsText(header.subspan(prefix)), wanted).Parse());
  parsed.data_offset = bytes;
  return parsed;
}

}  // namespace leat::worker
