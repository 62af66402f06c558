// SPDX-License-Identifier: Apache-2.0
//
// peek_shape returns the size in a file's header, stored_bytes the file.
#include <utility>

#include "worker/image/codecs/codec.h"
#include "worker/image/operators/args.h"
#include "worker/image/operators/image_size.h"
#include "worker/image/resample/geometry.h"

namespace leat::worker {
namespace {

class PeekShape final : public OperatorKernel {
 public:
  PeekShape(const CheckedGraph& graph, uint32_t node)
      : orient_(ConstantArg<bool>(graph, node, "orient")) {}

  absl::Status Shape(const OperatorCall&, Tensor* result) const override {
    result->rank = 1;
    result->dims[0] = 3;
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    const Tensor& file = *call.inputs[0];
    ASSIGN_OR_RETURN(const ImageHeader header,
                     ImageHeaderOf({file.data, file.bytes()}, call.formats));
    const ImageSize size =
        Orientation::Of(orient_ ? header.orientation : 1).Turned(header.size);
    const int64_t shape[] = {size.height, size.width, header.channels};
    memcpy(result.data, shape, sizeof shape);
    return absl::OkStatus();
  }

 private:
  const bool orient_;
};

class StoredBytes final : public OperatorKernel {
 public:
  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    result->rank = 1;
    result->dims[0] = static_cast<int64_t>(call.inputs[0]->bytes());
    return absl::OkStatus();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    if (result.bytes() > 0)
      memcpy(result.data, call.inputs[0]->data, result.bytes());
    return absl::OkStatus();
  }
};

constexpr KernelMaker kPeekMakers[] = {
    {"peek_shape", Make<PeekShape>},
    {"stored_bytes", Make<StoredBytes>},
};

}  // namespace

constinit const KernelTable kPeekKernels = kPeekMakers;

}  // namespace leat::worker
