// SPDX-License-Identifier: Apache-2.0
//
// Child: one daemon that this process started: its PID, the pipe of its
// standard error, and the last bytes from it.
//
// Thread-compatible; Embedded's thread is the reader.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/fd.h"

namespace leat::client {

inline constexpr int kFirstInherited = 3;
inline constexpr int kMaxInherited = 4;

struct Pipe {
  Fd read, write;
  // Both ends close on exec and are above the descriptors that a child
  // inherits.
  static absl::StatusOr<Pipe> Create();
};

struct ChildSpec {
  std::string program;  // path
  std::vector<std::string> args;
  std::vector<std::string> environment;  // complete
  // Become 3, 4, ... in the child; at most kMaxInherited.
  std::vector<int> inherited;
};

class Child {
 public:
  // Starts the program: standard input is /dev/null, output and error go to the
  // pipe, signals are reset to their defaults, and only `inherited` is open.
  // kNotFound, kInternal: names the program and the reason.
  static absl::StatusOr<Child> Start(const ChildSpec& spec);

  pid_t pid() const { return pid_; }
  int stderr_fd() const { return stderr_.get(); }
  bool ended() const { return !stderr_.open(); }
  // Reads the available bytes; closes at the end of the stream.
  void ReadStderr();
  const std::string& tail() const { return tail_; }
  void Signal(int signal) const;
  // Waits for its end (it has ended, or was killed). Returns "exit code 2",
  // "signal 9".
  std::string Reap();

 private:
  pid_t pid_ = -1;
  Fd stderr_;
  std::string tail_;
};

}  // namespace leat::client
