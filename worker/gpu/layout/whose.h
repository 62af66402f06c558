// SPDX-License-Identifier: Apache-2.0
//
// The sample that a value of a row is made from: the row's own, or its
// partner's (docs/decisions/0017-partners-in-a-batch.md).
#pragma once

#include <cstdint>

namespace leat::worker {

enum class Whose : uint8_t { kRow, kPartner };

// One T per sample. A row without a partner leaves the other one
// default-constructed.
template <class T>
class OfBoth {
 public:
  T& operator[](Whose whose) { return whose == Whose::kRow ? row_ : partner_; }
  const T& operator[](Whose whose) const {
    return whose == Whose::kRow ? row_ : partner_;
  }

 private:
  T row_{}, partner_{};
};

}  // namespace leat::worker
