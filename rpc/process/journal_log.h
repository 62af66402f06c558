// SPDX-License-Identifier: Apache-2.0
//
// Writes log lines for systemd's journal: "<N>message", where N is the priority
// of syslog(3). The journal adds the time and the program.
#pragma once

namespace leat::rpc {

// Returns whether the descriptor is the stream to the journal that systemd
// names in the environment, as "DEVICE:INODE". This is false for a program that
// inherited a service's environment, but has another stderr.
bool IsJournal(int fd, const char* journal_stream);

// If stderr is the journal, the process's logger writes such lines from now on.
// REQUIRES: called after InitLog, in main, before threads start.
void LogForJournal(const char* journal_stream);

}  // namespace leat::rpc
