// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/read_form.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace leat::worker {

bool AttachForm(const FormCodec& codec, JpegFormKind kind,
                std::vector<std::byte> bytes, bool beside_dataset,
                StoredSample* sample) {
  absl::StatusOr<KeptForm> form = codec.parse(std::move(bytes));
  if (!form.ok() || form->kind != kind) return false;
  const auto field = std::ranges::find_if(
      sample->fields,
      [&](const StoredField& each) { return codec.is_of(*form, each.bytes); });
  if (field == sample->fields.end()) return false;
  sample->form_bytes = form->bytes;
  sample->form = std::make_shared<const ReadForm>(
      ReadForm{.file = field->bytes,
               .kept = *std::move(form),
               .beside_dataset = beside_dataset});
  return true;
}

}  // namespace leat::worker
