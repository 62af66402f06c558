// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/status.h"
#include "worker/compute/row_kernel.h"
#include "worker/image/program/row_program.h"

namespace leat::worker {
namespace {

class ImageKernel final : public RowKernel {
 public:
  explicit ImageKernel(std::unique_ptr<RowProgram> program)
      : program_(std::move(program)) {}
  absl::Status Run(
      const RowInput& input, ThreadState* state,
      std::span<const std::span<std::byte>> outputs) const override {
    return program_->Run(input, static_cast<ImageThread*>(state)->scratch(),
                         outputs);
  }

 private:
  const std::unique_ptr<RowProgram> program_;
};

}  // namespace

RowKernelFactory ImageKernels(const ImageLimits& limits) {
  return {.compile = [](const CheckedGraph& graph, DecoderClass decoder_class)
              -> absl::StatusOr<std::unique_ptr<RowKernel>> {
            if (decoder_class != DecoderClass::kExact)
              return Unimplemented("decoder class {}: this worker has exact",
                                   Name(decoder_class));
            ASSIGN_OR_RETURN(std::unique_ptr<RowProgram> program,
                             RowProgram::Compile(graph));
            return std::make_unique<ImageKernel>(std::move(program));
          },
          .make_thread_state = [limits]() -> std::unique_ptr<ThreadState> {
            return std::make_unique<ImageThread>(limits);
          }};
}

}  // namespace leat::worker
