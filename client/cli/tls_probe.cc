// SPDX-License-Identifier: Apache-2.0
#include "client/cli/tls_probe.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "openssl/err.h"
#include "openssl/ssl.h"
#include "openssl/x509_vfy.h"
#include "openssl/x509v3.h"

namespace leat::cli {
namespace {

constexpr char kCode[] = "SERVER_CERTIFICATE";

template <auto kFree>
struct Closes {
  template <class T>
  void operator()(T* thing) const {
    kFree(thing);
  }
};

class Socket {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  const int fd_;
};

std::unique_ptr<Socket> Reach(const std::string& host, const std::string& port,
                              absl::Duration patience) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &wanted, &found) != 0)
    return nullptr;
  const std::unique_ptr<addrinfo, Closes<freeaddrinfo>> all(found);
  const timeval limit = absl::ToTimeval(patience);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    auto made = std::make_unique<Socket>(
        socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (const int which : {SO_SNDTIMEO, SO_RCVTIMEO})
      setsockopt(made->fd(), SOL_SOCKET, which, &limit, sizeof limit);
    if (connect(made->fd(), at->ai_addr, at->ai_addrlen) == 0) return made;
  }
  return nullptr;
}

std::string NamesOf(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, Closes<GENERAL_NAMES_free>> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(
          certificate, NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> texts;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get());
       ++i) {
    const std::unique_ptr<BIO, Closes<BIO_free>> out(BIO_new(BIO_s_mem()));
    GENERAL_NAME_print(out.get(), sk_GENERAL_NAME_value(names.get(), i));
    char* text = nullptr;
    const long size = BIO_get_mem_data(out.get(), &text);
    texts.emplace_back(text, static_cast<size_t>(size));
  }
  return texts.empty() ? "no name" : fmt::format("{}", fmt::join(texts, ", "));
}

Diagnosis Judge(long verdict, const std::string& names,
                const std::string& address, const std::string& host) {
  switch (verdict) {
    case X509_V_OK:
      return {kCode, "ok", fmt::format("{} shows one for {}", address, names),
              ""};
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return {
          kCode, "error",
          fmt::format("{} shows one for {}, and not for {}", address, names,
                      host),
          fmt::format("call it by one of its names, or make one for {}", host)};
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return {kCode, "error",
              fmt::format("{} shows one that has expired", address),
              "replace --tls-cert and --tls-key there; they are read when they "
              "change"};
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return {kCode, "error",
              fmt::format("{} shows one that is not valid yet", address),
              "look at the clocks of both machines"};
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return {kCode, "error",
              fmt::format("{} shows one that no authority which is trusted "
                          "here vouches for",
                          address),
              "name its authority's certificate by --tls-ca or LEAT_TLS_CA"};
    default:
      return {kCode, "error",
              fmt::format("{} shows one that is refused: {}", address,
                          X509_verify_cert_error_string(verdict)),
              "make one as docs/guide/security.md says"};
  }
}

}  // namespace

std::optional<Diagnosis> ProbeTls(const std::string& address,
                                  const std::string& ca,
                                  absl::Duration patience) {
  const size_t colon = address.rfind(':');
  if (address.starts_with("unix") || colon == std::string::npos)
    return std::nullopt;
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']'))
    host = host.substr(1, host.size() - 2);
  const auto socket = Reach(host, address.substr(colon + 1), patience);
  if (socket == nullptr) return std::nullopt;
  const std::unique_ptr<SSL_CTX, Closes<SSL_CTX_free>> context(
      SSL_CTX_new(TLS_client_method()));
  if (ca.empty())
    SSL_CTX_set_default_verify_paths(context.get());
  else
    SSL_CTX_load_verify_file(context.get(), ca.c_str());
  const std::unique_ptr<SSL, Closes<SSL_free>> tls(SSL_new(context.get()));
  SSL_set_fd(tls.get(), socket->fd());
  in6_addr number{};
  const bool is_number = inet_pton(AF_INET, host.c_str(), &number) == 1 ||
                         inet_pton(AF_INET6, host.c_str(), &number) == 1;
  if (is_number) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls.get()), host.c_str());
  } else {
    SSL_set1_host(tls.get(), host.c_str());
    SSL_set_tlsext_host_name(tls.get(), host.c_str());
  }
  static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(tls.get(), kHttp2, sizeof kHttp2);
  const int shaken = SSL_connect(tls.get());
  ERR_clear_error();
  const std::unique_ptr<X509, Closes<X509_free>> shown(
      SSL_get1_peer_certificate(tls.get()));
  if (shown == nullptr)
    return Diagnosis{kCode, "error",
                     fmt::format("{} does not speak TLS{}", address,
                                 shaken == 0 ? ", or ended the handshake" : ""),
                     "give the daemon --tls-cert and --tls-key; or leave out "
                     "--tls-ca and LEAT_TLS_CA, where nothing is secret"};
  return Judge(SSL_get_verify_result(tls.get()), NamesOf(shown.get()), address,
               host);
}

}  // namespace leat::cli
