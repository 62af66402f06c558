// SPDX-License-Identifier: Apache-2.0
#include "worker/job/long_lists.h"

#include <algorithm>
#include <string>
#include <utility>
#include <variant>

#include "core/pipeline/arguments.h"
#include "core/pipeline/long_list.h"
#include "core/pipeline/operators.h"
#include "core/plan/index_blocks.h"
#include "core/status.h"

namespace leat::worker {
namespace {

absl::StatusOr<LongList> Fetch(BlockFetcher* fetcher, Duration patience,
                               const std::function<bool(Duration)>& pause,
                               const LongList& wanted) {
  std::string values;
  values.reserve(wanted.bytes);
  for (size_t i = 0; i < wanted.blocks.size(); ++i) {
    ASSIGN_OR_RETURN(const std::string block,
                     FetchSoundBlock(fetcher,
                                     {.sha256 = wanted.blocks[i],
                                      .bytes = BlockBytes(wanted, i)},
                                     Clock::Real().Now() + patience, pause));
    values += block;
  }
  ASSIGN_OR_RETURN(LongList list, MakeLongList(wanted.kind, std::move(values)));
  if (list == wanted) return list;
  return DataLoss("{} entries came of a list whose digest says {}, or others",
                  list.count, wanted.count);
}

absl::Status CheckList(const Node& reader, const std::string& name,
                       const LongList& list) {
  const OperatorInfo* const info = FindOperator(reader.op);
  if (info != nullptr)
    for (const ArgInfo& arg : info->args)
      if (arg.name == name) return CheckEntries(arg, list);
  return InvalidArgument("no such argument");
}

}  // namespace

absl::Status FetchLongLists(BlockFetcher* fetcher, Duration patience,
                            const std::function<bool(Duration)>& pause,
                            Node* reader) {
  for (auto& [name, value] : reader->args) {
    auto* const list = std::get_if<LongList>(&value);
    if (list == nullptr || list->values != nullptr) continue;
    absl::StatusOr<LongList> whole = Fetch(fetcher, patience, pause, *list);
    absl::Status status = whole.status();
    if (status.ok()) status = CheckList(*reader, name, *whole);
    if (!status.ok())
      return Annotate(status, fmt::format("{}: argument {}", reader->op, name));
    *list = *std::move(whole);
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
