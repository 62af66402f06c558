// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/sheet.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "client/cli/base/fields.h"
#include "client/cli/base/text.h"
#include "client/cli/previews/font.h"
#include "core/counted.h"
#include "core/status.h"

namespace leat::cli {
namespace {

// Origins says where the rows of a job come from.
class Origins {
 public:
  // `job`: a leat.v1.Job.
  explicit Origins(const Json& job) : mixed_(!Items(job, "datasets").empty()) {
    if (!mixed_) classes_.push_back(Strings(job, "dataset.classes"));
    uint64_t end = 0;
    for (const Json& dataset : Items(job, "datasets")) {
      classes_.push_back(Strings(dataset, "classes"));
      ends_.push_back(end += Whole(dataset, "shards.num_samples"));
    }
    for (const Json& source : Items(job, "spec.sources"))
      names_.push_back(Text(source, "name"));
  }

  RowOrigin Of(uint64_t sample) const {
    if (!mixed_) return {"", classes_[0]};
    const size_t source = static_cast<size_t>(
        std::ranges::upper_bound(ends_, sample) - ends_.begin());
    if (source >= ends_.size() || source >= names_.size()) return {};
    return {names_[source], classes_[source]};
  }

 private:
  const bool mixed_;
  std::vector<std::vector<std::string>> classes_;  // of each dataset
  std::vector<uint64_t> ends_;                     // of a mixture's samples
  std::vector<std::string> names_;
};

// Returns "dataset photos", or in a mixture "3 datasets".
std::string DatasetsText(const Json& job) {
  const size_t mixed = Items(job, "datasets").size();
  if (mixed > 0) return Counted(mixed, "dataset");
  return fmt::format("dataset {}", Text(job, "dataset.name"));
}

struct Color {
  uint8_t r, g, b;
};
constexpr Color kPaper = {250, 250, 248};
constexpr Color kInk = {28, 28, 30};
constexpr Color kPale = {128, 128, 132};
constexpr Color kRed = {190, 30, 30};

constexpr int kMargin = 20;
constexpr int kSheetGap = 12;
constexpr int kLineGap = 4;

int LineHeight(int scale) { return (kGlyphHeight - 1) * scale + kLineGap; }
int TextWidth(size_t characters, int scale) {
  return static_cast<int>(characters) * (kGlyphWidth + 1) * scale;
}

// Returns ASCII of at most `width` pixels; longer text ends in "..".
std::string CutToPixels(std::string_view text, int width, int scale) {
  std::string ascii;
  for (const char c : Printable(text)) {
    // One question mark for a character of several bytes.
    if ((static_cast<uint8_t>(c) & 0xC0) != 0x80) {
      ascii += c >= ' ' && c <= '~' ? c : '?';
    }
  }
  const int room = std::max(1, width / TextWidth(1, scale));
  if (std::ssize(ascii) > room) {
    ascii.resize(static_cast<size_t>(std::max(0, room - 2)));
    ascii += "..";
  }
  return ascii;
}

class Canvas {
 public:
  Canvas(int width, int height) : picture_{width, height, {}} {
    picture_.rgb.resize(static_cast<size_t>(width) * height * 3);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) Dot(x, y, kPaper);
    }
  }
  void Write(std::string_view text, int x, int y, int scale, Color color) {
    for (const char c : text) {
      const uint8_t* glyph = Glyph(c);
      for (int v = 0; v < kGlyphHeight * scale; ++v) {
        for (int u = 0; u < kGlyphWidth * scale; ++u) {
          if (glyph[v / scale] >> (kGlyphWidth - 1 - u / scale) & 1) {
            Dot(x + u, y + v, color);
          }
        }
      }
      x += TextWidth(1, scale);
    }
  }
  void Paste(const RgbImage& picture, int x, int y) {
    const auto bytes = static_cast<size_t>(picture.width) * 3;
    for (int v = 0; v < picture.height; ++v) {
      std::memcpy(At(x, y + v), &picture.rgb[v * bytes], bytes);
    }
  }
  void Frame(int x, int y, int width, int height, Color color) {
    for (int u = 0; u < width; ++u) {
      Dot(x + u, y, color);
      Dot(x + u, y + height - 1, color);
    }
    for (int v = 0; v < height; ++v) {
      Dot(x, y + v, color);
      Dot(x + width - 1, y + v, color);
    }
  }
  RgbImage Take() { return std::move(picture_); }

 private:
  uint8_t* At(int x, int y) {
    return &picture_.rgb[(static_cast<size_t>(y) * picture_.width + x) * 3];
  }
  void Dot(int x, int y, Color color) {
    if (x < 0 || y < 0 || x >= picture_.width || y >= picture_.height) return;
    uint8_t* at = At(x, y);
    at[0] = color.r;
    at[1] = color.g;
    at[2] = color.b;
  }
  RgbImage picture_;
};

const FieldRows* FindField(const std::vector<FieldRows>& fields,
                           std::string_view name) {
  for (const FieldRows& field : fields)
    if (field.name == name) return &field;
  return nullptr;
}

// Returns columns for about 4:3 overall, with few empty cells.
int ChooseColumns(int count, int cell_width, int cell_height) {
  const double ideal = std::sqrt(count * 1.4 * cell_height / cell_width);
  int best = std::max(1, static_cast<int>(std::lround(ideal)));
  const auto cost = [&](int columns) {
    const int empty = (count + columns - 1) / columns * columns - count;
    return static_cast<double>(empty) / columns +
           std::abs(columns - ideal) / ideal;
  };
  for (int columns = 1; columns <= count; ++columns) {
    if (cost(columns) < cost(best)) best = columns;
  }
  return best;
}

}  // namespace

RgbImage DrawSheet(std::string_view title, std::string_view detail,
                   const std::vector<Tile>& tiles, const SheetLayout& layout) {
  std::vector<RgbImage> images;
  int width = 0, height = 0;
  for (const Tile& tile : tiles) {
    images.push_back(
        Fit(tile.picture, layout.smallest_tile, layout.largest_tile));
    width = std::max(width, images.back().width);
    height = std::max(height, images.back().height);
  }
  const int count = static_cast<int>(tiles.size());
  const int scale = width >= 160 ? 2 : 1;
  const int caption = kLineGap + LineHeight(scale) + LineHeight(1);
  const int cell_width = width + kSheetGap;
  const int cell_height = height + caption + kSheetGap;
  int columns = layout.columns;
  if (columns <= 0) columns = ChooseColumns(count, cell_width, cell_height);
  columns = std::clamp(columns, 1, count);
  const int lines = (count + columns - 1) / columns;
  const int head = LineHeight(2) + LineHeight(1) + kSheetGap;
  const int sheet_width = 2 * kMargin + columns * cell_width - kSheetGap;
  Canvas canvas(sheet_width,
                2 * kMargin + head + lines * cell_height - kSheetGap);
  const int text_width = sheet_width - 2 * kMargin;
  canvas.Write(CutToPixels(title, text_width, 2), kMargin, kMargin, 2, kInk);
  canvas.Write(CutToPixels(detail, text_width, 1), kMargin,
               kMargin + LineHeight(2), 1, kPale);
  for (int i = 0; i < count; ++i) {
    const RgbImage& picture = images[static_cast<size_t>(i)];
    const Tile& tile = tiles[static_cast<size_t>(i)];
    const int x = kMargin + i % columns * cell_width;
    const int y = kMargin + head + i / columns * cell_height;
    // Smaller pictures are centred in their cell.
    const int left = x + (width - picture.width) / 2;
    const int top = y + (height - picture.height) / 2;
    canvas.Paste(picture, left, top);
    if (tile.bad) {
      canvas.Frame(left - 2, top - 2, picture.width + 4, picture.height + 4,
                   kRed);
    }
    const int under = y + height + kLineGap;
    canvas.Write(CutToPixels(tile.label, width, scale), x, under, scale,
                 tile.bad ? kRed : kInk);
    canvas.Write(CutToPixels(tile.detail, width, 1), x,
                 under + LineHeight(scale), 1, kPale);
  }
  return canvas.Take();
}

absl::StatusOr<Sheet> MakeSheet(const Rows& rows, std::string_view image_field,
                                const SheetLayout& layout) {
  std::vector<FieldRows> fields;
  ASSIGN_OR_RETURN(const Json job, ParseObject(rows.job_json, "job"));
  // The number of a source is no label.
  const std::string numbers = Text(job, "spec.source_field");
  for (const Field& field : rows.fields)
    if (numbers.empty() || field.name != numbers)
      fields.push_back(RowsOf(field));
  ASSIGN_OR_RETURN(const size_t image, FindImage(fields, image_field));
  const FieldRows* const field = &fields[image];
  ASSIGN_OR_RETURN(Previews previews, ToPreviews(*field));
  if (previews.rows.empty()) {
    return InvalidArgument("epoch {}, step {} has no row", rows.epoch,
                           rows.step);
  }
  const Origins origins(job);
  const FieldRows* label = FindLabel(fields);
  const FieldRows* valid = FindField(fields, "valid");
  std::vector<Tile> tiles;
  for (size_t i = 0; i < previews.rows.size(); ++i) {
    Tile tile;
    const bool padding =
        i < rows.samples.size() && rows.samples[i] == kNoSample;
    tile.bad = !padding && valid != nullptr && WholeAt(*valid, i) == 0;
    tile.picture = std::move(previews.rows[i]);
    tile.label = tile.bad  ? "bad sample"
                 : padding ? "padding"
                 : i < rows.samples.size()
                     ? LabelText(label, i, origins.Of(rows.samples[i]))
                     : LabelText(label, i, RowOrigin{});
    tile.detail = fmt::format("row {}", i);
    if (i < rows.samples.size() && !padding) {
      tile.detail += fmt::format(" sample {}", rows.samples[i]);
    }
    tiles.push_back(std::move(tile));
  }
  const std::string title =
      fmt::format("{}  epoch {}  step {}", Text(job, "spec.name"), rows.epoch,
                  OfSteps(rows.step, " of ", rows.steps_per_epoch));
  std::string detail =
      fmt::format("{} of {} rows, field {} {} {}x{}, {}, plan {}", tiles.size(),
                  rows.batch, field->name, field->dtype, tiles[0].picture.width,
                  tiles[0].picture.height, DatasetsText(job),
                  HexOfBase64(Text(job, "plan_hash")).substr(0, 12));
  if (!previews.note.empty()) detail += ", " + previews.note;
  return Sheet{DrawSheet(title, detail, tiles, layout), tiles.size(),
               previews.note};
}

}  // namespace leat::cli
