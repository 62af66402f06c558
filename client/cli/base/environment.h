// SPDX-License-Identifier: Apache-2.0
//
// Environment: everything outside the CLI that it uses, so that tests can
// replace the terminal, the clock and the service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/base/http_call.h"
#include "client/cli/base/spawn.h"
#include "client/leat/admin.h"
#include "client/leat/client.h"

namespace leat::cli {

// One field of some rows, dense.
struct Field {
  std::string name;
  std::string dtype;           // NumPy's name
  std::vector<int64_t> shape;  // rows first
  std::vector<std::byte> data;
};

// The sample of a row that has none (leat::Batches::Samples).
inline constexpr uint64_t kNoSample = ~uint64_t{0};

// Rows 0, 1, ... of a step, as a trainer gets them.
struct Rows {
  std::string job_json;  // leat.v1.Job
  uint64_t epoch = 0;
  uint64_t step = 0;
  uint64_t steps_per_epoch = 0;
  uint32_t batch = 0;
  std::vector<uint64_t> samples;  // one per row; kNoSample: padding
  std::vector<Field> fields;
  // Returns the leat.v1.StoredRecord of a sample: Job::Record. Valid as long as
  // the connection.
  std::function<absl::StatusOr<std::string>(uint64_t sample)> record;
};

// Connection: the CLI's calls to a service.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual Admin& admin() = 0;
  // Returns the first `count` rows of a step; fewer if the step has fewer.
  // kNotFound: no such job. kInvalidArgument: no such step (names the last).
  virtual absl::StatusOr<Rows> ReadRows(std::string_view job, uint64_t epoch,
                                        uint64_t step, uint32_t count) = 0;
  // Explains a step's row, or all of them: returns an array of
  // leat.v1.ExplainedRow. For a single row, its record is read for draws that
  // depend on its size. kNotFound: no such job. kOutOfRange: no such step or
  // row (names the last). kFailedPrecondition: the job's samples are in no
  // storage.
  virtual absl::StatusOr<std::string> Explain(std::string_view job,
                                              uint64_t epoch, uint64_t step,
                                              std::optional<uint32_t> row) = 0;
  // As leat::Job::CollectSpans. kNotFound: no such job.
  virtual absl::StatusOr<std::string> CollectSpans(std::string_view job,
                                                   absl::Duration duration,
                                                   double ratio) = 0;
};

struct Environment {
  std::string version;  // of the program
  std::istream* in = nullptr;
  std::ostream* out = nullptr;  // data
  std::ostream* err = nullptr;  // messages
  bool in_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  // The folders of this program, where the daemons lie, too.
  std::vector<std::string> program_dirs;
  std::function<size_t()> width;   // of the terminal now; 0: no terminal
  std::function<size_t()> height;  // 0: unknown
  std::function<std::optional<std::string>(const char* name)> variable;
  std::function<absl::StatusOr<std::unique_ptr<Connection>>(
      const ConnectOptions&)>
      connect;
  // Performs a handshake with a daemon: leat::ProbeTls. Called by several
  // threads.
  std::function<std::optional<TlsProbe>(const ConnectOptions& options,
                                        absl::Duration patience)>
      probe_tls;
  std::function<absl::Time()> now;
  // Sleeps between redraws; may return early, for example after a resize.
  std::function<void(absl::Duration)> pause;
  // Runs a program: Spawn.
  std::function<absl::StatusOr<Ended>(
      const std::vector<std::string>& argv, absl::Duration limit,
      const std::function<void(std::string_view)>& on_err)>
      spawn;
  // Calls an HTTP server: CallHttp.
  std::function<absl::StatusOr<HttpReply>(const HttpCall& call)> http;
};

// Connects to the real service, through the public client.
absl::StatusOr<std::unique_ptr<Connection>> ConnectService(
    const ConnectOptions& options);

}  // namespace leat::cli
