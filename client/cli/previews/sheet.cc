// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/sheet.h"

#include <algorithm>
#include <cmath>

#include "client/cli/base/fields.h"
#include "client/cli/base/text.h"
#include "client/cli/previews/canvas.h"
#include "client/cli/previews/origins.h"
#include "core/status.h"

namespace leat::cli {
namespace {

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
