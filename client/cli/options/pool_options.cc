// SPDX-License-Identifier: Apache-2.0
//
// Commands about the number of workers.
#include "client/cli/options/command_line_state.h"
#include "core/cluster/pool_policy.h"

namespace leat::cli {

void CommandLine::State::AddPool() {
  CLI::App* pool = Command(
      "pool",
      "How many workers a pool may have and should have, and who runs them",
      "  leat pool set cpu --min 1 --max 8\n"
      "  leat pool set cpu --max 0     # it is not scaled any more\n"
      "  leat pool watch cpu -o jsonl  # a line now and at each change\n"
      "  leat pool run cpu --kubernetes deployment/leat-worker\n"
      "  leat get pools --watch\n");
  Choice(Word(pool, "ACTION", options.kind, "set, watch or run"),
         {"set", "watch", "run"});
  Word(pool, "NAME", options.name, "the pool, its whole name", Names("pools"));
  Add(pool, "--min", options.min_workers, "N", "workers at least (0)")
      ->check(Between(uint32_t{0}, kMaxPoolWorkers));
  Add(pool, "--max", options.max_workers, "N",
      "workers at most; 0: the pool has no bounds, and is not scaled")
      ->check(Between(uint32_t{0}, kMaxPoolWorkers));
  KubernetesOptions& to = options.kubernetes;
  Add(pool, "--kubernetes", to.target, "TARGET",
      "with run: deployment/NAME, which gets as many replicas as the pool "
      "should have workers");
  Add(pool, "--namespace", to.name_space, "NAME",
      "the deployment's namespace; default: the account's own");
  Add(pool, "--server", to.server, "URL",
      "the API server behind \"kubectl proxy\", as http://127.0.0.1:8001; "
      "default: --kubeconfig, or in a pod its account");
  Add(pool, "--kubeconfig", to.kubeconfig, "FILE",
      "its current context says the cluster and the account (KUBECONFIG, "
      "~/.kube/config)",
      Files());
  pool->add_flag("--once", to.once, "with run: adjust once, and end");
  AddOutput(pool, false);
}

void CommandLine::State::AddSlurm() {
  CLI::App* slurm = Command(
      "slurm", "A coordinator and a pool of workers as jobs of Slurm",
      "  leat slurm up cpu --dir ~/leat --min 1 --max 8 --cpus 4 \\\n"
      "      --tls ~/tls --worker=--allow=/data\n"
      "  leat slurm status cpu --dir ~/leat\n"
      "  leat slurm scale cpu --dir ~/leat    # the coordinator's job does it\n"
      "  leat slurm down cpu\n");
  SlurmOptions& to = options.slurm;
  Choice(Word(slurm, "ACTION", options.kind, "up, scale, down or status"),
         {"up", "scale", "down", "status"});
  Word(slurm, "POOL", options.name, "the pool, its whole name", Names("pools"));
  Add(slurm, "--dir", to.dir, "DIR",
      "folder of this pool that all nodes share: scripts, token, logs, and the "
      "coordinator's address",
      Files());
  Add(slurm, "--min", options.min_workers, "N", "workers at least (1)")
      ->check(Between(uint32_t{0}, kMaxPoolWorkers));
  Add(slurm, "--max", options.max_workers, "N", "workers at most")
      ->check(Between(uint32_t{1}, kMaxPoolWorkers));
  Add(slurm, "--cpus", to.cpus, "N", "cores of each worker (1)")
      ->check(Between(uint32_t{1}, uint32_t{4096}));
  Add(slurm, "--tls", to.tls, "DIR",
      "folder with ca.pem, and HOST.pem and HOST.key of each node, or node.pem "
      "and node.key of all",
      Files());
  slurm->add_flag("--insecure", to.insecure,
                  "plaintext between the nodes is meant");
  Add(slurm, "--listen", to.listen, "HOST",
      "host that the daemons listen on; default: each node's name");
  Add(slurm, "--worker", to.worker, "FLAG",
      "a flag of leat-worker, as --worker=--cache=8GiB; may be given several "
      "times")
      ->allow_extra_args(false);
  Add(slurm, "--coordinator-flag", to.coordinator, "FLAG",
      "a flag of leat-coordinator, as "
      "--coordinator-flag=--scale-down-after=2m; may be given several times")
      ->allow_extra_args(false);
  Add(slurm, "--sbatch", to.sbatch, "FLAG",
      "a flag of sbatch for all jobs, as --sbatch=--partition=cpu; may be "
      "given several times")
      ->allow_extra_args(false);
  Add(slurm, "--array-size", to.array_size, "N",
      "tasks of an array (1000); Slurm's MaxArraySize is more")
      ->check(Between(uint64_t{1}, uint64_t{4'000'000}));
  slurm->add_flag("--once", to.once, "with scale: adjust once, and end");
  Add(slurm, "--within", options.within, "TIME",
      "with up: give up after so long, with exit code 4 (5m)");
  AddOutput(slurm, true);
}

}  // namespace leat::cli
