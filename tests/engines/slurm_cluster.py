# SPDX-License-Identifier: Apache-2.0
"""A real Slurm on this machine: a munged, a slurmctld and two slurmd of its own, in a folder of its own."""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time
import unittest

from ports import free_ports

CONF = """ClusterName=leat
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core,CR_LLN
ReturnToService=2
SlurmdTimeout=10
KillWait=5
MinJobAge=10
SchedulerParameters=sched_min_interval=200000
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
NodeName=n1 NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[1]} CPUs=8 RealMemory=1000 State=UNKNOWN
NodeName=n2 NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[2]} CPUs=8 RealMemory=1000 State=UNKNOWN
PartitionName=p Nodes=n[1-2] Default=YES MaxTime=INFINITE State=UP
"""
NODES = ("n1", "n2")
PATIENCE_S = 120


class SlurmCluster:
    """`start` runs it, and `close` ends what `start` has begun. `environment`: of commands that ask this Slurm."""

    def __init__(self, folder):
        for program in ("munged", "slurmctld", "slurmd", "sbatch"):
            if shutil.which(program, path="/usr/sbin:/usr/bin") is None:
                raise unittest.SkipTest(f"no {program}: deploy/install-dependencies engines")
        if os.getuid() != 0:
            raise unittest.SkipTest("slurmd wants root")
        self.folder = pathlib.Path(folder)
        self.processes = {}
        (self.folder / "state").mkdir(parents=True)
        for node in NODES:
            (self.folder / f"spool-{node}").mkdir()
        conf = self.folder / "slurm.conf"
        conf.write_text(CONF.format(host=socket.gethostname().split(".")[0], folder=self.folder, ports=free_ports(3)))
        self.environment = {**os.environ, "SLURM_CONF": str(conf)}

    def start(self):
        self._start_munged()
        self._start("slurmctld", ["/usr/sbin/slurmctld", "-D", "-i", "-f", self.environment["SLURM_CONF"]])
        for node in NODES:
            self.start_node(node)
        self._until("two idle nodes", lambda: self.run("sinfo", "-h", "-N", "-o", "%t").split() == ["idle", "idle"])

    def _start(self, name, argv):
        with open(self.folder / f"{name}.out", "ab") as out:
            self.processes[name] = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                    env=self.environment, start_new_session=True)

    def _start_munged(self):
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        socket_path = self.folder / "munge.socket"
        self._start("munged", ["/usr/sbin/munged", "--foreground", "--force", "--key-file", str(key), "--socket",
                               str(socket_path), "--pid-file", str(self.folder / "munge.pid"), "--log-file",
                               str(self.folder / "munge.log"), "--seed-file", str(self.folder / "munge.seed")])
        self._until("munged", socket_path.exists)

    def start_node(self, node):
        self._start(node, ["/usr/sbin/slurmd", "-D", "-N", node, "-f", self.environment["SLURM_CONF"]])

    def kill_node(self, node):
        """The node's daemon, the keepers of its tasks, and the tasks, as if the machine were gone."""
        self.processes.pop(node).kill()
        for pid in self._steps(node):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def _processes(self, variable):
        """Folders in /proc of this Slurm's processes whose environment has the line."""
        own = {b"SLURM_CONF=" + self.environment["SLURM_CONF"].encode(), variable.encode()}
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and own <= set((entry / "environ").read_bytes().split(b"\0")):
                    yield entry
            except OSError:
                continue

    def commands_of(self, job_name):
        """Command lines of what runs in the jobs of that name, also of what outlived them."""
        commands = []
        for entry in self._processes(f"SLURM_JOB_NAME={job_name}"):
            try:
                commands.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
            except OSError:
                continue
        return commands

    def _steps(self, node):
        """Processes of tasks on the node, their keepers first."""
        keepers, tasks = [], []
        for entry in self._processes(f"SLURMD_NODENAME={node}"):
            try:
                tasks.append(int(entry.name))
                parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if "slurmstepd" in pathlib.Path(f"/proc/{parent}/comm").read_text():
                    keepers.append(parent)
            except (OSError, ValueError):
                continue
        return keepers + tasks

    def run(self, *argv):
        done = subprocess.run(argv, capture_output=True, text=True, env=self.environment, timeout=PATIENCE_S)
        if done.returncode != 0:
            raise AssertionError(f"{argv}: {done.stderr or done.stdout}")
        return done.stdout

    def running(self, name):
        """{task: node} of the tasks that run."""
        lines = self.run("squeue", "-h", f"--name={name}", "--states=RUNNING", "-o", "%F_%K %N").split("\n")
        return dict(line.split() for line in lines if line)

    def _until(self, what, condition):
        end = time.monotonic() + PATIENCE_S
        while True:
            try:
                if condition():
                    return
            except AssertionError:
                pass
            if time.monotonic() > end:
                raise AssertionError(f"never: {what}\n{self.tails()}")
            time.sleep(0.2)

    def tails(self):
        return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-1500:]}"
                         for path in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.out")))

    def close(self):
        try:
            subprocess.run(["scancel", "--quiet", "--signal=KILL", "--full", "--user=root"], env=self.environment,
                           capture_output=True, timeout=20)
        except (OSError, subprocess.TimeoutExpired):
            pass
        for node in NODES:
            if node in self.processes:
                self.kill_node(node)
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
