// SPDX-License-Identifier: Apache-2.0
#include "core/observe/previews.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/status.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/value_types.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

constexpr int64_t kMaxPictureSide = 16384;

template <class T>
T Load(const std::byte* data, size_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

// A function that reads one value as float, and the value's size; {nullptr, 0}:
// unknown.
struct ValueReader {
  float (*read)(const std::byte*, size_t) = nullptr;
  size_t bytes = 0;
};

ValueReader FindReader(std::string_view name) {
  ValueReader reader;
  if (const std::optional<DType> dtype = ParseDType(name))
    WithStorage(*dtype, [&]<class T>(T) {
      reader = {[](const std::byte* data, size_t i) {
                  if constexpr (std::is_same_v<T, bool>)
                    return static_cast<float>(Load<uint8_t>(data, i));
                  else
                    return ToFloat(Load<T>(data, i));
                },
                sizeof(T)};
    });
  return reader;
}

bool IsChannels(int64_t n) { return n == 1 || n == 3 || n == 4; }

std::string Describe(const FieldRows& field) {
  return fmt::format(
      "{} {} ({})", field.name, field.dtype,
      fmt::join(field.shape.begin() +
                    std::min<std::ptrdiff_t>(1, std::ssize(field.shape)),
                field.shape.end(), ", "));
}

// The mapping brightness = (value - low) * scale, for each channel.
struct Tones {
  float low[4] = {0, 0, 0, 0};
  float scale[4] = {1, 1, 1, 1};
  std::string note;
};

Tones FindTones(const FieldRows& field, const ImageShape& shape,
                const ValueReader& reader) {
  Tones tones;
  if (field.dtype == "uint8") return tones;
  float low[4], high[4];
  std::fill_n(low, 4, std::numeric_limits<float>::infinity());
  std::fill_n(high, 4, -std::numeric_limits<float>::infinity());
  const auto plane = static_cast<size_t>(shape.height * shape.width);
  const auto channels = static_cast<size_t>(shape.channels);
  const size_t count = field.data.size() / reader.bytes;
  for (size_t i = 0; i < count; ++i) {
    const float value = reader.read(field.data.data(), i);
    if (!std::isfinite(value)) continue;
    const size_t c = shape.channels_first ? i / plane % channels : i % channels;
    low[c] = std::min(low[c], value);
    high[c] = std::max(high[c], value);
  }
  const float least = *std::min_element(low, low + channels);
  const float most = *std::max_element(high, high + channels);
  if (!(least <= most)) return tones;  // no finite value
  if (least >= 0 && most <= 1) {
    std::fill_n(tones.scale, 4, 255.0f);
    return tones;
  }
  if (least >= 0 && most <= 255) return tones;
  tones.note = fmt::format(
      "{} values {:.3g} to {:.3g} stretched to black and "
      "white",
      field.dtype, least, most);
  for (size_t c = 0; c < channels; ++c) {
    tones.low[c] = low[c];
    tones.scale[c] = high[c] > low[c] ? 255 / (high[c] - low[c]) : 0;
  }
  return tones;
}

uint8_t Brightness(float value) {
  if (!(value > 0)) return 0;  // also for NaN
  return static_cast<uint8_t>(std::lround(std::min(value, 255.0f)));
}

}  // namespace

absl::StatusOr<ImageShape> ImageShapeOf(const FieldRows& field) {
  const std::span<const int64_t> s = field.shape;
  ImageShape shape;
  if (s.size() == 3) {
    shape = {s[1], s[2], 1, false};
  } else if (s.size() == 4 && IsChannels(s[3])) {
    shape = {s[1], s[2], s[3], false};
  } else if (s.size() == 4 && IsChannels(s[1])) {
    shape = {s[2], s[3], s[1], true};
  }
  const auto side = [](int64_t n) { return n >= 2 && n <= kMaxPictureSide; };
  if (!side(shape.height) || !side(shape.width) ||
      FindReader(field.dtype).bytes == 0) {
    return InvalidArgument(
        "field {}: not an image; want (H, W), (H, W, 1|3|4) or (1|3|4, H, W), "
        "with sides of 2 to {}",
        Describe(field), kMaxPictureSide);
  }
  return shape;
}

absl::StatusOr<size_t> FindImage(std::span<const FieldRows> fields,
                                 std::string_view wanted) {
  std::string list;
  for (size_t i = 0; i < fields.size(); ++i) {
    const FieldRows& field = fields[i];
    if (!wanted.empty() && field.name == wanted) {
      RETURN_IF_ERROR(ImageShapeOf(field).status());
      return i;
    }
    if (wanted.empty() && ImageShapeOf(field).ok()) return i;
    list += (list.empty() ? "" : "; ") + Describe(field);
  }
  if (!wanted.empty())
    return InvalidArgument("no field \"{}\"; the job has: {}", wanted, list);
  return InvalidArgument("no image among the job's fields: {}", list);
}

absl::StatusOr<Previews> ToPreviews(const FieldRows& field) {
  ASSIGN_OR_RETURN(const ImageShape shape, ImageShapeOf(field));
  const ValueReader reader = FindReader(field.dtype);
  const auto pixels = static_cast<size_t>(shape.height * shape.width);
  const auto channels = static_cast<size_t>(shape.channels);
  const auto rows = static_cast<size_t>(field.shape[0]);
  if (field.data.size() / reader.bytes / channels / pixels < rows) {
    return Internal("field {}: {} bytes are too few for {} rows",
                    Describe(field), field.data.size(), rows);
  }
  const Tones tones = FindTones(field, shape, reader);
  const size_t pixel_step = shape.channels_first ? 1 : channels;
  const size_t channel_step = shape.channels_first ? pixels : 1;
  Previews previews{.rows = {}, .note = tones.note};
  for (size_t row = 0; row < rows; ++row) {
    RgbImage picture{static_cast<int>(shape.width),
                     static_cast<int>(shape.height),
                     std::vector<uint8_t>(pixels * 3)};
    for (size_t p = 0; p < pixels; ++p) {
      for (size_t k = 0; k < 3; ++k) {
        const size_t c = channels == 1 ? 0 : k;
        const float value = reader.read(
            field.data.data(),
            row * pixels * channels + p * pixel_step + c * channel_step);
        picture.rgb[p * 3 + k] =
            Brightness((value - tones.low[c]) * tones.scale[c]);
      }
    }
    previews.rows.push_back(std::move(picture));
  }
  return previews;
}

RgbImage Fit(const RgbImage& picture, int smallest, int largest) {
  const int side = std::max(picture.width, picture.height);
  double scale = 1;
  if (side > largest) scale = static_cast<double>(largest) / side;
  const int times = (smallest + side - 1) / side;
  if (side < smallest) scale = times;
  if (scale == 1) return picture;
  const auto scaled = [&](int n) {
    return std::max(1, static_cast<int>(std::lround(n * scale)));
  };
  RgbImage out{scaled(picture.width), scaled(picture.height), {}};
  out.rgb.resize(static_cast<size_t>(out.width) * out.height * 3);
  // Returns the source range of an output pixel, at least one pixel.
  const auto range = [](int i, int from, int to) {
    const int begin = static_cast<int>(static_cast<int64_t>(i) * from / to);
    const int end =
        static_cast<int>((static_cast<int64_t>(i + 1) * from + to - 1) / to);
    return std::pair(begin, std::max(end, begin + 1));
  };
  for (int y = 0; y < out.height; ++y) {
    const auto [top, bottom] = range(y, picture.height, out.height);
    for (int x = 0; x < out.width; ++x) {
      const auto [left, right] = range(x, picture.width, out.width);
      uint32_t sum[3] = {0, 0, 0};
      for (int v = top; v < bottom; ++v) {
        for (int u = left; u < right; ++u) {
          const size_t at = (static_cast<size_t>(v) * picture.width + u) * 3;
          for (size_t k = 0; k < 3; ++k) sum[k] += picture.rgb[at + k];
        }
      }
      const auto area = static_cast<uint32_t>((bottom - top) * (right - left));
      const size_t to = (static_cast<size_t>(y) * out.width + x) * 3;
      for (size_t k = 0; k < 3; ++k) {
        out.rgb[to + k] = static_cast<uint8_t>((sum[k] + area / 2) / area);
      }
    }
  }
  return out;
}

std::optional<int64_t> WholeAt(const FieldRows& field, size_t row) {
  for (size_t i = 1; i < field.shape.size(); ++i)
    if (field.shape[i] != 1) return std::nullopt;
  const std::optional<DType> dtype = ParseDType(field.dtype);
  if (!dtype || IsFloat(*dtype) ||
      (row + 1) * SizeOf(*dtype) > field.data.size())
    return std::nullopt;
  std::optional<int64_t> value;
  WithStorage(*dtype, [&]<class T>(T) {
    if constexpr (std::is_same_v<T, bool>)
      value = Load<uint8_t>(field.data.data(), row);
    else if constexpr (std::is_integral_v<T>)
      value = static_cast<int64_t>(Load<T>(field.data.data(), row));
  });
  return value;
}

const FieldRows* FindLabel(std::span<const FieldRows> fields) {
  const FieldRows* only = nullptr;
  bool several = false;
  for (const FieldRows& field : fields) {
    if (field.name == "label") return &field;
    if (field.dtype == "bool" || !WholeAt(field, 0)) continue;
    several = several || only != nullptr;
    only = &field;
  }
  return several ? nullptr : only;
}

std::string LabelText(const FieldRows* label, size_t row,
                      std::span<const std::string> classes) {
  const std::optional<int64_t> number =
      label == nullptr ? std::nullopt : WholeAt(*label, row);
  if (!number) return "";
  if (*number >= 0 && *number < std::ssize(classes))
    if (const std::string& name = classes[static_cast<size_t>(*number)];
        !name.empty())
      return name;
  return fmt::format("{}", *number);
}

std::string LabelText(const FieldRows* label, size_t row,
                      const RowOrigin& origin) {
  std::string text = LabelText(label, row, origin.classes);
  if (origin.source.empty()) return text;
  return text.empty() ? std::string(origin.source)
                      : fmt::format("{}: {}", origin.source, text);
}

}  // namespace leat
