// SPDX-License-Identifier: Apache-2.0
//
// StoredSample: one stored record as the reader node's outputs. A value: a source
// makes it, and then nothing changes its bytes, so any thread may read a copy.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "core/tensor/tensor.h"

namespace leat::worker {

// One output. An encoded image's bytes; or a tensor's elements, row-major,
// little-endian.
struct StoredField {
  std::span<const std::byte> bytes;
  // Sizes of the tensor's axes, where the reader's type leaves some open (-1);
  // else empty: the type says them.
  Shape shape;
};

struct ReadForm;  // read_form.h

struct StoredSample {
  // As many as the reader has outputs. Valid while `owner` lives.
  absl::InlinedVector<StoredField, 2> fields;
  std::shared_ptr<const void> owner;
  // The decoded form that is kept beside the record, to decode it faster; null:
  // none.
  std::shared_ptr<const ReadForm> form = nullptr;
  size_t form_bytes = 0;

  // Returns how many bytes the fields have, without the form.
  size_t record_bytes() const {
    size_t sum = 0;
    for (const StoredField& field : fields) sum += field.bytes.size();
    return sum;
  }
  // Returns how many bytes the fields and the form have.
  size_t bytes() const { return record_bytes() + form_bytes; }
};

}  // namespace leat::worker
