// SPDX-License-Identifier: Apache-2.0
#include "client/cli/session/contexts.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

#include "client/cli/base/printer.h"
#include "client/cli/base/suggestions.h"
#include "client/cli/base/text.h"
#include "client/cli/session/session.h"
#include "core/cluster/service_address.h"
#include "core/fd.h"
#include "core/status.h"
#include "core/system_roots.h"
#include "yaml-cpp/yaml.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = 1 << 20;
constexpr size_t kMaxContextName = 64;
constexpr size_t kMaxValue = 4096;

constexpr std::array<ContextKey, 7> kKeys = {{
    {"coordinator", "--coordinator", &Context::coordinator},
    {"access_token_file", "--access-token-file", &Context::access_token_file,
     true},
    {"tls_ca", "--tls-ca", &Context::tls_ca, true},
    {"tls_cert", "--tls-cert", &Context::tls_cert, true},
    {"tls_key", "--tls-key", &Context::tls_key, true},
    {"timeout", "--timeout", &Context::timeout},
    {"output", "--output", &Context::output},
}};

// The Reader knows the line of each value in the file, for errors.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {}

  absl::StatusOr<Contexts> Read(const YAML::Node& root) {
    Contexts contexts;
    if (root.IsNull()) return contexts;
    RETURN_IF_ERROR(CheckMap(root, "the file", {"current", "contexts"}));
    if (const YAML::Node current = root["current"]) {
      ASSIGN_OR_RETURN(contexts.current, Scalar(current, "current"));
    }
    if (const YAML::Node all = root["contexts"]; all && !all.IsNull()) {
      RETURN_IF_ERROR(CheckMap(all, "contexts", {}));
      for (const auto& item : all) {
        const std::string name = item.first.Scalar();
        if (const absl::Status fits = CheckContextName(name); !fits.ok())
          return At(item.first, std::string(Message(fits)));
        ASSIGN_OR_RETURN(contexts.all[name], ReadOne(item.second, name));
      }
    }
    if (!contexts.current.empty() && !contexts.all.contains(contexts.current))
      return At(root["current"],
                fmt::format("current: no context \"{}\"{}", contexts.current,
                            DidYouMean(contexts.current, Names(contexts))));
    return contexts;
  }

 private:
  static std::vector<std::string> Names(const Contexts& contexts) {
    std::vector<std::string> names;
    for (const auto& [name, context] : contexts.all) names.push_back(name);
    return names;
  }

  absl::Status At(const YAML::Node& node, const std::string& message) const {
    return InvalidArgument("{}:{}: {}", path_, node.Mark().line + 1, message);
  }

  absl::StatusOr<std::string> Scalar(const YAML::Node& node,
                                     const std::string& what) const {
    if (!node.IsScalar() || node.Scalar().size() > kMaxValue)
      return At(node, fmt::format("{}: want a text of at most {} bytes", what,
                                  kMaxValue));
    return node.Scalar();
  }

  // Checks that the node is a map without duplicate keys, and with keys only
  // from `keys` unless that is empty.
  absl::Status CheckMap(const YAML::Node& node, const std::string& what,
                        const std::vector<std::string>& keys) const {
    if (!node.IsMap()) return At(node, what + ": want keys and values");
    std::set<std::string> seen;
    for (const auto& item : node) {
      if (!item.first.IsScalar())
        return At(item.first, what + ": a key that is no text");
      const std::string& key = item.first.Scalar();
      if (!seen.insert(key).second)
        return At(item.first,
                  fmt::format("{}: \"{}\" is there twice", what,
                              Printable(key.substr(0, kMaxContextName))));
      if (keys.empty() ||
          std::find(keys.begin(), keys.end(), key) != keys.end())
        continue;
      return At(item.first,
                fmt::format("{}: unknown key \"{}\"{}; want {}", what,
                            Printable(key.substr(0, kMaxContextName)),
                            DidYouMean(key, keys), fmt::join(keys, ", ")));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Context> ReadOne(const YAML::Node& node,
                                  const std::string& name) const {
    const std::string what = "contexts." + name;
    std::vector<std::string> keys;
    for (const ContextKey& each : kKeys) keys.emplace_back(each.key);
    RETURN_IF_ERROR(CheckMap(node, what, keys));
    Context context;
    for (const ContextKey& each : kKeys) {
      const YAML::Node value = node[std::string(each.key)];
      if (!value || value.IsNull()) continue;
      const std::string path = fmt::format("{}.{}", what, each.key);
      ASSIGN_OR_RETURN(context.*each.value, Scalar(value, path));
      if (const absl::Status fits =
              CheckContextValue(each, path, context.*each.value);
          !fits.ok())
        return At(value, std::string(Message(fits)));
    }
    if (context.coordinator.empty())
      return At(node, what + ": coordinator is missing");
    if (context.tls_cert.empty() != context.tls_key.empty())
      return At(node, what + ": tls_cert and tls_key go together");
    return context;
  }

  const std::string path_;
};

// Checks that other users cannot change the file, nor read it if it names
// secrets.
absl::Status CheckMode(const std::string& path, const struct stat& found,
                       const Contexts& contexts) {
  const uint32_t mode = found.st_mode & 0777;
  if (found.st_uid != geteuid() && found.st_uid != 0)
    return FailedPrecondition(
        "{}: it belongs to user {}: want a file of your own", path,
        found.st_uid);
  const bool secret =
      std::any_of(contexts.all.begin(), contexts.all.end(), [](const auto& at) {
        return !at.second.access_token_file.empty() ||
               !at.second.tls_key.empty();
      });
  if ((mode & 022) != 0 || (secret && (mode & 077) != 0))
    return FailedPrecondition(
        "{}: others may {} it (mode {:04o}), and it says where {}: want 0600 "
        "(chmod 600)",
        path, (mode & 022) != 0 ? "change" : "read", mode,
        secret ? "an access token or a key is" : "the coordinator is");
  return absl::OkStatus();
}

absl::Status WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return FailedPrecondition("{}", std::strerror(errno));
    text.remove_prefix(static_cast<size_t>(wrote));
  }
  if (fsync(fd) != 0) return FailedPrecondition("{}", std::strerror(errno));
  return absl::OkStatus();
}

std::string Emitted(const Contexts& contexts) {
  YAML::Emitter out;
  out << YAML::BeginMap;
  if (!contexts.current.empty())
    out << YAML::Key << "current" << YAML::Value << YAML::DoubleQuoted
        << contexts.current;
  out << YAML::Key << "contexts" << YAML::Value << YAML::BeginMap;
  for (const auto& [name, context] : contexts.all) {
    out << YAML::Key << YAML::DoubleQuoted << name << YAML::Value
        << YAML::BeginMap;
    for (const ContextKey& each : kKeys)
      if (const std::string& value = context.*each.value; !value.empty())
        out << YAML::Key << std::string(each.key) << YAML::Value
            << YAML::DoubleQuoted << value;
    out << YAML::EndMap;
  }
  out << YAML::EndMap << YAML::EndMap;
  return std::string(out.c_str()) + '\n';
}

// Returns the file to write, in an existing folder: if the path is a link, its
// target.
absl::StatusOr<fs::path> TargetOf(const std::string& path) {
  std::error_code error;
  fs::path target = fs::weakly_canonical(path, error);
  if (error) target = path;
  // For a dangling link.
  if (const fs::path to = fs::read_symlink(target, error); !error)
    target = target.parent_path() / to;
  const fs::path folder = target.parent_path();
  if (folder.empty() || fs::exists(folder, error)) return target;
  fs::create_directories(folder, error);
  if (error)
    return FailedPrecondition("{}: cannot be written: {}", path,
                              error.message());
  fs::permissions(folder, fs::perms::owner_all, error);
  return target;
}

}  // namespace

std::span<const ContextKey> ContextKeys() { return kKeys; }

std::string ContextsPath(const Variable& variable) {
  const auto value = [&](const char* name) {
    return variable(name).value_or("");
  };
  if (std::string path = value("LEAT_CONFIG"); !path.empty()) return path;
  if (const std::string folder = value("XDG_CONFIG_HOME"); !folder.empty())
    return folder + "/leat/config.yaml";
  if (const std::string home = value("HOME"); !home.empty())
    return home + "/.config/leat/config.yaml";
  return "";
}

absl::Status CheckContextName(std::string_view name) {
  const bool fits = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
  if (fits && !name.empty() && name.size() <= kMaxContextName)
    return absl::OkStatus();
  return InvalidArgument(
      "context \"{}\": want a name of 1 to {} letters, digits, '.', '_' and "
      "'-'",
      Printable(name.substr(0, kMaxContextName)), kMaxContextName);
}

absl::Status CheckContextValue(const ContextKey& key, std::string_view what,
                               const std::string& value) {
  if (value.empty()) return absl::OkStatus();
  if (key.value == &Context::coordinator)
    return CheckServiceAddress(what, value);
  if (key.value == &Context::timeout)
    return ParseTimeFlag(what, value).status();
  const std::vector<std::string>& formats = FormatNames();
  if (key.value == &Context::output &&
      std::find(formats.begin(), formats.end(), value) == formats.end())
    return InvalidArgument("{} \"{}\"{}; want one of {}", what, value,
                           DidYouMean(value, formats),
                           fmt::join(formats, ", "));
  return absl::OkStatus();
}

absl::StatusOr<Contexts> ParseContexts(const std::string& path,
                                       const std::string& text) {
  try {
    return Reader(path).Read(YAML::Load(text));
  } catch (const YAML::Exception& error) {
    return InvalidArgument("{}:{}: {}", path, error.mark.line + 1, error.msg);
  }
}

absl::StatusOr<Contexts> ReadContexts(const std::string& path) {
  const Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 && errno == ENOENT) return Contexts();
  struct stat found {};
  if (file.get() < 0 || fstat(file.get(), &found) != 0)
    return FailedPrecondition("{}: {}", path, std::strerror(errno));
  if (!S_ISREG(found.st_mode))
    return FailedPrecondition("{}: it is no file, but a folder or a device",
                              path);
  if (found.st_size > ssize_t{kMaxBytes})
    return FailedPrecondition("{}: want a file of at most {} bytes", path,
                              kMaxBytes);
  std::string text(static_cast<size_t>(found.st_size), '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got =
        read(file.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return FailedPrecondition("{}: {}", path, std::strerror(errno));
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  text.resize(have);
  ASSIGN_OR_RETURN(Contexts contexts, ParseContexts(path, text));
  RETURN_IF_ERROR(CheckMode(path, found, contexts));
  return contexts;
}

// A lock on a folder's descriptor, which ends with the descriptor.
class ContextsLock {
 public:
  explicit ContextsLock(int fd) : folder_(fd) {}

 private:
  const Fd folder_;
};

absl::StatusOr<std::shared_ptr<ContextsLock>> TryLockContexts(
    const std::string& path) {
  ASSIGN_OR_RETURN(const fs::path target, TargetOf(path));
  const fs::path folder =
      target.has_parent_path() ? target.parent_path() : fs::path(".");
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  auto lock = std::make_shared<ContextsLock>(fd);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    return nullptr;
  return lock;
}

absl::Status WriteContexts(const std::string& path, const Contexts& contexts) {
  const auto failed = [&path](std::string_view why) {
    return FailedPrecondition("{}: cannot be written: {}", path, why);
  };
  ASSIGN_OR_RETURN(const fs::path target, TargetOf(path));
  std::string temporary = target.string() + ".XXXXXX";
  const Fd file(mkostemp(temporary.data(), O_CLOEXEC));  // of mode 0600
  if (file.get() < 0) return failed(std::strerror(errno));
  absl::Status written = WriteAll(file.get(), Emitted(contexts));
  if (written.ok() && rename(temporary.c_str(), target.c_str()) != 0)
    written = FailedPrecondition("{}", std::strerror(errno));
  if (written.ok()) return written;
  unlink(temporary.c_str());
  return failed(Message(written));
}

bool IsPath(const ContextKey& key, std::string_view value) {
  return key.file && !value.empty() &&
         (key.value != &Context::tls_ca || value != kSystemRoots);
}

Context Resolved(Context context, const std::string& path,
                 const std::string& home) {
  for (const ContextKey& each : kKeys) {
    std::string& value = context.*each.value;
    if (!IsPath(each, value) || value[0] == '/') continue;
    value = value.starts_with("~/") && !home.empty()
                ? home + value.substr(1)
                : (fs::path(path).parent_path() / value).string();
  }
  return context;
}

}  // namespace leat::cli
