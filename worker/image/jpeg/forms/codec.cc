// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/forms/codec.h"

#include <memory>
#include <utility>

#include "core/status.h"
#include "worker/image/jpeg/forms/form.h"

namespace leat::worker {

FormCodec JpegFormCodec() {
  return {
      .version = JpegForm::kVersion,
      .parse = [](std::vector<std::byte> bytes) -> absl::StatusOr<KeptForm> {
        ASSIGN_OR_RETURN(std::shared_ptr<const JpegForm> form,
                         JpegForm::Parse(std::move(bytes)));
        const JpegFormKind kind = form->kind();
        const size_t size = form->size_bytes();
        return KeptForm{std::move(form), kind, size};
      },
      .bytes_of = [](const KeptForm& form) { return form.form->bytes(); },
      .is_of = [](const KeptForm& form, std::span<const std::byte> file)
          -> bool { return form.form->IsOf(file); }};
}

}  // namespace leat::worker
