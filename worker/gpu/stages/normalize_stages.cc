// SPDX-License-Identifier: Apache-2.0
//
// crop_mirror_normalize: normalises the whole image, then takes the window from
// it, mirrored and filled, in the order of the result's axes.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <variant>

#include "core/status.h"
#include "worker/gpu/stages/builder.h"
#include "worker/gpu/stages/map_stage.h"

namespace leat::worker {
namespace {

constexpr size_t kMostWindowChannels = 8;
constexpr size_t kFloatsRoom = kMostWindowChannels * sizeof(float);
constexpr size_t kPatternAt = 64;  // after the box
static_assert(sizeof(StageBox) <= kPatternAt);

// Writes the means, followed by the factors.
absl::Status BindNormalize(const WindowForm& form, const StageMemory& memory,
                           MapRow* map) {
  memcpy(memory.extra, form.means.data(), form.means.size_bytes());
  memcpy(memory.extra + kFloatsRoom, form.factors.data(),
         form.factors.size_bytes());
  for (const int k : {1, 2}) {
    map->in[k] = {.at = memory.extra_at + (k == 1 ? 0 : kFloatsRoom),
                  .dtype = DType::kFloat32};
    map->in[k].steps[2] = 1;
  }
  map->constant = form.shift;
  return absl::OkStatus();
}

// Sets the range of the window, along the result's axis, that the image covers.
void SetRange(int axis, int64_t at, int64_t size, int64_t of, bool mirror,
              StageBox* box) {
  const int64_t begin = std::clamp<int64_t>(-at, 0, size);
  const int64_t end = std::clamp<int64_t>(of - at, begin, size);
  box->begin[axis] = static_cast<int32_t>(mirror ? size - end : begin);
  box->end[axis] = static_cast<int32_t>(mirror ? size - begin : end);
}

// `image`: the sizes of the normalised image.
absl::Status BindWindow(const WindowForm& form, Sizes image,
                        const StageMemory& memory, MapRow* map) {
  const int y = form.planes ? 1 : 0, x = y + 1, c = form.planes ? 0 : 2;
  const int64_t pitch = image[1] * image[2];
  const auto element = static_cast<int64_t>(SizeOf(map->in[0].dtype));
  StageBox box{};
  SetRange(y, form.at[0], form.size[0], image[0], false, &box);
  SetRange(x, form.at[1], form.size[1], image[1], form.mirror, &box);
  SetRange(c, 0, image[2], image[2], false, &box);
  memcpy(memory.extra, &box, sizeof box);
  for (size_t channel = 0; channel < form.fills.size(); ++channel) {
    float fill = form.fills[channel];
    Cast({DType::kFloat32, 0, {}, reinterpret_cast<std::byte*>(&fill)},
         map->in[0].dtype,
         memory.extra + kPatternAt + channel * static_cast<size_t>(element));
  }
  // Channels that the image lacks are 0.
  std::fill(memory.extra + kPatternAt +
                form.fills.size() * static_cast<size_t>(element),
            memory.extra + kPatternAt + kMostWindowChannels * 8, std::byte{0});
  StageOperand& in = map->in[0];
  const int64_t first_x = form.at[1] + (form.mirror ? form.size[1] - 1 : 0);
  in.at += static_cast<uint64_t>((form.at[0] * pitch + first_x * image[2]) *
                                 element);
  in.steps[y] = static_cast<int32_t>(pitch);
  in.steps[x] = static_cast<int32_t>(form.mirror ? -image[2] : image[2]);
  in.steps[c] = 1;
  map->in[1] = {.at = memory.extra_at + kPatternAt, .dtype = in.dtype};
  map->in[1].steps[c] = 1;
  map->table = memory.extra_at;
  map->count = 1;
  return absl::OkStatus();
}

}  // namespace

absl::Status AddWindow(const Step& step, const KernelStep& operation,
                       StageBuilder* builder) {
  const StageTensor in = builder->TensorOf(operation.inputs[0]);
  const DType dtype = builder->TypeOf(step.node).dtype;
  if (in.shape[2] < 1 ||
      in.shape[2] >= static_cast<int64_t>(kMostWindowChannels))
    return Unimplemented("an image of {} channels", in.shape[2]);
  const StageTensor whole = builder->NewValueLike(dtype, in);
  MapRow normalize;
  normalize.op = MapOp::kNormalize;
  builder->Add(std::make_unique<MapStage>(
      whole, std::vector{in}, normalize,
      [step](const StageRow& row, const StageMemory& memory,
             MapRow* map) -> absl::Status {
        ASSIGN_OR_RETURN(const auto form, FormFor<WindowForm>(step, row));
        return BindNormalize(form, memory, map);
      },
      2 * kFloatsRoom));
  MapRow window;
  window.op = MapOp::kInBoxes;
  builder->Add(std::make_unique<MapStage>(
      builder->NewResult(step.node), std::vector{whole}, window,
      [step, whole](const StageRow& row, const StageMemory& memory,
                    MapRow* map) -> absl::Status {
        ASSIGN_OR_RETURN(const auto form, FormFor<WindowForm>(step, row));
        return BindWindow(form, row.SizesOf(whole), memory, map);
      },
      kPatternAt + kMostWindowChannels * 8));
  return absl::OkStatus();
}

}  // namespace leat::worker
