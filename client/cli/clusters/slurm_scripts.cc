// SPDX-License-Identifier: Apache-2.0
//
// Both scripts run in the pool's folder, which has
//
//   token        the service's access token, made by `leat slurm up`
//   address      where the coordinator listens: written when it does, by rename
//   last         where it listened last
//   log/         what the tasks print
//
// Slurm sends signals to a script only, so each script passes SIGTERM on, once:
// a second signal would end a worker without its drain. Before its time limit a
// worker drains, and its array has another task; the coordinator has no other
// one, so its job goes back into the queue.
#include "client/cli/clusters/slurm_scripts.h"

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "absl/strings/str_replace.h"
#include "client/cli/base/text.h"
#include "client/cli/clusters/slurm_pool.h"
#include "core/status.h"

namespace leat::cli {
namespace {

// The common beginning of both scripts. The daemon listens on `host`.
constexpr std::string_view kCommon = R"sh(set -u
cd {DIR} || exit 1
host={LISTEN}
[ -n "$host" ] || host=$(hostname -f)
tls={TLS}
secrets=(--access-token-file token)
if [ -n "$tls" ]; then
  own=$tls/$host
  [ -s "$own.pem" ] || own=$tls/node
  secrets+=(--tls-ca "$tls/ca.pem" --tls-cert "$own.pem" --tls-key "$own.key")
fi
)sh";

constexpr std::string_view kCoordinator = R"sh(
asked= again= daemon= adapter=
# The adapter first: it would submit more tasks than are ended.
stop() { asked=yes; kill -TERM $adapter "$daemon" 2>/dev/null; }
# Before its time limit. A limit that leaves it no time is not tried again.
renew() { [ "$SECONDS" -lt 30 ] || again=yes; stop; }
serve() {
  coproc DAEMON {
    exec leat-coordinator --listen "$host:$1" --ready-fd 3 {INSECURE} \
      "${secrets[@]}" {COORDINATOR_FLAGS} 3>&1 1>&2
  }
  daemon=$DAEMON_PID
  trap stop TERM
  trap renew USR1
  read -r address <&"${DAEMON[0]}" || { wait "$daemon"; return 1; }
}
# Workers and trainings find it again where it was.
port=0 last=$(cat last 2>/dev/null)
[ "${last%:*}" != "$host" ] || port=${last##*:}
if ! serve "$port" && { [ "$port" = 0 ] || ! serve 0; }; then
  echo "leat slurm: the coordinator does not serve" >&2
  exit 1
fi
printf '%s\n' "$address" > last
printf '%s\n' "$address" > address.new && mv address.new address
leat=(leat --coordinator "$address" "${secrets[@]}")
"${leat[@]}" pool set {POOL} --min {MIN} --max {MAX} || stop
follow() {
  local child=
  trap 'kill -TERM $child 2>/dev/null; wait; exit' TERM
  while kill -0 "$daemon" 2>/dev/null; do
    "${leat[@]}" slurm scale {POOL} --dir . --array-size {ARRAY} &
    child=$!
    wait "$child"
    sleep 5 &
    child=$!
    wait "$child"
  done
}
follow &
adapter=$!
[ -z "$asked" ] || stop
while kill -0 "$daemon" 2>/dev/null; do wait "$daemon"; done
wait "$daemon"
code=$?
kill -TERM "$adapter" 2>/dev/null
# The job is in the queue as long as the adapter may submit another.
while kill -0 "$adapter" 2>/dev/null; do wait "$adapter"; done
rm -f address
[ -z "$again" ] || scontrol requeue "$SLURM_JOB_ID"
[ -z "$asked" ] || exit 0
exit "$code"
)sh";

constexpr std::string_view kWorker = R"sh(
asked= worker=
stop() {
  [ -z "$asked" ] || return
  asked=yes
  [ -z "$worker" ] || kill -TERM "$worker" 2>/dev/null
}
trap stop TERM
name={POOL}.${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}
restarts=${SLURM_RESTART_COUNT:-0}
[ "$restarts" = 0 ] || name=$name.r$restarts
until [ -n "$asked" ]; do
  # No event tells that another machine has written a file.
  until [ -s address ] || [ -n "$asked" ]; do
    [ "$SECONDS" -lt 900 ] || { echo "leat slurm: no coordinator came" >&2; exit 1; }
    sleep 1
  done
  [ -z "$asked" ] || break
  address=$(cat address)
  leat-worker --coordinator "$address" --pool {POOL} --name "$name" \
    --listen "$host:0" --drain-timeout-ms 60000 {INSECURE} \
    "${secrets[@]}" {WORKER_FLAGS} &
  worker=$!
  [ -z "$asked" ] || kill -TERM "$worker"
  # A coordinator that was started again is elsewhere.
  while sleep 15; do
    [ -s address ] && [ "$(cat address)" != "$address" ] || continue
    kill -TERM "$worker" 2>/dev/null
    break
  done &
  watcher=$!
  while kill -0 "$worker" 2>/dev/null; do wait "$worker"; done
  wait "$worker"
  code=$?
  kill "$watcher" 2>/dev/null
  [ "$code" = 0 ] && continue
  # Slurm starts another task at once, which may fail as fast.
  sleep 20 & wait $!
  exit "$code"
done
exit 0
)sh";

std::string QuotedFlags(const std::vector<std::string>& flags) {
  std::string quoted;
  for (const std::string& flag : flags) quoted += Quoted(flag) + " ";
  return quoted;
}

std::string Filled(std::string_view text, const SlurmService& service) {
  const SlurmOptions& options = service.options;
  const uint64_t array =
      options.array_size == 0 ? kSlurmArraySize : options.array_size;
  return absl::StrReplaceAll(
      {text.data(), text.size()},
      {{"{DIR}", Quoted(options.dir)},
       {"{LISTEN}", Quoted(options.listen)},
       {"{TLS}", Quoted(options.tls)},
       {"{INSECURE}", options.insecure ? "--insecure" : ""},
       {"{POOL}", Quoted(service.pool)},
       {"{MIN}", fmt::format("{}", service.min)},
       {"{MAX}", fmt::format("{}", service.max)},
       {"{ARRAY}", fmt::format("{}", array)},
       {"{COORDINATOR_FLAGS}", QuotedFlags(options.coordinator)},
       {"{WORKER_FLAGS}", QuotedFlags(options.worker)}});
}

bool Gives(const std::vector<std::string>& flags, std::string_view name) {
  return std::ranges::any_of(flags, [&](const std::string& flag) {
    return flag == name || flag.starts_with(fmt::format("{}=", name));
  });
}

// Returns the first lines. `log`: the file's name, without its extension.
// `before_limit`: the signal to the script before its time limit.
std::string Header(const SlurmService& service, std::string_view name,
                   uint32_t cpus, std::string_view log,
                   std::string_view before_limit) {
  std::string lines = "#!/bin/bash\n# Made by \"leat slurm up\".\n";
  const auto add = [&lines](std::string_view flag) {
    lines += fmt::format("#SBATCH {}\n", flag);
  };
  add(fmt::format("--job-name={}", name));
  add("--ntasks=1");
  add(fmt::format("--cpus-per-task={}", cpus));
  add(fmt::format("--signal=B:{}@120", before_limit));
  add("--requeue");
  add("--open-mode=append");
  add(fmt::format("--output={}/log/{}.log", service.options.dir, log));
  for (const std::string& flag : service.options.sbatch) add(flag);
  return lines;
}

}  // namespace

absl::Status CheckScriptText(std::string_view flag, std::string_view text) {
  if (std::all_of(text.begin(), text.end(),
                  [](unsigned char c) { return c >= 32 && c != 127; }))
    return absl::OkStatus();
  return InvalidArgument("{}: want a text of one line", flag);
}

absl::Status CheckTlsFolder(const SlurmOptions& slurm) {
  if (slurm.tls.empty()) {
    const bool inside = slurm.listen == "localhost" || slurm.listen == "::1" ||
                        slurm.listen.starts_with("127.");
    if (inside || slurm.insecure || Gives(slurm.coordinator, "--insecure") ||
        Gives(slurm.coordinator, "--tls-cert"))
      return absl::OkStatus();
    return InvalidArgument(
        "up: --tls is missing: want a folder with ca.pem, and node.pem and "
        "node.key or HOST.pem and HOST.key; or --insecure, if plaintext is "
        "meant");
  }
  std::error_code error;
  if (!std::filesystem::is_directory(slurm.tls, error))
    return InvalidArgument("--tls {}: {}", slurm.tls,
                           error ? error.message() : "want a folder");
  if (!std::filesystem::exists(slurm.tls + "/ca.pem", error))
    return InvalidArgument("--tls {}: want ca.pem in it", slurm.tls);
  bool pair = false;
  for (const auto& entry :
       std::filesystem::directory_iterator(slurm.tls, error)) {
    std::filesystem::path path = entry.path();
    if (path.extension() != ".key") continue;
    pair |= std::filesystem::exists(path.replace_extension(".pem"), error);
  }
  if (!pair)
    return InvalidArgument(
        "--tls {}: want node.pem and node.key in it, or HOST.pem and HOST.key "
        "of each node",
        slurm.tls);
  return absl::OkStatus();
}

std::string CoordinatorScript(const SlurmService& service) {
  return Header(service, CoordinatorJobName(service.pool), 1, "coordinator",
                "USR1") +
         Filled(kCommon, service) + Filled(kCoordinator, service);
}

std::string WorkerScript(const SlurmService& service) {
  return Header(service, SlurmJobName(service.pool), service.options.cpus,
                "%A_%a", "TERM") +
         Filled(kCommon, service) + Filled(kWorker, service);
}

}  // namespace leat::cli
