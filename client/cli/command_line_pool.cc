// SPDX-License-Identifier: Apache-2.0
//
// Commands about how many workers there are.
#include "client/cli/command_line_state.h"
#include "core/pool_policy.h"

namespace leat::cli {

void CommandLine::State::AddPool() {
  CLI::App* pool =
      Command("pool", "How many workers a pool may have",
              "  leat pool set cpu --min 1 --max 8\n"
              "  leat pool set cpu --max 0     # nobody scales it any more\n"
              "  leat get pools --watch\n");
  Choice(pool->add_option("ACTION", options.kind, "set")->required(), {"set"});
  values[pool->add_option("NAME", options.name, "the pool, its whole name")
             ->required()] = Names("pools");
  const auto bound = [pool](const char* flag, std::optional<uint32_t>& value,
                            const char* text) {
    pool->add_option(flag, value, text)
        ->check(CLI::Range(uint32_t{0}, kMaxPoolWorkers).description(""))
        ->type_name("N");
  };
  bound("--min", options.min_workers, "workers at least (0)");
  bound("--max", options.max_workers,
        "workers at most; 0: the pool has no bounds, and nobody scales it");
}

}  // namespace leat::cli
