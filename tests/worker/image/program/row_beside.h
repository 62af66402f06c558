// SPDX-License-Identifier: Apache-2.0
//
// RowBeside: a row's partner, chosen by the test.
#pragma once

#include <utility>

#include "worker/image/base/row_input.h"

namespace leat::worker {

class RowBeside final : public PartnerRow {
 public:
  // Borrows the fields. `readable` false: storage has no such record.
  explicit RowBeside(const RowInput& partner, absl::Status readable = {})
      : partner_(partner), readable_(std::move(readable)) {}

  absl::StatusOr<RowInput> Input() override {
    if (!readable_.ok()) return readable_;
    return partner_;
  }
  absl::Status With(const Compute& compute) override {
    ++asked;
    if (!readable_.ok()) return readable_;
    return compute(partner_);
  }

  int asked = 0;  // calls of With

 private:
  const RowInput partner_;
  const absl::Status readable_;
};

}  // namespace leat::worker
