# SPDX-License-Identifier: Apache-2.0
"""deploy/kubernetes on a real Kubernetes of two nodes, with the image that deploy/image/pack makes: epochs while the
pool goes from 2 workers to 5 and back, and while a node is drained. Every batch has the oracle's bytes. Then a training
that waits gets more workers, which end after it.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import cluster
import control_plane
import kustomize
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Kubernetes 1.20 serves these kinds in earlier versions, with the same fields.
OLDER = {("policy/v1", "PodDisruptionBudget"): "policy/v1beta1"}
USER = 65532
# A machine with two cores has two nodes; daemons read their sizes from these limits.
SMALL = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
CERTIFICATES = {
    "leat-coordinator-tls": "DNS:leat-coordinator.leat.svc.cluster.local,DNS:localhost,"
                            "URI:spiffe://leat/operator/coordinator",
    "leat-worker-tls": "DNS:*.leat-worker.leat.svc.cluster.local,URI:spiffe://leat/worker",
    "leat-pool-tls": "URI:spiffe://leat/viewer/pool",
    "leat-trainer-tls": "URI:spiffe://leat/trainer/test",
}


def volume(name, path, claim=None):
    """Returns a PersistentVolume for a folder of this machine, which both nodes have."""
    spec = {"capacity": {"storage": "20Gi"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"],
            "persistentVolumeReclaimPolicy": "Retain", "storageClassName": "", "hostPath": {"path": str(path)}}
    if claim:
        spec["claimRef"] = {"namespace": "leat", "name": claim}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


class ClusterTest(cluster.PhotosTest):
    def setUp(self):
        super().setUp()
        folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        # The test itself also resolves the cluster's names.
        resolver = folder / "resolv.conf"
        resolver.write_text(f"nameserver {control_plane.DNS}\n")
        control_plane.run("mount", "--bind", resolver, "/etc/resolv.conf")
        self.plane = control_plane.ControlPlane(ROOT / "build/kubernetes/bin", folder)
        self.addCleanup(self.plane.stop)
        self.plane.start()
        self.plane.load(self.image(folder))
        self.secrets = folder / "secrets"
        self.make_certificates()

    def image(self, folder):
        bundle, image = folder / "leat.tar", folder / "image.tar"
        control_plane.run(ROOT / "deploy/bundle", "--build-dir", os.environ["LEAT_BUILD_DIR"], "--without-parquet",
                          "-o", bundle)
        control_plane.run(ROOT / "deploy/image/pack", bundle, "-o", image)
        return image

    def make_certificates(self):
        self.secrets.mkdir()
        authority = control_plane.Authority(self.secrets)
        for name, names in CERTIFICATES.items():
            authority.certificate(name, f"/CN={name}", f"subjectAltName={names}",
                                  "extendedKeyUsage=serverAuth,clientAuth")

    def apply(self, objects):
        for item in objects:
            version = OLDER.get((item["apiVersion"], item["kind"]))
            if version:
                item["apiVersion"] = version
        self.plane.kubectl("apply", "-f", "-", text=yaml.safe_dump_all(objects))

    def bring_up(self):
        """Follows docs/run/kubernetes.md, with secrets as it describes without cert-manager, and with small pods."""
        state = self.folder / "coordinator-state"
        state.mkdir()
        os.chown(state, USER, USER)
        for folder in (self.folder, state):
            folder.chmod(0o755)
        kubectl = self.plane.kubectl
        kubectl("create", "namespace", "leat")
        kubectl("-n", "leat", "create", "secret", "generic", "leat-coordinator-token",
                f"--from-literal=token={'5ec2e7' * 10}")
        for name in CERTIFICATES:
            at = self.secrets / name
            kubectl("-n", "leat", "create", "secret", "generic", name, f"--from-file=tls.crt={at}.pem",
                    f"--from-file=tls.key={at}.key", f"--from-file=ca.crt={self.secrets}/ca.pem")
        self.apply([volume("data", cluster.photos(), "leat-data"), volume("state", state, "state-leat-coordinator-0"), {
            "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "leat-data", "namespace": "leat"},
            "spec": {"accessModes": ["ReadOnlyMany"], "storageClassName": "",
                     "resources": {"requests": {"storage": "1Gi"}}}}])
        objects = kustomize.render(ROOT / "deploy/kubernetes/overlays/cpu")
        for item in objects:
            if item["kind"] == "StatefulSet":
                item["spec"]["volumeClaimTemplates"][0]["spec"]["storageClassName"] = ""
            if item["kind"] in ("StatefulSet", "Deployment"):
                for container in item["spec"]["template"]["spec"]["containers"]:
                    container["resources"] = SMALL
            if item["kind"] == "ConfigMap" and "coordinator.yaml" in item["data"]:
                item["data"]["coordinator.yaml"] += "scale-down-after: 20s\n"
            if item["kind"] == "ConfigMap" and "worker.yaml" in item["data"]:
                item["data"]["worker.yaml"] = item["data"]["worker.yaml"].replace("20GiB", "64MiB")
        self.apply(objects)
        self.plane.until("the coordinator", lambda: self.leat("get", "pools", check=False).returncode == 0)

    def leat(self, *words, check=True):
        """Runs leat as an operator, in the coordinator's pod."""
        return self.plane.kubectl("-n", "leat", "exec", "leat-coordinator-0", "--", "leat", *words, check=check)

    def ready(self):
        """Returns the workers that are ready, according to the coordinator."""
        done = self.leat("get", "workers", "-o", "json", check=False)
        if done.returncode:
            return []
        return sorted(each["name"] for each in json.loads(done.stdout).get("workers", [])
                      if each["state"] == "WORKER_STATE_READY")

    def pods(self, node=None):
        """Returns the workers' pods that are ready and not ending."""
        found = self.plane.get("pods", "-n", "leat", "-l", "app.kubernetes.io/name=leat-worker")
        return sorted(pod["metadata"]["name"] for pod in found if "deletionTimestamp" not in pod["metadata"]
                      and (node is None or pod["spec"].get("nodeName") == node)
                      and any(each["type"] == "Ready" and each["status"] == "True"
                              for each in pod["status"].get("conditions", [])))

    def scaled(self, count):
        self.leat("pool", "set", "cpu", "--min", str(count), "--max", str(count))
        began = time.monotonic()
        self.plane.until(f"{count} workers", lambda: len(self.pods()) == count and self.pods() == self.ready())
        print(f"{count} workers after {time.monotonic() - began:.1f} s", flush=True)
        desired = self.plane.kubectl("-n", "leat", "get", "deployment", "leat-worker", "-o",
                                     "jsonpath={.spec.replicas}").stdout
        self.assertEqual(desired, str(count))

    def train(self, graph, *flags, **changes):
        trainer = self.secrets / "leat-trainer-tls"
        return self.consumer(self.spec(graph, **changes), *flags, "--tls-ca", self.secrets / "ca.pem", "--tls-cert",
                             f"{trainer}.pem", "--tls-key", f"{trainer}.key",
                             address="leat-coordinator.leat.svc.cluster.local:7411")

    def test_epochs_while_the_pool_changes_a_node_is_drained_and_a_training_waits(self):
        self.bring_up()
        self.epochs_while_the_pool_changes_and_a_node_is_drained()
        self.a_training_that_waits_gets_workers_which_go_after_it()

    def reason(self):
        listed = json.loads(self.leat("get", "pools", "-o", "json").stdout)["pools"]
        [pool] = [each for each in listed if each["name"] == "cpu"]
        return pool["reason"]

    def a_training_that_waits_gets_workers_which_go_after_it(self):
        """By the policy alone, while the trainer takes all batches that it gets."""
        self.scaled(1)
        self.leat("pool", "set", "cpu", "--min", "1", "--max", "3")
        waiting = self.train(cluster.train_graph("/data", repeat=1000), "--rate-s", "600", name="long")
        began = time.monotonic()
        self.plane.until("more workers", lambda: len(self.ready()) > 1 and self.pods() == self.ready())
        reason = self.reason()
        self.assertIn("waits for", reason)
        print(f"more workers {time.monotonic() - began:.1f} s after it began: {reason}", flush=True)
        waiting.process.kill()
        consumer = self.train(cluster.train_graph("/data"), "--paced")
        consumer.pull(1)
        began = time.monotonic()
        self.plane.until("one worker", lambda: len(self.ready()) == 1 and self.pods() == self.ready())
        reason = self.reason()
        self.assertIn("wanted less", reason)
        print(f"one worker {time.monotonic() - began:.1f} s after it ended: {reason}", flush=True)
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)

    def epochs_while_the_pool_changes_and_a_node_is_drained(self):
        self.scaled(2)
        consumer = self.train(cluster.train_graph("/data"), "--paced")
        consumer.pull(2)
        self.scaled(5)
        consumer.pull(2)
        self.scaled(2)
        consumer.pull(1)
        self.scaled(5)
        node = max(self.plane.nodes, key=lambda each: len(self.pods(each.name))).name
        self.assertTrue(self.pods(node))
        self.plane.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=180s")
        self.assertEqual(self.pods(node), [])
        consumer.pull(1)
        self.plane.until("five workers on the other node",
                         lambda: len(self.pods()) == 5 and self.pods() == self.ready())
        self.plane.kubectl("uncordon", node)
        consumer.finish()
        self.assertIsNone(consumer.error)
        self.assertEqual(consumer.steps, self.expected)
        ends = self.plane.get("events", "-n", "leat")
        self.assertEqual([each["message"] for each in ends if each["reason"] in ("BackOff", "Failed")], [])


if __name__ == "__main__":
    raise SystemExit(subprocess.call([str(pathlib.Path(__file__).with_name("run"))]))
