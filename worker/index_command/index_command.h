// SPDX-License-Identifier: Apache-2.0
//
// `leat-worker index URI`: lists a dataset and writes a report as JSON to
// standard output, without a coordinator. `leat index` starts it, since the
// worker has the readers.
#pragma once

namespace leat::worker {

// `argv[0]` is "index". Exit codes: 0 it was listed; 1 it was not, and the JSON
// is {"error": {"code", "message"}}, or standard output did not take the report;
// 2 wrong flags.
int RunIndexCommand(int argc, char** argv);

}  // namespace leat::worker
