// SPDX-License-Identifier: Apache-2.0
//
// A name server for a process that loads this library first (LD_PRELOAD): the
// name "7f000001.a9fea9fe.rebound.test" resolves to 127.0.0.1 at the first
// call, and to 169.254.169.254 ever after.
#include <dlfcn.h>
#include <netdb.h>

#include <mutex>
#include <set>
#include <string>
#include <string_view>

namespace {

constexpr std::string_view kBelow = ".rebound.test";
constexpr size_t kDigits = 8;

bool FirstTime(const std::string& name) {
  static auto* const mu = new std::mutex;
  static auto* const asked = new std::set<std::string>;
  const std::lock_guard lock(*mu);
  return asked->insert(name).second;
}

}  // namespace

extern "C" int getaddrinfo(const char* name, const char* service,
                           const addrinfo* hints, addrinfo** found) {
  using Resolver = int(const char*, const char*, const addrinfo*, addrinfo**);
  static auto* const real =
      reinterpret_cast<Resolver*>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const std::string_view asked = name == nullptr ? "" : name;
  if (!asked.ends_with(kBelow) ||
      asked.size() != 2 * kDigits + 1 + kBelow.size())
    return real(name, service, hints, found);
  const size_t at = FirstTime(std::string(asked)) ? 0 : kDigits + 1;
  const std::string address = "0x" + std::string(asked.substr(at, kDigits));
  return real(address.c_str(), service, hints, found);
}
