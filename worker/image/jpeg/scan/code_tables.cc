// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/scan/code_tables.h"

namespace leat::worker {

const CodeTable* CodeTables::Of(JHUFF_TBL* const (&tables)[NUM_HUFF_TBLS],
                                int number, size_t first) {
  if (number < 0 || number >= NUM_HUFF_TBLS || tables[number] == nullptr)
    return nullptr;
  Table& to = tables_[first + static_cast<size_t>(number)];
  if (to.code.IsOf(*tables[number])) return &to.table;
  if (!to.code.Build(*tables[number])) return nullptr;
  to.code.WriteTo(&to.table);
  return &to.table;
}

}  // namespace leat::worker
