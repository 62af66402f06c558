// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/group.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <string>

#include "core/status.h"
#include "worker/gpu/fused/host_steps.h"
#include "worker/gpu/fused/source_steps.h"
#include "worker/gpu/kernels/fused.h"
#include "worker/gpu/layout/fused_layout.h"
#include "worker/gpu/layout/table_copy.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxSlices = 65'535;  // blocks along the grid's second axis
constexpr int64_t kMaxSpan = std::numeric_limits<int32_t>::max();

// Returns the smallest rectangle that contains both.
TurnedRect Union(const TurnedRect& a, const TurnedRect& b) {
  const int64_t x = std::min(a.x, b.x), y = std::min(a.y, b.y);
  return {x, y, std::max(a.x + a.width, b.x + b.width) - x,
          std::max(a.y + a.height, b.y + b.height) - y};
}

// Returns an error that makes the CPU compute the row, and report its faults.
absl::Status ForTheCpu(const absl::Status& status) {
  return ResourceExhausted("{}", Message(status));
}

}  // namespace

absl::Status FusedGroup::Begin(const FusedProgram& program, size_t rows,
                               std::span<std::byte> memory,
                               const StageDevice& device) {
  const uint64_t bytes = program.BlockBytes(rows);
  if (rows == 0 || rows * program.views() > kMaxSlices)
    return InvalidArgument("group of {} rows of {} views, want 1 to {} in all",
                           rows, program.views(), kMaxSlices);
  if (bytes > std::numeric_limits<uint32_t>::max())
    return InvalidArgument(
        "group of {} rows needs a block of {} bytes, over "
        "what 32 bits can address",
        rows, bytes);
  if (memory.size() < bytes ||
      reinterpret_cast<uintptr_t>(memory.data()) % kFusedAlignment != 0)
    return InvalidArgument(
        "block of {} bytes at {}, want {} bytes aligned to {}", memory.size(),
        static_cast<const void*>(memory.data()), bytes, kFusedAlignment);
  program_ = &program;
  memory_ = memory;
  rows_.assign(rows, {});
  slices_.assign(rows * program.views(), Slice{});
  header_ = program.header_;
  header_.rows = static_cast<uint32_t>(rows);
  const uint64_t tables_at = program.TablesAt(&header_);
  std::copy(program.prefix_.begin(), program.prefix_.end(), memory.begin());
  memcpy(memory.data(), &header_, sizeof header_);
  std::fill(memory.begin() + header_.rows_at,
            memory.begin() + static_cast<ptrdiff_t>(tables_at), std::byte{0});
  used_.store(tables_at, std::memory_order_relaxed);
  stages_.Begin(*program.stages_, rows, program.fields(), memory,
                program.constants_at_, program.StagesAt(&header_), device);
  for (size_t head = 0; head < program.heads_.size(); ++head)
    for (size_t row = 0; row < rows; ++row)
      BindOutput(row, program.fields() + head,
                 DeviceAddress(stages_.AddressOf(row, program.heads_[head])));
  return absl::OkStatus();
}

FusedRow& FusedGroup::Descriptor(size_t row, size_t view) const {
  return At<FusedRow>(header_.rows_at)[row * header_.views + view];
}

FusedRow& FusedGroup::RowOf(size_t row, size_t view) {
  return program_->views_[view].stage ? slices_[row * header_.views + view].row
                                      : Descriptor(row, view);
}

// Checks that a view has the size of all rows, or its own size has room.
absl::Status FusedGroup::CheckSize(const FusedImage& image, const View& view,
                                   Slice* slice, FusedScratch* scratch) const {
  const ImageSize size = view.size();
  slice->size = size;
  if (image.stage) {
    const int64_t sizes[] = {size.height, size.width, program_->channels()};
    const Whose whose = program_->chains_[image.chain].whose;
    return SetSizes(image.value, DType::kUint8, sizes,
                    program_->stages_->most_elements(),
                    &scratch->samples[whose].values);
  }
  if (size.width != image.size.width || size.height != image.size.height)
    return Internal("view of {} × {}, want {} × {}", size.width, size.height,
                    image.size.width, image.size.height);
  return absl::OkStatus();
}

absl::Status FusedGroup::ComputeHostValues(size_t row, Whose whose,
                                           const RowInput& input,
                                           FusedScratch* scratch) {
  const FusedProgram& program = *program_;
  FusedScratch::Sample& sample = scratch->samples[whose];
  sample.values = program.shapes_;
  sample.host.resize(program.values_);
  for (const FusedProgram::StoredValue& stored : program.stored_) {
    if (stored.output >= input.fields.size() ||
        input.fields[stored.output].bytes.size() != stored.bytes)
      return DataLoss("output {} of the reader is no {} {}", stored.output,
                      Name(stored.dtype),
                      stored.bytes == SizeOf(stored.dtype)
                          ? std::string("scalar")
                          : fmt::format("value of {} bytes", stored.bytes));
    memcpy(PlaceHostValue(stored.value, &sample),
           input.fields[stored.output].bytes.data(), stored.bytes);
  }
  for (const Step& step : program.host_steps_[whose])
    if (const absl::Status host = RunHostStep(step, whose, input, scratch);
        !host.ok())
      return ForTheCpu(host);
  if (whose != Whose::kRow) return absl::OkStatus();
  for (const FusedField& field : program.fields_) {
    if (field.kind == FusedKind::kHost)
      memcpy(At<std::byte>(header_.host_values_at) + row * header_.host_stride +
                 field.at,
             sample.values[program.output_values_[field.output]].data,
             field.element_bytes);
  }
  return absl::OkStatus();
}

// If the program reduces images, the sample has one chain that is not the child
// of another, and the resize is in it (core/pipeline/reduction.h).
absl::Status FusedGroup::ComposeChains(Whose whose, const RowInput& input,
                                       FusedScratch* scratch, Image* image) {
  const FusedProgram& program = *program_;
  const View turned(image->orientation.Turned(image->stored));
  std::vector<View>& chains = scratch->chains;
  chains.resize(program.chains_.size(), turned);
  for (size_t c = 0; c < chains.size(); ++c) {
    const FusedChain& chain = program.chains_[c];
    if (chain.whose != whose) continue;
    const bool first = chain.parent == c;
    chains[c] = first ? turned : chains[chain.parent];
    RETURN_IF_ERROR(ComposeView(chain.ops, input,
                                scratch->samples[whose].values, &chains[c]));
    if (!first || !program.reduces()) continue;
    image->halvings = chains[c].MostHalvings();
    image->pixel_halvings =
        chains[c].HalvingsOfAll(image->orientation.Turned(image->stored));
    if (image->halvings == 0) continue;
    chains[c].Halve(image->orientation.Across(image->stored, image->halvings),
                    image->orientation.Down(image->stored, image->halvings));
    image->stored = Halved(image->stored, image->halvings);
  }
  return absl::OkStatus();
}

absl::Status FusedGroup::CheckLimits(Whose whose, FusedScratch* scratch) const {
  const std::vector<View>& chains = scratch->chains;
  const FusedLimits& limits = program_->limits_;
  uint64_t bytes = 0;
  for (const FusedImage& image : program_->views_) {
    const View& view = chains[image.chain];
    if (program_->chains_[image.chain].whose != whose || !view.resampled())
      continue;
    const Rect& from = view.before();
    int across, down;
    const ImageSize size = view.size();
    if (view.by_dali()) {
      scratch->dali_across.SetAxis(view.across());
      scratch->dali_down.SetAxis(view.down());
      across = scratch->dali_across.taps();
      down = scratch->dali_down.taps();
      bytes += DaliTableBytes(scratch->dali_across, scratch->dali_down, size);
    } else {
      across = ResampleTable::MostTaps(view.across());
      down = ResampleTable::MostTaps(view.down());
      bytes += TableBytes(size.width, across, size.height, down);
    }
    if (bytes > limits.max_table_bytes)
      return ResourceExhausted(
          "resampling {} × {} to {} × {} needs tables of {} bytes, over the "
          "limit of {}",
          from.width, from.height, view.to().width, view.to().height, bytes,
          limits.max_table_bytes);
    const uint64_t taps = static_cast<uint64_t>(across) *
                          static_cast<uint64_t>(std::min<int64_t>(
                              from.height, int64_t{kStripRows} * down));
    if (taps > limits.max_taps)
      return ResourceExhausted(
          "resampling {} × {} to {} × {} adds up {} pixels in one thread, over "
          "the limit of {}",
          from.width, from.height, view.to().width, view.to().height, taps,
          limits.max_taps);
  }
  return absl::OkStatus();
}

absl::StatusOr<TurnedRect> FusedGroup::PrepareTables(const View& view,
                                                     FusedScratch* scratch,
                                                     Slice* slice,
                                                     FusedRow* row) {
  ResampleTable& h = scratch->horizontal;
  ResampleTable& v = scratch->vertical;
  DaliTable& across = scratch->dali_across;
  DaliTable& down = scratch->dali_down;
  TurnedRect part;
  uint64_t used;
  if (view.by_dali()) {
    across.SetAxis(view.across());
    down.SetAxis(view.down());
    part = TurnedRect(BuildDaliTables(view, &across, &down));
    used = DaliTableBytes(across, down, view.size());
  } else {
    part = TurnedRect(BuildTables(view, &h, &v));
    used = TableBytes(h.size(), h.max_taps(), v.size(), v.max_taps());
  }
  if (used > slice->table_bytes) {  // or where its last sample's were
    size_t at = used_.load(std::memory_order_relaxed);
    do {
      if (at + used > memory_.size())
        return Unavailable(
            "a group has no room for {} bytes of tables of a row's next sample",
            used);
    } while (
        !used_.compare_exchange_weak(at, at + used, std::memory_order_relaxed));
    slice->tables_at = at;
    slice->table_bytes = used;
  }
  if (view.by_dali())
    CopyDaliTables(across, down, view.mirror_y(), memory_.data(),
                   slice->tables_at, row);
  else
    CopyTables(h, v, view.mirror_y(), memory_.data(), slice->tables_at, row);
  return part;
}

absl::StatusOr<StoredRect> FusedGroup::PrepareRow(size_t row,
                                                  const RowInput& input,
                                                  StoredSize stored, int exif,
                                                  FusedScratch* scratch,
                                                  Whose whose) {
  const FusedProgram& program = *program_;
  RETURN_IF_ERROR(ComputeHostValues(row, whose, input, scratch));
  Image& state = rows_[row][whose];
  state.orientation = Orientation::Of(program.orient() ? exif : 1);
  state.stored = stored;
  state.part = {};
  state.most_halvings = kMostHalvings;
  state.halvings = state.pixel_halvings = 0;
  if (program.decodes(whose)) {
    RETURN_IF_ERROR(ComposeChains(whose, input, scratch, &state));
    RETURN_IF_ERROR(CheckLimits(whose, scratch));
    RETURN_IF_ERROR(PrepareViews(row, whose, scratch));
  }
  if (const absl::Status bound = stages_.PrepareRow(
          row, whose, input, &scratch->samples[whose].values);
      !bound.ok())
    return ForTheCpu(bound);
  if (state.part.width * state.part.height > kMaxSpan / 4)
    return ResourceExhausted("window of {} × {} spans 2 GiB or more",
                             state.part.width, state.part.height);
  return state.orientation.Stored(state.part, state.stored);
}

absl::Status FusedGroup::PrepareViews(size_t row, Whose whose,
                                      FusedScratch* scratch) {
  const FusedProgram& program = *program_;
  Image& state = rows_[row][whose];
  bool first = true;
  for (size_t v = 0; v < program.views_.size(); ++v) {
    if (program.WhoseView(v) != whose) continue;
    const FusedImage& image = program.views_[v];
    const View& view = scratch->chains[image.chain];
    Slice& slice = slices_[row * header_.views + v];
    RETURN_IF_ERROR(CheckSize(image, view, &slice, scratch));
    FusedRow& descriptor = RowOf(row, v);
    descriptor = {};
    slice.back_x = slice.back_y = false;
    if (view.resampled()) {
      ASSIGN_OR_RETURN(slice.part,
                       PrepareTables(view, scratch, &slice, &descriptor));
    } else {
      slice.part = TurnedRect(view.before());
      slice.back_x = view.mirror_x();
      slice.back_y = view.mirror_y();
    }
    state.part = first ? slice.part : Union(state.part, slice.part);
    state.most_halvings = std::min(state.most_halvings, MostHalvings(view));
    first = false;
  }
  return absl::OkStatus();
}

StoredRect FusedGroup::HalveRow(size_t row, int halvings,
                                FusedScratch* scratch) {
  Image& state = rows_[row][Whose::kRow];
  const ScaledAxis across = state.orientation.Across(state.stored, halvings);
  const ScaledAxis down = state.orientation.Down(state.stored, halvings);
  ScaledTable& h = scratch->scaled_horizontal;
  ScaledTable& v = scratch->scaled_vertical;
  for (size_t i = 0; i < program_->views_.size(); ++i) {
    const View& view = scratch->chains[program_->views_[i].chain];
    BuildTables(view, &scratch->horizontal, &scratch->vertical);
    h.Build(scratch->horizontal, view.before().x, across);
    v.Build(scratch->vertical, view.before().y, down);
    Slice& slice = slices_[row * header_.views + i];
    // No larger than the tables for the whole image.
    CopyTables(h, v, view.mirror_y(), memory_.data(), slice.tables_at,
               &RowOf(row, i));
    slice.part = {h.first_input(), v.first_input(),
                  h.end_input() - h.first_input(),
                  v.end_input() - v.first_input()};
    state.part = i == 0 ? slice.part : Union(state.part, slice.part);
  }
  state.stored = Halved(state.stored, halvings);
  return state.orientation.Stored(state.part, state.stored);
}

absl::Status FusedGroup::BindSource(size_t row, const FusedSource& source,
                                    Whose whose) {
  const Image& state = rows_[row][whose];
  const StoredRect need = state.orientation.Stored(state.part, state.stored);
  const StoredRect& held = source.held;
  if (need.x < held.x || need.y < held.y ||
      need.x + need.width > held.x + held.width ||
      need.y + need.height > held.y + held.height)
    return InvalidArgument(
        "pixels held are {} × {} at ({}, {}), want {} × {} at ({}, {})",
        held.width, held.height, held.x, held.y, need.width, need.height,
        need.x, need.y);
  const int64_t span = source.pitch * need.height +
                       source.pixel_bytes * need.width +
                       source.channel_bytes * 2;
  if (span > kMaxSpan)
    return ResourceExhausted(
        "window of {} × {} with rows of {} bytes spans 2 GiB or more",
        need.width, need.height, source.pitch);
  for (size_t v = 0; v < header_.views; ++v) {
    if (program_->WhoseView(v) != whose) continue;
    const Slice& slice = slices_[row * header_.views + v];
    FusedRow& view = RowOf(row, v);
    SetSource({.orientation = state.orientation,
               .stored = state.stored,
               .part = slice.part,
               .back_x = slice.back_x,
               .back_y = slice.back_y,
               .backwards = program_->bgr_},
              source, &view);
    if (const std::optional<size_t> stage = program_->views_[v].stage) {
      // For the fused kernel it is one pixel, from which nothing is made.
      Descriptor(row, v) = {.source = view.source};
      stages_.BindSource(row, *stage, slice.size, view);
    }
  }
  // After the sources of both samples are bound, since it also sets where they
  // write.
  if (whose == Whose::kRow) stages_.TakeRow(row);
  return absl::OkStatus();
}

void FusedGroup::BindOutput(size_t row, size_t field, DeviceAddress address) {
  if (program_->OfOutput(field).kind == FusedKind::kStage)
    return stages_.BindOutput(row, field, address);
  At<uint64_t>(header_.outputs_at)[row * header_.fields + field] =
      address.number();
}

void FusedGroup::SkipRow(size_t row) {
  for (size_t v = 0; v < header_.views; ++v) Descriptor(row, v).source = 0;
  stages_.SkipRow(row);
}

std::span<const std::byte> FusedGroup::HostValue(size_t row,
                                                 size_t field) const {
  const FusedField& description = program_->OfOutput(field);
  return {At<std::byte>(header_.host_values_at) + row * header_.host_stride +
              description.at,
          description.element_bytes};
}

}  // namespace leat::worker
