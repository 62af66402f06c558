// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/decode/form_maker.h"

#include <algorithm>
#include <utility>

#include "core/status.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/jpeg/forms/form.h"

namespace leat::worker {
namespace {

class JpegFormMaker final : public FormMaker {
 public:
  explicit JpegFormMaker(const ImageLimits& limits) : decoder_(limits) {}

  // The first row is decoded as for a row of a batch, and the rest as MakeForms
  // says.
  absl::StatusOr<KeptForm> Make(const FormOrder& order,
                                const std::atomic<uint32_t>& give_up) override {
    decoder_.SetGiveUp(&give_up);
    RETURN_IF_ERROR(decoder_.Open(order.file));
    decoder_.MakeForms(FormKinds::Only(order.kind), order.max_bytes);
    if (order.pixel_halvings > 0) {
      decoder_.KeepPixelsAt(order.pixel_halvings);
      decoder_.Reduce(order.pixel_halvings);
    }
    RETURN_IF_ERROR(
        decoder_.Start({0, 0, decoder_.size().width, 1}, order.gray));
    PixelRows rows;
    RETURN_IF_ERROR(decoder_.ReadRows(&rows));
    ASSIGN_OR_RETURN(std::shared_ptr<const JpegForm> form,
                     decoder_.TakeForm(order.kind));
    const size_t bytes = form->size_bytes();
    return KeptForm{std::move(form), order.kind, bytes};
  }

 private:
  JpegDecoder decoder_;
};

}  // namespace

FormMakerFactory JpegFormMakers(ImageLimits limits) {
  limits.max_scratch_bytes =
      std::min(limits.max_scratch_bytes, kMakerScratchBytes);
  limits.budget = nullptr;
  return [limits] { return std::make_unique<JpegFormMaker>(limits); };
}

}  // namespace leat::worker
