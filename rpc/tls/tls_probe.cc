// SPDX-License-Identifier: Apache-2.0
#include "rpc/tls/tls_probe.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/status/statusor.h"
#include "core/fd.h"
#include "core/status.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "openssl/err.h"
#include "openssl/ssl.h"
#include "openssl/x509_vfy.h"
#include "openssl/x509v3.h"
#include "rpc/tls/pem.h"
#include "rpc/tls/server_tls.h"

namespace leat::rpc {
namespace {

constexpr int kMostReads = 64;  // of 4 KiB; a handshake has fewer

// Returns a connection. kUnavailable: the reason why there is none.
absl::StatusOr<Fd> Reach(const std::string& address, Duration patience) {
  const std::string host(HostIn(address));
  const std::string port = address.substr(address.rfind(':') + 1);
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error =
          getaddrinfo(host.c_str(), port.c_str(), &wanted, &found);
      error != 0)
    return Unavailable("{}: {} does not resolve: {}", address, host,
                       gai_strerror(error));
  const std::unique_ptr<addrinfo, Freed<freeaddrinfo>> all(found);
  const auto us =
      std::chrono::duration_cast<std::chrono::microseconds>(patience).count();
  const timeval limit = {us / 1'000'000, us % 1'000'000};
  int error = 0;
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    Fd made(socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    for (const int which : {SO_SNDTIMEO, SO_RCVTIMEO})
      setsockopt(made.get(), SOL_SOCKET, which, &limit, sizeof limit);
    if (connect(made.get(), at->ai_addr, at->ai_addrlen) == 0) return made;
    error = errno;
  }
  if (error == ECONNREFUSED)
    return Unavailable("{} refuses connections: no process listens there",
                       address);
  if (error == EINPROGRESS || error == ETIMEDOUT)
    return Unavailable(
        "{} answers no connection: look for a firewall between, and whether "
        "its machine runs",
        address);
  return Unavailable("{} cannot be connected to: {}", address, strerror(error));
}

// Describes the result of the caller's check of the certificate that it
// received.
TlsProbe JudgeShown(long verdict, const std::string& names,
                    const std::string& address, const std::string& host) {
  switch (verdict) {
    case X509_V_OK:
      return {fmt::format("{} shows a certificate for {}", address, names), ""};
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return {
          fmt::format("{} shows a certificate for {}, and not for {}", address,
                      names, host),
          fmt::format("call it by one of its names, or make one for {}", host)};
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return {fmt::format("{} shows a certificate that has expired", address),
              "replace --tls-cert and --tls-key there; they are read when they "
              "change"};
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return {
          fmt::format("{} shows a certificate that is not valid yet", address),
          "look at the clocks of both machines"};
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
      return {fmt::format("{} shows a certificate that no authority which is "
                          "trusted here vouches for",
                          address),
              "name its authority's certificate by --tls-ca, LEAT_TLS_CA or "
              "ca=, or make its certificate anew by an authority that is"};
    default:
      return {fmt::format("{} shows a certificate that is refused: {}", address,
                          X509_verify_cert_error_string(verdict)),
              "make one as docs/run/certificates.md says"};
  }
}

// Performs a handshake in its constructor, and keeps the result.
class Handshake {
 public:
  Handshake(const Security& security, const std::string& host, int fd)
      : fd_(fd) {
    context_.reset(SSL_CTX_new(TLS_client_method()));
    if (security.ca_pem.empty()) {
      SSL_CTX_set_default_verify_paths(context_.get());
    } else {
      X509_STORE* const roots = SSL_CTX_get_cert_store(context_.get());
      for (const Certificate& root : CertificatesIn(security.ca_pem))
        X509_STORE_add_cert(roots, root.get());
    }
    bool first = true;
    for (const Certificate& own : CertificatesIn(security.cert_pem)) {
      if (first)
        SSL_CTX_use_certificate(context_.get(), own.get());
      else
        SSL_CTX_add1_chain_cert(context_.get(), own.get());
      first = false;
    }
    if (const Key key = KeyIn(security.key_pem); key != nullptr)
      SSL_CTX_use_PrivateKey(context_.get(), key.get());
    SSL_CTX_set_cert_cb(context_.get(), &Asked, this);
    tls_.reset(SSL_new(context_.get()));
    // The session frees both.
    SSL_set_bio(tls_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    Name(host);
    static constexpr unsigned char kHttp2[] = {2, 'h', '2'};
    SSL_set_alpn_protos(tls_.get(), kHttp2, sizeof kHttp2);
    const bool shaken = Through(&SSL_connect);
    garbled_ = !shaken && got_ > 0 && !silent_ && !ended_;
    // A server sends first in HTTP/2. It checks the caller's certificate only
    // after the handshake has ended on this side.
    spoken_ = shaken && Through([](SSL* tls) {
                char byte = 0;
                return SSL_peek(tls, &byte, 1);
              });
    shown_.reset(SSL_get1_peer_certificate(tls_.get()));
    ERR_clear_error();
  }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // Returns nullptr if there is none, so the peer does not speak TLS.
  X509* shown() const { return shown_.get(); }
  long verdict() const { return SSL_get_verify_result(tls_.get()); }
  // Returns whether it asked for this caller's certificate, and then closed.
  bool hung_up() const { return asked_ && !spoken_; }
  // Returns whether it sent bytes that are not TLS, or rejected the handshake.
  bool garbled() const { return garbled_; }
  // Returns whether it sent nothing more within the time.
  bool silent() const { return silent_; }

 private:
  static int Asked(SSL*, void* self) {
    static_cast<Handshake*>(self)->asked_ = true;
    return 1;
  }
  // Repeats `what` until it has finished, with the bytes that it reads and
  // writes. A socket of OpenSSL's own would raise SIGPIPE.
  bool Through(int (*what)(SSL*)) {
    char bytes[4096];
    for (int i = 0; i < kMostReads; ++i) {
      const int done = what(tls_.get());
      const bool wants_more =
          SSL_get_error(tls_.get(), done) == SSL_ERROR_WANT_READ;
      for (int size; (size = BIO_read(SSL_get_wbio(tls_.get()), bytes,
                                      sizeof bytes)) > 0;)
        if (send(fd_, bytes, size, MSG_NOSIGNAL) != size) return false;
      if (!wants_more) return done == 1;
      const ssize_t got = recv(fd_, bytes, sizeof bytes, 0);
      if (got <= 0) {
        ended_ = got == 0 || errno == ECONNRESET;
        silent_ = !ended_;
        return false;
      }
      got_ += got;
      BIO_write(SSL_get_rbio(tls_.get()), bytes, static_cast<int>(got));
    }
    return false;
  }
  void Name(const std::string& host) {
    in6_addr number{};
    if (inet_pton(AF_INET, host.c_str(), &number) == 1 ||
        inet_pton(AF_INET6, host.c_str(), &number) == 1) {
      X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), host.c_str());
    } else {
      SSL_set1_host(tls_.get(), host.c_str());
      SSL_set_tlsext_host_name(tls_.get(), host.c_str());
    }
  }

  std::unique_ptr<SSL_CTX, Freed<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, Freed<SSL_free>> tls_;
  Certificate shown_;
  const int fd_;
  bool asked_ = false, spoken_ = false;
  bool garbled_ = false;
  bool ended_ = false, silent_ = false;  // so no more bytes arrived
  int64_t got_ = 0;
};

// Describes the result of the handshake.
TlsProbe Judge(const Handshake& handshake, const std::string& address,
               const Security& security) {
  const bool speaks = handshake.shown() != nullptr;
  if (security.ca_pem.empty() && security.cert_pem.empty()) {
    if (!speaks) return {address + " speaks plaintext", ""};
    return {address + " speaks TLS, and this caller does not",
            "name its authority's certificate by --tls-ca, LEAT_TLS_CA or ca=",
            true};
  }
  if (!speaks)
    return {address + " does not speak TLS, or ended the handshake",
            "give the daemon --tls-cert and --tls-key; or leave out --tls-ca "
            "and LEAT_TLS_CA, where nothing is secret",
            handshake.garbled()};
  TlsProbe shown = JudgeShown(handshake.verdict(), NamesOf(handshake.shown()),
                              address, std::string(HostIn(address)));
  shown.settled = !shown.remedy.empty();
  if (shown.settled || !handshake.hung_up()) return shown;
  if (security.cert_pem.empty())
    return {address + " wants a certificate of this caller, which shows none",
            "give --tls-cert and --tls-key, LEAT_TLS_CERT and LEAT_TLS_KEY, or "
            "cert= and key=",
            !handshake.silent()};
  const absl::Status valid = CheckDates(security, Clock::Real().WallNow());
  return {
      fmt::format("{} refuses the certificate of this caller{}{}", address,
                  valid.ok() ? "" : ": ", Message(valid)),
      "show one that is valid, and that an authority of its --tls-ca has made",
      !handshake.silent()};
}

bool IsTcp(const std::string& address) {
  return !address.starts_with("unix") && address.rfind(':') != address.npos;
}

Hindrance OfProbe(const TlsProbe& probe) {
  if (probe.remedy.empty()) return {};
  return {fmt::format("{}: {}", probe.what, probe.remedy), probe.settled};
}

}  // namespace

std::optional<TlsProbe> ProbeTls(const std::string& address,
                                 const Security& security, Duration patience) {
  if (!IsTcp(address)) return std::nullopt;
  const auto socket = Reach(address, patience);
  if (!socket.ok()) return std::nullopt;
  return Judge(Handshake(security, std::string(HostIn(address)), socket->get()),
               address, security);
}

std::string TlsTrouble(const std::string& address, const Security& security,
                       Duration patience) {
  const std::optional<TlsProbe> probe = ProbeTls(address, security, patience);
  return probe ? OfProbe(*probe).what : "";
}

Hindrance WhatHinders(const std::string& address, const Security& security,
                      Duration patience) {
  if (!IsTcp(address)) return {};
  const auto socket = Reach(address, patience);
  if (!socket.ok()) return {std::string(Message(socket.status())), false};
  return OfProbe(
      Judge(Handshake(security, std::string(HostIn(address)), socket->get()),
            address, security));
}

}  // namespace leat::rpc
