// SPDX-License-Identifier: Apache-2.0
//
// OperatorKernel: computes an operator of a pipeline on the CPU, one sample at
// a time.
//
// There is one class per operator, and a table of makers per family. Operators
// that are fused with a decode (crop, resize, ...) are not among them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/random/philox.h"
#include "worker/image/base/formats.h"
#include "worker/image/loops/tensor.h"
#include "worker/image/operators/device_form.h"

namespace leat::worker {

// The inputs of one computation. Borrowed during the call.
struct OperatorCall {
  std::span<const Tensor* const> inputs;  // dense; an encoded image: uint8 (n,)
  // Values of the arguments that are per sample and given by a node, in the
  // order of OperatorInfo::args; nullptr: it is a constant of the kernel.
  std::span<const Tensor* const> args;
  SampleRng rng;         // the same in Shape and Run
  ImageFormats formats;  // formats whose headers may be read
};

// Immutable; thread-safe.
class OperatorKernel {
 public:
  virtual ~OperatorKernel() = default;
  // Sets rank and dims of the result, whose dtype is already set. An error is a
  // fault of the sample (kDataLoss, kInvalidArgument), without the operator's
  // name. By default they are those of the first input.
  virtual absl::Status Shape(const OperatorCall& call, Tensor* result) const {
    result->rank = call.inputs[0]->rank;
    result->dims = call.inputs[0]->dims;
    return absl::OkStatus();
  }
  // Writes the result's elements to result.data, dense.
  virtual absl::Status Run(const OperatorCall& call,
                           const Tensor& result) const = 0;
  // Returns about how many bytes Run allocates while it computes.
  virtual uint64_t WorkBytes(const OperatorCall& call) const { return 0; }
  // Returns Run's effect as a form that a device can compute; monostate: only
  // Run can. The kind of form depends on the node alone. Elements of the call's
  // inputs are not read. Errors: as for Run.
  virtual absl::StatusOr<DeviceForm> FormOf(const OperatorCall& call) const {
    return DeviceForm();
  }
  // For people: returns the draws from call.rng alone, where the result does
  // not show them; empty: nothing is drawn, or each element has its own draw.
  // Inputs and arguments of the call are not read.
  virtual std::string Drawn(const OperatorCall& call) const { return ""; }
};

// A kernel whose result is a scalar.
class ScalarKernel : public OperatorKernel {
 public:
  absl::Status Shape(const OperatorCall&, Tensor* result) const override {
    result->rank = 0;
    return absl::OkStatus();
  }
};

using KernelOr = absl::StatusOr<std::shared_ptr<const OperatorKernel>>;

// Returns the kernel of a node; nullptr: it has none here. Arguments are
// constants of the node or, if per sample, values of the call.
KernelOr MakeOperatorKernel(const CheckedGraph& graph, uint32_t node);

// --- The tables of kernels, one in each family's file -----------------------

struct KernelMaker {
  std::string_view op;
  // REQUIRES: the node has that operator.
  KernelOr (*make)(const CheckedGraph& graph, uint32_t node);
};
using KernelTable = std::span<const KernelMaker>;

// Makes a Kernel of a node, or of nothing if it depends on no argument.
template <class Kernel>
KernelOr Make(const CheckedGraph& graph, uint32_t node) {
  if constexpr (std::is_default_constructible_v<Kernel>)
    return std::make_shared<Kernel>();
  else
    return std::make_shared<Kernel>(graph, node);
}

extern const KernelTable kArithmeticKernels;
extern const KernelTable kAugmentKernels;
extern const KernelTable kBatchKernels;
extern const KernelTable kColorKernels;
extern const KernelTable kCropMirrorNormalizeKernels;
extern const KernelTable kJpegDistortionKernels;
extern const KernelTable kPeekKernels;
extern const KernelTable kPlaceKernels;
extern const KernelTable kRandomKernels;
extern const KernelTable kTableKernels;
extern const KernelTable kWarpKernels;

}  // namespace leat::worker
