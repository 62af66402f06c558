// SPDX-License-Identifier: Apache-2.0
//
// leat_health ADDRESS: prints the answer of gRPC's health service there:
// SERVING, NOT_SERVING, or an error and exit code 1.
#include "tests/support/health.h"

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const absl::StatusOr<std::string> answer = leat::Health(argv[1]);
  std::printf("%s\n", answer.ok() ? answer->c_str()
                                  : answer.status().ToString().c_str());
  return answer.ok() ? 0 : 1;
}
