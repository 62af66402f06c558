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
  Choice(
      pool->add_option("ACTION", options.kind, "set, watch or run")->required(),
      {"set", "watch", "run"});
  values[pool->add_option("NAME", options.name, "the pool, its whole name")
             ->required()] = Names("pools");
  const auto bound = [pool](const char* flag, std::optional<uint32_t>& value,
                            const char* text) {
    pool->add_option(flag, value, text)
        ->check(CLI::Range(uint32_t{0}, kMaxPoolWorkers).description(""))
        ->type_name("N");
  };
  bound("--min", options.min_workers, "workers at least (0)");
  bound("--max", options.max_workers,
        "workers at most; 0: the pool has no bounds, and is not scaled");
  KubernetesOptions& to = options.kubernetes;
  pool->add_option("--kubernetes", to.target,
                   "of run: deployment/NAME, which gets as many replicas as "
                   "the pool should have workers")
      ->type_name("TARGET");
  pool->add_option("--namespace", to.name_space,
                   "of the deployment; default: the account's own")
      ->type_name("NAME");
  pool->add_option("--server", to.server,
                   "the API server behind \"kubectl proxy\", as "
                   "http://127.0.0.1:8001; default: --kubeconfig, or in a pod "
                   "its account")
      ->type_name("URL");
  values[pool->add_option("--kubeconfig", to.kubeconfig,
                          "its current context says the cluster and the "
                          "account (KUBECONFIG, ~/.kube/config)")
             ->type_name("FILE")] = Files();
  pool->add_flag("--once", to.once, "of run: once, and not until stopped");
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
  Choice(slurm->add_option("ACTION", options.kind, "up, scale, down or status")
             ->required(),
         {"up", "scale", "down", "status"});
  values[slurm->add_option("POOL", options.name, "the pool, its whole name")
             ->required()] = Names("pools");
  const auto folder = [&](const char* flag, std::string& value,
                          const char* text) {
    CLI::Option* option = slurm->add_option(flag, value, text);
    values[option->type_name("DIR")] = Files();
  };
  folder("--dir", to.dir,
         "folder of this pool that all nodes share: scripts, token, logs, and "
         "the coordinator's address");
  slurm->add_option("--min", options.min_workers, "workers at least (1)")
      ->check(CLI::Range(uint32_t{0}, kMaxPoolWorkers).description(""))
      ->type_name("N");
  slurm->add_option("--max", options.max_workers, "workers at most")
      ->check(CLI::Range(uint32_t{1}, kMaxPoolWorkers).description(""))
      ->type_name("N");
  slurm->add_option("--cpus", to.cpus, "cores of each worker (1)")
      ->check(CLI::Range(uint32_t{1}, uint32_t{4096}).description(""))
      ->type_name("N");
  folder("--tls", to.tls,
         "folder with ca.pem, and HOST.pem and HOST.key of each node, or "
         "node.pem and node.key of all");
  slurm->add_flag("--insecure", to.insecure,
                  "plaintext between the nodes is meant");
  slurm
      ->add_option("--listen", to.listen,
                   "host that the daemons listen on; default: each node's name")
      ->type_name("HOST");
  slurm
      ->add_option("--worker", to.worker,
                   "a flag of leat-worker, as --worker=--cache=8GiB; may be "
                   "given several times")
      ->allow_extra_args(false)
      ->type_name("FLAG");
  slurm
      ->add_option("--coordinator-flag", to.coordinator,
                   "a flag of leat-coordinator, as "
                   "--coordinator-flag=--scale-down-after=2m; may be given "
                   "several times")
      ->allow_extra_args(false)
      ->type_name("FLAG");
  slurm
      ->add_option("--sbatch", to.sbatch,
                   "a flag of sbatch for all jobs, as "
                   "--sbatch=--partition=cpu; may be given several times")
      ->allow_extra_args(false)
      ->type_name("FLAG");
  slurm
      ->add_option("--array-size", to.array_size,
                   "tasks of an array (1000); Slurm's MaxArraySize is more")
      ->check(CLI::Range(uint64_t{1}, uint64_t{4'000'000}).description(""))
      ->type_name("N");
  slurm->add_flag("--once", to.once, "of scale: once, and not until stopped");
  slurm
      ->add_option("--within", options.within,
                   "of up: give up after so long, with exit code 4 (5m)")
      ->type_name("TIME");
  AddOutput(slurm, true);
}

}  // namespace leat::cli
