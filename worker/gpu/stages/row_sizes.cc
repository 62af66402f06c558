// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/stages/row_sizes.h"

#include <algorithm>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "core/status.h"

namespace leat::worker {
namespace {

// Computes the sizes of one step's result from those of its inputs.
struct SizesAfter {
  const SizedStep& sized;
  const RowInput& input;
  const std::vector<Tensor>& values;
  Tensor* result;

  absl::Status Same(uint32_t value) const {
    result->rank = values[value].rank;
    result->dims = values[value].dims;
    return absl::OkStatus();
  }

  absl::Status operator()(const KernelStep& operation) const {
    absl::InlinedVector<const Tensor*, 4> inputs, args;
    for (const uint32_t value : operation.inputs)
      inputs.push_back(&values[value]);
    for (const uint32_t arg : operation.args)
      args.push_back(arg == kNoValue ? nullptr : &values[arg]);
    return operation.kernel->Shape(
        {inputs, args, DrawsOf(input, sized.step.node, operation.per_batch)},
        result);
  }
  absl::Status operator()(const ImageStep& image) const {
    const Tensor& in = values[image.input];
    View view(ImageSize{in.dims[0], in.dims[1]});
    RETURN_IF_ERROR(ComposeView(image.ops, input, values, &view));
    result->rank = 3;
    result->dims = {view.size().height, view.size().width, in.dims[2]};
    return absl::OkStatus();
  }
  absl::Status operator()(const NormalizeStep& normalize) const {
    return Same(normalize.input);
  }
  absl::Status operator()(const CastStep& cast) const {
    return Same(cast.input);
  }
  absl::Status operator()(const TransposeStep& transpose) const {
    const Tensor& in = values[transpose.input];
    result->rank = in.rank;
    for (size_t axis = 0; axis < transpose.perm.size(); ++axis)
      result->dims[axis] = in.dims[static_cast<size_t>(transpose.perm[axis])];
    return absl::OkStatus();
  }
  // Sizes that differ from row to row are those of the chosen side; the other
  // side must only exist. If all sizes are known both sides must fit, since
  // pixels may choose.
  absl::Status operator()(const WhereStep& where) const {
    result->rank = static_cast<int>(where.shape.size());
    std::ranges::copy(where.shape, result->dims.begin());
    const bool known =
        std::ranges::all_of(where.shape, [](int64_t n) { return n >= 0; });
    if (known) {
      RETURN_IF_ERROR(Choose(where.a));
      return Choose(where.b);
    }
    const std::byte* const condition = values[where.condition].data;
    if (condition == nullptr)
      return Internal("node {} chooses between sizes by what is not known",
                      sized.step.node);
    return Choose(*condition != std::byte{0} ? where.a : where.b);
  }
  absl::Status Choose(uint32_t side) const {
    const Tensor& chosen = values[side];
    for (int axis = 0; axis < result->rank; ++axis) {
      const int own = axis - (result->rank - chosen.rank);
      const int64_t size = own < 0 ? 1 : chosen.dims[static_cast<size_t>(own)];
      int64_t& joined = result->dims[static_cast<size_t>(axis)];
      if (joined < 0) joined = size;
      if (size != joined && size != 1)
        return InvalidArgument("a value has the size {} on an axis of {}", size,
                               joined);
    }
    return absl::OkStatus();
  }
  template <class Other>
  absl::Status operator()(const Other&) const {
    return Internal("node {} is no stage's", sized.step.node);
  }
};

}  // namespace

absl::Status SetSizes(uint32_t value, DType dtype,
                      std::span<const int64_t> sizes, uint64_t most,
                      std::vector<Tensor>* values) {
  Tensor& tensor = (*values)[value];
  tensor.dtype = dtype;
  tensor.rank = static_cast<int>(sizes.size());
  uint64_t elements = 1;
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    tensor.dims[axis] = sizes[axis];
    const auto size = static_cast<uint64_t>(sizes[axis]);
    if (sizes[axis] < 1 || size > most || elements * size > most)
      return ResourceExhausted(
          "a value of more elements than a row's have room for: {}", most);
    elements *= size;
  }
  return absl::OkStatus();
}

absl::Status SetSizes(const SizedStep& sized, const RowInput& input,
                      uint64_t most, std::vector<Tensor>* values) {
  Tensor result{sized.step.dtype, 0, {}, nullptr};
  RETURN_IF_ERROR(
      std::visit(SizesAfter{sized, input, *values, &result}, sized.step.what));
  if (static_cast<size_t>(result.rank) != sized.shape.size())
    return Internal("node {} has {} axes, want {}", sized.step.node,
                    result.rank, sized.shape.size());
  bool by_row = false;
  for (size_t axis = 0; axis < sized.shape.size(); ++axis) {
    by_row = by_row || sized.shape[axis] <= 0;
    if (sized.shape[axis] > 0 && sized.shape[axis] != result.dims[axis])
      return InvalidArgument("a value has the size {} on an axis of {}",
                             result.dims[axis], sized.shape[axis]);
  }
  // Known sizes have been set, and may be larger.
  if (!by_row) return absl::OkStatus();
  return SetSizes(sized.step.node, sized.step.dtype,
                  {result.dims.data(), sized.shape.size()}, most, values);
}

}  // namespace leat::worker
