// SPDX-License-Identifier: Apache-2.0
#include "worker/source/formats.h"

#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

// The paths do not exist, so a known reader fails because of what is missing.
TEST(Formats, EveryReaderOfTheTableHasOne) {
  for (const OperatorInfo& info : AllOperators()) {
    if (!info.name.starts_with("readers.")) continue;
    Node reader{.op = info.name, .inputs = {}, .args = {}};
    for (const ArgInfo& arg : info.args)
      if (arg.default_value)
        reader.args[arg.name] = *arg.default_value;
      else if (arg.type == ArgType::kStrings)
        reader.args[arg.name] = std::vector<std::string>{"/nowhere/x"};
      else
        reader.args[arg.name] = std::string("/nowhere/x");
    EXPECT_THAT(Message(BuildIndex(reader, {}).status()),
                testing::Not(testing::HasSubstr("not known to this worker")))
        << info.name << ": want its format in worker/source/source.cc";
  }
}

}  // namespace
}  // namespace leat::worker
