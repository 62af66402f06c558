// SPDX-License-Identifier: Apache-2.0
//
// ReadForm: a form that was read with a record, for one of its fields.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "worker/image/jpeg/forms/codec.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/sample/stored_sample.h"

namespace leat::worker {

struct ReadForm {
  bool IsOf(std::span<const std::byte> bytes) const {
    return bytes.data() == file.data() && bytes.size() == file.size();
  }

  std::span<const std::byte> file;  // at that address
  KeptForm kept;
  // True if the form was read from beside the dataset (seek_file.h), and not
  // from this worker's disk cache.
  bool beside_dataset = false;
};

// Puts the form into the sample if it is of this kind and was made of one of
// the sample's fields, and returns whether it was. Reads all bytes of fields
// that are as long as the form's file.
bool AttachForm(const FormCodec& codec, JpegFormKind kind,
                std::vector<std::byte> bytes, bool beside_dataset,
                StoredSample* sample);

}  // namespace leat::worker
