// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/sheet_reporter.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::client {
namespace {

// Returns the first `rows` rows of a field; `shape` stores their shape.
FieldRows First(const FieldRows& field, int64_t rows,
                std::vector<int64_t>* shape) {
  shape->assign(field.shape.begin(), field.shape.end());
  if (shape->empty() || (*shape)[0] <= rows) return field;
  const size_t row_bytes = field.data.size() / static_cast<size_t>((*shape)[0]);
  (*shape)[0] = rows;
  return {field.name, field.dtype, *shape,
          field.data.first(row_bytes * static_cast<size_t>(rows))};
}

absl::Status Draw(std::span<const FieldRows> fields,
                  SheetReporter::OriginOf origin, const v1::WantSheet& wish,
                  v1::RowsSheet* sheet) {
  ASSIGN_OR_RETURN(const size_t image, FindImage(fields, ""));
  std::vector<int64_t> shape;
  ASSIGN_OR_RETURN(const Previews previews,
                   ToPreviews(First(fields[image], wish.rows(), &shape)));
  const FieldRows* const label = FindLabel(fields);
  sheet->set_field(std::string(fields[image].name));
  sheet->set_note(previews.note);
  for (size_t row = 0; row < previews.rows.size(); ++row) {
    const RgbImage small =
        Fit(previews.rows[row], /*smallest=*/1, static_cast<int>(wish.side()));
    v1::SheetTile& tile = *sheet->add_tiles();
    tile.set_width(static_cast<uint32_t>(small.width));
    tile.set_height(static_cast<uint32_t>(small.height));
    tile.set_rgb(small.rgb.data(), small.rgb.size());
    tile.set_label(LabelText(label, row, origin(row)));
  }
  return absl::OkStatus();
}

v1::RowsSheet Begun(const v1::WantSheet& wish, uint64_t epoch, uint64_t step) {
  v1::RowsSheet sheet;
  sheet.set_number(wish.number());
  sheet.set_epoch(epoch);
  sheet.set_step(step);
  return sheet;
}

}  // namespace

void SheetReporter::Begin(const v1::WantSheet& wanted) {
  MutexLock lock(&mu_);
  wish_ = wanted;
  wish_.set_rows(std::clamp(wanted.rows(), 1u, kMaxRows));
  wish_.set_side(std::clamp(wanted.side(), 1u, kMaxSide));
  wanted_ = true;
}

std::optional<v1::WantSheet> SheetReporter::TakeWish() {
  if (!wanted_.exchange(false)) return std::nullopt;
  MutexLock lock(&mu_);
  return wish_;
}

void SheetReporter::Put(v1::RowsSheet sheet) {
  MutexLock lock(&mu_);
  ready_ = std::move(sheet);
}

void SheetReporter::Answer(uint64_t epoch, uint64_t step,
                           std::span<const FieldRows> fields, OriginOf origin) {
  const std::optional<v1::WantSheet> wish = TakeWish();
  if (!wish) return;
  v1::RowsSheet sheet = Begun(*wish, epoch, step);
  const absl::Status drawn = Draw(fields, origin, *wish, &sheet);
  if (!drawn.ok()) sheet.set_why_not(std::string(Message(drawn)));
  Put(std::move(sheet));
}

void SheetReporter::Refuse(uint64_t epoch, uint64_t step, std::string why_not) {
  const std::optional<v1::WantSheet> wish = TakeWish();
  if (!wish) return;
  v1::RowsSheet sheet = Begun(*wish, epoch, step);
  sheet.set_why_not(std::move(why_not));
  Put(std::move(sheet));
}

std::optional<v1::RowsSheet> SheetReporter::Take() {
  MutexLock lock(&mu_);
  return std::exchange(ready_, std::nullopt);
}

}  // namespace leat::client
