# SPDX-License-Identifier: Apache-2.0
"""Faults of machines: clocks that jump, scarce memory and CPUs, names that move, packets that get lost."""

import pathlib
import subprocess
import unittest

import faults
from faults import ChaosTest, ControlGroup, Lossy, Names, Network, Stutter, cluster, free_port, prlimit, time

MIB = 1 << 20


def resident_bytes(process):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError(f"process {process.pid} says no VmHWM")


class Clocks(ChaosTest):
    """The wall clock jumps, in the processes whose clock the test controls."""

    def test_a_wall_clock_that_jumps_everywhere(self):
        clock = self.file_faults("/nowhere")
        self.start_coordinator(env=clock.env)
        for _ in range(2):
            self.start_worker(env=clock.env)
        consumer = self.train(env={"LEAT_TRANSPORT": "grpc", **clock.env})
        for seconds in (600, -600, 3 * 86_400, 0.5, -40 * 365 * 86_400):
            consumer.pull(2)
            clock.jump(seconds)
        self.finish(consumer, longest_s=5)
        self.until_ready(2)
        self.finish(self.train(), longest_s=5)  # a consumer whose own clock is right

    def test_one_worker_whose_clock_is_wrong(self):
        clock = self.file_faults("/nowhere")
        clock.jump(-600)
        self.start_coordinator()
        self.start_worker(env=clock.env)
        self.start_worker()
        consumer = self.train()
        consumer.pull(3)
        clock.jump(600)
        self.finish(consumer, longest_s=5)
        self.until_ready(2)


class Short(ChaosTest):
    def test_a_worker_with_little_memory(self):
        """It requests memory from the kernel by its limit: it survives, below the limit."""
        group = self._keep(ControlGroup(1, memory=256 * MIB))
        self.start_coordinator()
        worker = self.start_worker(before=group.before)
        self.finish(self.train(), longest_s=20)
        self.assertIsNone(worker.process.poll())
        self.assertIn("under_oom 0", group.read("memory.oom_control"))
        self.assertLess(int(group.read("memory.max_usage_in_bytes")), 256 * MIB)

    def test_a_worker_that_is_killed_for_its_memory(self):
        """The kernel ends it at any point; another worker takes over its rows."""
        group = self._keep(ControlGroup(2, memory=1024 * MIB))
        self.start_coordinator()
        short = self.start_worker(before=group.before)
        self.start_worker()
        consumer = self.train()
        consumer.pull(3)
        hog = subprocess.Popen([*group.before, "sh", "-c", f"echo 1000 > /proc/{short.process.pid}/oom_score_adj; "
                                "exec tail /dev/zero"], stderr=subprocess.DEVNULL)
        self.addCleanup(hog.wait)
        self.addCleanup(hog.kill)
        self.assertEqual(short.process.wait(cluster.PATIENCE_S), -9)
        self.finish(consumer, longest_s=20)

    def test_a_worker_with_a_twentieth_of_a_cpu(self):
        group = self._keep(ControlGroup(3, cpu=0.05))
        self.start_coordinator()
        self.start_worker(before=group.before)
        self.start_worker()
        self.finish(self.train(), longest_s=20)

    def test_a_consumer_at_a_hundredth_of_its_speed(self):
        """The rows that a worker keeps for it are bounded, and other consumers do not wait for it."""
        self.start_coordinator()
        worker = self.start_worker()
        slow = self.train("--window", 8)
        slow.pull(1)
        self._keep(Stutter(slow, on_s=0.01, off_s=1.0))
        slow.process.stdin.write(b"\n" * 15)
        before = resident_bytes(worker.process)
        for _ in range(2):
            self.finish(self.train(), longest_s=10)
        self.assertLess(resident_bytes(worker.process) - before, 64 * MIB)


class Moved(ChaosTest):
    def test_the_coordinators_name_gets_another_address(self):
        names = Names(self.folder / "hosts")
        port = free_port()
        names.set(coordinator="127.0.0.1")
        self.start_coordinator("--insecure", listen=f"127.0.0.1:{port}")
        for _ in range(2):
            self.start_worker(coordinator=f"coordinator:{port}", before=names.before)
        consumer = self.train(before=names.before, address=f"coordinator:{port}")
        consumer.pull(2)
        self.coordinator.kill9()
        names.set()  # the name does not resolve
        consumer.pull(4)
        names.set(coordinator="127.0.0.2")
        self.start_coordinator("--insecure", listen=f"127.0.0.2:{port}")
        self.until_ready(2)
        self.finish(consumer, longest_s=5)
        self.finish(self.train(), longest_s=5)


class Herd(ChaosTest):
    CLIENTS = 2000

    def test_two_thousand_clients_come_back_at_once(self):
        """They reconnect to a coordinator that was killed, while others train."""
        self.start_cluster(workers=2)
        consumer = self.train()
        consumer.pull(2)
        self.coordinator.kill9()
        herd = subprocess.Popen([*prlimit(nofile=2 * self.CLIENTS), cluster.program("HERD"), self.coordinator.address,
                                 str(self.CLIENTS)], stdout=subprocess.PIPE, text=True)
        self.addCleanup(herd.communicate)
        self.addCleanup(herd.kill)
        consumer.pull(2)
        self.restart_coordinator("--max-connections", str(2 * self.CLIENTS), "--max-connections-per-address",
                                 str(2 * self.CLIENTS))
        back = time.monotonic()
        self.until_ready(2)
        self.assertLess(time.monotonic() - back, 10)
        said, _ = herd.communicate(timeout=cluster.PATIENCE_S)
        self.assertEqual(int(said.split()[0]), self.CLIENTS, said)
        self.finish(consumer, longest_s=10)


class Packets(ChaosTest):
    """A worker behind a network that loses, doubles, delays and reorders packets."""

    SEED = 20

    def start_behind(self, network):
        self.start_coordinator("--insecure", listen=f"{network.host}:0")
        self.start_worker("--insecure", "--allow", "/", "--listen", f"{network.address}:0", before=network.before)

    def test_loss_and_reordering(self):
        network = self._keep(Lossy(11, self.SEED))
        network.set(loss=0.02, twice=0.01, delay_ms=20, jitter_ms=10)
        self.start_behind(network)
        self.finish(self.train(), longest_s=20)
        counts = network.end()
        for what in ("lost", "twice", "overtaken"):
            self.assertGreater(counts[what], 0, counts)

    def test_a_far_network_is_not_taken_for_a_dead_one(self):
        """With 200 ms there and back, and one packet of fifty lost, no worker is taken for dead."""
        network = self._keep(Lossy(12, self.SEED))
        network.set(loss=0.02, delay_ms=100)
        self.start_behind(network)
        consumer = self.train()
        for _ in range(8):
            consumer.pull(1)
            self.assertEqual(len(self.ready_workers()), 1)
        self.finish(consumer, longest_s=20)

    def test_one_of_two_workers_behind_it(self):
        network = self._keep(Lossy(13, self.SEED))
        network.set(loss=0.2, delay_ms=50, jitter_ms=40)
        self.start_behind(network)
        self.start_worker("--insecure", name="near")
        self.finish(self.train(), longest_s=20)


class OneWay(ChaosTest):
    """Packets to a worker arrive, and none of its own do."""

    def test_a_worker_that_hears_and_is_not_heard(self):
        network = self._keep(Network(14))
        self.start_coordinator("--insecure", listen=f"{network.host}:0")
        self.start_worker(name="near")
        self.start_worker("--insecure", "--allow", "/", "--listen", f"{network.address}:0", name="far",
                          before=network.before)
        consumer = self.train()
        consumer.pull(3)
        network.mute()
        consumer.pull(8)
        network.unmute()
        self.until_ready(2)
        self.finish(consumer, longest_s=20)


if __name__ == "__main__":
    faults.os.chdir(cluster.tempfile.gettempdir())
    unittest.main()
