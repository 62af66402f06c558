// SPDX-License-Identifier: Apache-2.0
//
// AllowedReads: what jobs may read by this worker, and whom it may ask for it.
//
// Folders are compared by what a path is in the end, links followed: a
// descriptor is looked at, and not the path again, so nothing can be exchanged
// between the look and the read. Outside of all folders a path that is not
// there is refused like one that is, so a refusal says nothing about it.
//
// Addresses are looked at when a socket is made, after names were resolved and
// redirects followed. This machine's own, those of its link, and those where
// clouds serve a machine's identity and keys are refused, unless a prefix says
// the very address. Behind a proxy of the environment it is the proxy that
// resolves names, so there only the proxy's address is looked at.
//
// Immutable, thread-safe.
#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/source/storage/base/environment.h"
#include "worker/source/storage/base/uri.h"

namespace leat::worker {

class AllowedReads {
 public:
  // `prefixes`: absolute folders, s3://BUCKET[/PREFIX], gs://..., and
  // http(s)://HOST[:PORT][/PREFIX]; nullopt: everything. A prefix ends where a
  // name in a path does. `env`: for the proxies of http. kInvalidArgument:
  // something else; names it and what is wanted.
  static absl::StatusOr<std::shared_ptr<const AllowedReads>> Create(
      const std::optional<std::vector<std::string>>& prefixes,
      const GetEnv& env);

  // Opens as open(2), and checks what was opened. `*fd` is -1, with errno, if
  // it cannot be opened. kPermissionDenied: it may not be read, or would lie
  // where nothing may be read if it were there: links are followed for that, so
  // that nobody learns what is there. Nothing but files and directories that
  // may be read is opened: a device would notice. With O_NOFOLLOW a link at the
  // end is not followed: ELOOP, or itself by O_PATH.
  absl::Status Open(const std::string& path, int flags, std::string_view name,
                    int* fd) const;
  // The same for an entry of the open directory `dir` which may be a link: to
  // be asked before anything that follows it. OK: it leads to what may be read,
  // or to nothing, where something might be read.
  absl::Status CheckEntry(int dir, const char* entry,
                          std::string_view name) const;
  // kPermissionDenied: what `fd` stands for may not be read.
  absl::Status CheckOpened(int fd, std::string_view name) const;

  // kPermissionDenied: of a bucket, or a URL of http, that may not be read.
  // REQUIRES: not kLocal.
  absl::Status CheckRemote(const StorageUri& uri) const;
  // The same of a URL that a server may have sent us to, when the job said
  // `asked`. An address in it is looked at here, which is all that can be done
  // where a proxy connects.
  absl::Status CheckUrl(std::string_view url, std::string_view asked) const;
  // kPermissionDenied: nobody may be asked there. `asked`: the job's own URL. A
  // worker that may read everything reads this machine's servers, too, if the
  // job says so itself, and not a name or a server.
  absl::Status CheckAddress(const sockaddr_storage& address,
                            std::string_view asked) const;
  // The same of an address as text.
  absl::Status CheckAddress(std::string_view ip, int port,
                            std::string_view asked) const;

 private:
  struct Host {
    std::string scheme, host, port, path;
  };
  struct Bucket {
    UriScheme scheme;
    std::string bucket, prefix;
  };

  AllowedReads() = default;
  absl::Status Add(const std::string& prefix);
  void AddAddress(std::string_view host, std::string_view port);
  bool IsBelowFolder(const std::string& path) const;
  absl::Status CheckBytes(const std::string& bytes, int port,
                          std::string_view asked) const;
  absl::Status Refused(std::string_view name) const;

  bool all_ = false;
  std::vector<std::string> folders_;  // absolute, without a slash at the end
  std::vector<Bucket> buckets_;
  std::vector<Host> hosts_;
  std::set<std::string> addresses_;  // of AddressAndPort
};

}  // namespace leat::worker
