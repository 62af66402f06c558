// SPDX-License-Identifier: Apache-2.0
//
// AllowedReads: what jobs may read on this worker, and which servers it may
// contact for it.
//
// Folders are compared by the final path, with links followed: a descriptor is
// examined, and not the path again, so nothing can be exchanged between the
// check and the read. Outside of all folders a missing path is refused like an
// existing one, so a refusal reveals nothing about it.
//
// Addresses are checked when a socket is created, after names were resolved and
// redirects followed. This machine's addresses, those of its link, and those
// where clouds serve a machine's identity and keys are refused, unless a prefix
// names the very address. If the environment sets a proxy, the proxy resolves
// names, so only the proxy's address is checked.
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
  // anything else; names it and what is wanted.
  static absl::StatusOr<std::shared_ptr<const AllowedReads>> Create(
      const std::optional<std::vector<std::string>>& prefixes,
      const GetEnv& env);

  // Opens like open(2), and checks what was opened. `*fd` is -1, with errno, if
  // it cannot be opened. kPermissionDenied: it may not be read, or is missing
  // at a place that may not be read: links are followed for this check, so that
  // no job learns what exists there. Only files and directories that may be
  // read are opened, because opening a device has effects. With O_NOFOLLOW a
  // link at the end is not followed: ELOOP, or the link itself with O_PATH.
  absl::Status Open(const std::string& path, int flags, std::string_view name,
                    int* fd) const;
  // Does the same for an entry of the open directory `dir`, which may be a
  // link; call it before anything that follows the link. OK: it leads to
  // something that may be read, or to nothing at a place that may be read.
  absl::Status CheckEntry(int dir, const char* entry,
                          std::string_view name) const;
  // kPermissionDenied: the file of `fd` may not be read.
  absl::Status CheckOpened(int fd, std::string_view name) const;

  // kPermissionDenied: a bucket, or a URL of http, that may not be read.
  // REQUIRES: not kLocal.
  absl::Status CheckRemote(const StorageUri& uri) const;
  // Does the same for a URL that a server may have redirected to, when the job
  // named `asked`. An address in it is checked here, which is all that is
  // possible if a proxy connects.
  absl::Status CheckUrl(std::string_view url, std::string_view asked) const;
  // kPermissionDenied: the address may not be contacted. `asked`: the job's own
  // URL. A worker that may read everything also reads this machine's servers,
  // if that URL has "localhost" or a loopback address, but not through another
  // name or a redirect of another server.
  absl::Status CheckAddress(const sockaddr_storage& address,
                            std::string_view asked) const;
  // Does the same for an address as text.
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
  std::set<std::string> addresses_;  // from AddressAndPort
};

}  // namespace leat::worker
