// SPDX-License-Identifier: Apache-2.0
//
// Log lines for systemd's journal: "<N>message", where N is the priority of
// syslog(3). The journal adds the time and the program.
#pragma once

namespace leat::rpc {

// Whether the descriptor is the stream to the journal that systemd names in the
// environment, as "DEVICE:INODE". A program that was given the environment of a
// service, and another stderr, is told apart by that.
bool IsJournal(int fd, const char* journal_stream);

// If stderr is the journal, the process's logger writes such lines from now on.
// REQUIRES: called after InitLog, in main, before threads start.
void LogForJournal(const char* journal_stream);

}  // namespace leat::rpc
