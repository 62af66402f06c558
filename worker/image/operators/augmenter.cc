// SPDX-License-Identifier: Apache-2.0
//
// Steps that work value by value read and write any memory, and may work in
// place. Steps that read neighbours ("moving") need a second memory. The first
// step reads the input; of the steps that change memory, every second one
// writes to `out`, and so does the last one:
//
//   rotate, invert, sharpness    in -> spare, spare -> spare, spare -> out
//   invert, rotate               in -> spare, spare -> out
//   equalize, solarize           in -> out, out -> out
#include "worker/image/operators/augmenter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "core/status.h"
#include "worker/image/formulas/color_matrix.h"
#include "worker/image/loops/augment.h"
#include "worker/image/loops/values.h"
#include "worker/image/operators/image_sides.h"

namespace leat::worker {
namespace {

using enum Augmentation;

constexpr int64_t kMostWarpedSide = 65'500;  // Warp's

bool Moving(Augmentation operation) {
  switch (operation) {
    case kRotate:
    case kSharpness:
    case kShearX:
    case kShearY:
    case kTranslateX:
    case kTranslateY:
      return true;
    default:
      return false;
  }
}

uint8_t* BytesOf(const Tensor& image) {
  return reinterpret_cast<uint8_t*>(image.data);
}

// Returns the map from the result to the image. Shears keep the top left
// corner.
Affine MapOf(const AugmentationStep& step, double height, double width,
             bool relative) {
  const double parameter = step.parameter;
  switch (step.operation) {
    case kShearX:
      return Affine::Shear(-parameter, 0);
    case kShearY:
      return Affine::Shear(0, -parameter);
    case kTranslateX:
      return Affine::Move(relative ? -parameter * width : -parameter, 0);
    case kTranslateY:
      return Affine::Move(0, relative ? -parameter * height : -parameter);
    default:
      return Affine::Move(width / 2, height / 2)
          .After(Affine::Turn(-parameter))
          .After(Affine::Move(-width / 2, -height / 2));
  }
}

// The mean of gray, by the channels' weights. Each channel's sum is exact.
double MeanGray(const Tensor& image) {
  const int64_t channels = image.dims[2];
  ByteCounts counts;
  CountBytes(image, &counts);
  double mean = 0;
  for (int64_t c = 0; c < channels; ++c) {
    uint64_t sum = 0;
    for (uint64_t x = 0; x < 256; ++x) sum += x * counts[c][x];
    mean = AddGray(mean, sum, channels, c);
  }
  return mean / static_cast<double>(image.dims[0] * image.dims[1]);
}

void Contrast(const Tensor& in, double factor, const Tensor& out) {
  const double centre = MeanGray(in);
  BestValueLoops().linear_bytes(BytesOf(in), in.elements(),
                                static_cast<float>(factor),
                                ContrastConstant(centre, factor), BytesOf(out));
}

// Scales distances from gray; an image of one channel has none.
void Color(const Tensor& in, double factor, const Tensor& out) {
  if (in.dims[2] == 3)
    BestValueLoops().matrix_bytes(TwistMatrix(0, factor, 1, 0), BytesOf(in),
                                  in.elements() / 3, BytesOf(out));
  else if (out.data != in.data)
    memcpy(out.data, in.data, in.bytes());
}

// Calls table(counts, channel's table) for each channel, with its values'
// counts.
template <class Table>
void ByCounts(const Tensor& in, const Tensor& out, Table table) {
  ByteCounts counts;
  CountBytes(in, &counts);
  ByteTables tables{};
  for (int64_t c = 0; c < in.dims[2]; ++c) table(counts[c], &tables[c]);
  LookUpBytes(in, tables, out.data);
}

int LeastOf(const std::array<uint32_t, 256>& counts) {
  int x = 0;
  while (x < 255 && counts[x] == 0) ++x;
  return x;
}
int GreatestOf(const std::array<uint32_t, 256>& counts) {
  int x = 255;
  while (x > 0 && counts[x] == 0) --x;
  return x;
}

void AutoContrast(const Tensor& in, const Tensor& out) {
  ByCounts(in, out, [](const auto& counts, auto* table) {
    const int least = LeastOf(counts), greatest = GreatestOf(counts);
    for (int x = least; x <= greatest; ++x)
      (*table)[x] = AutoContrasted(x, least, greatest);
  });
}

// The bits that posterize keeps; at least one, since none would be a blank
// image.
int32_t BitsOf(float parameter) {
  const auto bits = static_cast<int32_t>(std::nearbyint(parameter));
  return std::clamp(bits, 1, 8);
}

}  // namespace

void Equalize(const Tensor& in, const Tensor& out) {
  ByCounts(in, out, [](const auto& counts, auto* table) {
    const int least = LeastOf(counts), greatest = GreatestOf(counts);
    (*table)[least] = static_cast<uint8_t>(least == greatest ? least : 0);
    uint32_t above = 0, upto = 0;
    for (int x = least + 1; x <= greatest; ++x) above += counts[x];
    for (int x = least + 1; x <= greatest; ++x) {
      upto += counts[x];
      (*table)[x] = Equalized(upto, above);
    }
  });
}

absl::Status Augmenter::CheckSize(const Tensor& image) {
  return CheckSides(image, kMostWarpedSide);
}

absl::Status Augmenter::Run(std::span<const AugmentationStep> steps,
                            const Tensor& in, const Tensor& out) const {
  absl::InlinedVector<AugmentationStep, 4> left;
  for (const AugmentationStep& step : steps)
    if (step.operation != kIdentity) left.push_back(step);
  if (left.empty()) {
    memcpy(out.data, in.data, in.bytes());
    return absl::OkStatus();
  }
  // How often the steps after the first one change memory.
  int64_t changes = std::count_if(
      left.begin() + 1, left.end(),
      [](const AugmentationStep& step) { return Moving(step.operation); });
  std::unique_ptr<std::byte[]> memory;
  Tensor spare = out;
  if (changes > 0) {
    memory = std::make_unique_for_overwrite<std::byte[]>(in.bytes());
    spare.data = memory.get();
  }
  const Tensor* from = &in;
  const Tensor* to = changes % 2 == 0 ? &out : &spare;
  for (const AugmentationStep& step : left) {
    if (from != &in && Moving(step.operation)) to = to == &out ? &spare : &out;
    RETURN_IF_ERROR(RunOne(step, *from, *to));
    from = to;
  }
  return absl::OkStatus();
}

absl::Status Augmenter::RunOne(const AugmentationStep& step, const Tensor& in,
                               const Tensor& out) const {
  const AugmentLoops& loops = BestAugmentLoops();
  const uint8_t* const from = BytesOf(in);
  uint8_t* const to = BytesOf(out);
  const size_t count = in.elements();
  const float parameter = step.parameter;
  switch (step.operation) {
    case kAutoContrast:
      AutoContrast(in, out);
      break;
    case kBrightness:
      BestValueLoops().linear_bytes(from, count, parameter, 0, to);
      break;
    case kColor:
      Color(in, parameter, out);
      break;
    case kContrast:
      Contrast(in, parameter, out);
      break;
    case kEqualize:
      Equalize(in, out);
      break;
    case kIdentity:  // Run() leaves it out
      break;
    case kInvert:
      loops.solarize(from, count, 0, to);
      break;
    case kPosterize:
      loops.mask(from, count, PosterizeMask(BitsOf(parameter)), to);
      break;
    case kSharpness:
      Sharpen(in, parameter, loops, out);
      break;
    case kSolarize:
      loops.solarize(from, count, static_cast<int32_t>(std::ceil(parameter)),
                     to);
      break;
    case kSolarizeAdd:
      loops.solarize_add(from, count, static_cast<int32_t>(parameter), to);
      break;
    case kRotate:
    case kShearX:
    case kShearY:
    case kTranslateX:
    case kTranslateY:
      return Move(step, in, out);
  }
  return absl::OkStatus();
}

absl::StatusOr<WarpForm> Augmenter::WarpOf(const AugmentationStep& step,
                                           const Tensor& in) const {
  const Affine affine =
      MapOf(step, static_cast<double>(in.dims[0]),
            static_cast<double>(in.dims[1]), options_.relative);
  WarpForm form{.dali = options_.dali,
                .nearest = options_.filter == WarpFilter::kNearest,
                .fill = options_.fill};
  if (options_.dali) {
    const ImageSize size{in.dims[0], in.dims[1]};
    ASSIGN_OR_RETURN(form.dali_map, affine.Floats());
    if (step.operation == kRotate)
      form.dali_map = DaliTurn(size, size, step.parameter);
    return form;
  }
  ASSIGN_OR_RETURN(form.map, affine.Fixed());
  return form;
}

absl::Status Augmenter::Move(const AugmentationStep& step, const Tensor& in,
                             const Tensor& out) const {
  ASSIGN_OR_RETURN(const WarpForm form, WarpOf(step, in));
  if (options_.dali)
    WarpByDali(in, form.dali_map, options_.filter, options_.fill, out);
  else
    Warp(in, form.map, options_.filter, options_.fill, out);
  return absl::OkStatus();
}

absl::StatusOr<AugmentationForm> Augmenter::FormOf(const AugmentationStep& step,
                                                   const Tensor& in) const {
  const float parameter = step.parameter;
  switch (step.operation) {
    case kAutoContrast:
      return ByteTableForm{.kind = ByteMap::kAutoContrast};
    case kBrightness:
      return ByteTableForm{.kind = ByteMap::kLinear, .factor = parameter};
    case kColor:
      if (in.dims[2] != 3) return ByteTableForm();
      return MatrixForm{TwistMatrix(0, parameter, 1, 0)};
    case kContrast:
      return ByteTableForm{.kind = ByteMap::kContrast, .factor = parameter};
    case kEqualize:
      return ByteTableForm{.kind = ByteMap::kEqualize};
    case kIdentity:
      return ByteTableForm();
    case kInvert:
      return ByteTableForm{.kind = ByteMap::kSolarize, .number = 0};
    case kPosterize:
      return ByteTableForm{.kind = ByteMap::kMask,
                           .number = PosterizeMask(BitsOf(parameter))};
    case kSharpness:
      return SharpenForm{SharpnessOf(parameter)};
    case kSolarize:
      return ByteTableForm{
          .kind = ByteMap::kSolarize,
          .number = static_cast<int32_t>(std::ceil(parameter))};
    case kSolarizeAdd:
      return ByteTableForm{.kind = ByteMap::kSolarizeAdd,
                           .number = static_cast<int32_t>(parameter)};
    default:
      return WarpOf(step, in);
  }
}

}  // namespace leat::worker
