# SPDX-License-Identifier: Apache-2.0
"""Faults between processes: training may wait for a while, but never gets wrong data."""

import subprocess
import unittest

import faults
from faults import ChaosTest, cluster


class Delivery(ChaosTest):
    """Two workers, each behind a proxy of its own."""

    def setUp(self):
        super().setUp()
        self.start_coordinator()
        self.proxies = [self.worker_behind_a_proxy(name=f"w{i}")[1] for i in range(2)]

    def test_delay_and_jitter(self):
        for proxy in self.proxies:
            proxy.set(delay_s=0.1, jitter_s=0.05)
        self.finish(self.train(), longest_s=20)
        self.assertTrue(all(proxy.counts["bytes"] for proxy in self.proxies))

    def test_a_narrow_link(self):
        for proxy in self.proxies:
            proxy.set(bytes_per_s=4_000_000)
        self.finish(self.train(), longest_s=20)

    def test_one_narrow_link(self):
        self.proxies[0].set(bytes_per_s=200_000)
        self.finish(self.train(), longest_s=20)

    def test_connections_are_reset(self):
        consumer = self.train()
        for _ in range(4):
            consumer.pull(3)
            for proxy in self.proxies:
                proxy.reset()
        self.finish(consumer, longest_s=20)
        self.assertGreater(sum(proxy.counts["reset"] for proxy in self.proxies), 0)

    def test_connections_are_cut(self):
        consumer = self.train()
        for _ in range(4):
            consumer.pull(3)
            self.proxies[0].cut()
        self.finish(consumer, longest_s=20)
        self.assertGreater(self.proxies[0].counts["cut"], 0)

    def test_a_black_hole_in_front_of_a_worker(self):
        consumer = self.train()
        consumer.pull(3)
        self.proxies[0].set(hole=True)
        self.finish(consumer, longest_s=20)

    def test_a_black_hole_that_passes(self):
        consumer = self.train()
        consumer.pull(3)
        self.proxies[0].set(hole=True)
        consumer.pull(4)
        self.proxies[0].clear()
        self.finish(consumer, longest_s=20)


class Corruption(ChaosTest):
    """Bits that change on the wire, and that TCP's checksum does not notice."""

    def test_of_rows_over_plaintext(self):
        """A message's checksum notices it: the connection is dropped, and the rows come again, from another worker."""
        self.start_coordinator()
        proxies = [self.worker_behind_a_proxy(name=f"w{i}")[1] for i in range(2)]
        consumer = self.train()
        consumer.pull(2)
        for proxy in proxies:
            proxy.set(corrupt_every=1_500_000)
        while sum(proxy.counts["corrupted"] for proxy in proxies) < 3:
            consumer.pull(1)
        for proxy in proxies:
            proxy.clear()
        self.finish(consumer, longest_s=20)
        self.assertGreater(consumer.end["damaged"], 0)

    def test_under_tls(self):
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
             "-keyout", "key.pem", "-out", "cert.pem"], cwd=self.folder, capture_output=True)
        if made.returncode != 0:
            self.skipTest("no openssl program here to make a certificate with")
        cert = self.folder / "cert.pem"
        service = ["--tls-cert", str(cert), "--tls-key", str(self.folder / "key.pem")]
        self.start_coordinator(*service)
        # The authority that a worker trusts is also what it demands of callers: the consumer shows the same
        # certificate.
        proxies = []
        for i in range(2):
            proxies.append(self.worker_behind_a_proxy(*service, "--tls-ca", str(cert), name=f"w{i}")[1])
        consumer = self.train("--tls-ca", cert, "--tls-cert", cert, "--tls-key", self.folder / "key.pem")
        consumer.pull(2)
        proxies[0].set(corrupt_every=2_000_000)
        self.finish(consumer, longest_s=30)
        self.assertGreater(proxies[0].counts["corrupted"], 0)


class Control(ChaosTest):
    """The path between workers and the coordinator fails. Consumers reach both."""

    def setUp(self):
        super().setUp()
        self.start_coordinator()
        self.between = self.proxy(self.coordinator.address)

    def start_workers(self, count):
        for _ in range(count):
            self.start_worker(coordinator=self.between.address)

    def test_the_coordinator_is_cut_off_from_the_workers(self):
        """All workers look lost to the coordinator, but consumers still reach them."""
        self.start_workers(2)
        consumer = self.train()
        consumer.pull(2)
        self.between.set(hole=True)
        self.until("all workers look lost", lambda: not self.ready_workers())
        consumer.pull(8)
        self.between.clear()
        self.finish(consumer, longest_s=2)

    def test_one_worker_is_cut_off_from_the_coordinator(self):
        self.start_workers(1)
        self.start_worker(name="direct")
        consumer = self.train()
        consumer.pull(2)
        self.between.set(hole=True)
        self.until("it looks lost", lambda: len(self.ready_workers()) == 1)
        consumer.pull(8)
        self.between.clear()
        self.until_ready(2)
        self.finish(consumer, longest_s=10)

    def test_sessions_with_the_coordinator_are_reset(self):
        self.start_workers(2)
        consumer = self.train()
        for _ in range(5):
            consumer.pull(2)
            self.between.reset()
        self.finish(consumer, longest_s=10)
        self.until_ready(2)


class Namespaces(ChaosTest):
    def test_a_worker_whose_link_is_down(self):
        """The kernel partitions the network: packets are neither answered nor refused."""
        network = self._keep(faults.Network(7))
        self.start_coordinator("--insecure", listen=f"{network.host}:0")
        self.start_worker(name="near")
        self.start_worker("--insecure", "--allow", "/", "--listen", f"{network.address}:0", name="far",
                          before=network.before)
        consumer = self.train()
        consumer.pull(3)
        network.cut()
        consumer.pull(8)
        network.heal()
        self.until_ready(2)
        self.finish(consumer, longest_s=20)


if __name__ == "__main__":
    faults.os.chdir(cluster.tempfile.gettempdir())
    unittest.main()
