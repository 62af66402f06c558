# SPDX-License-Identifier: Apache-2.0
"""A private Kubernetes on this machine: etcd, the control plane, and nodes with a kubelet and a containerd each.

It must be root in a network, mount and process namespace of its own (tests/kubernetes/run makes them): all addresses
are its own, and all processes that it starts end with the namespace. Pods of a node are on a bridge of the node, and
the machine forwards between bridges. There is no kube-proxy: the only service with an address is the API server's,
whose address is this machine's.
"""

import ipaddress
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import tarfile
import threading
import time

SERVICE, HOST, DNS = "10.96.0.1", "10.99.0.1", "10.96.0.10"
DOMAIN = "cluster.local"
PAUSE = "docker.io/library/pause:1"
PATIENCE_S = 120
# A kubelet is a service that its machine restarts when it ends.
AGAIN = ("sh", "-c", 'while :; do "$@"; echo "it ended: $?"; sleep 1; done', "sh")
PAUSE_PROGRAM = """
#include <signal.h>
#include <unistd.h>
static void End(int number) { _exit(0); }
int main(void) {
  signal(SIGTERM, End);
  for (;;) pause();
}
"""


class Authority:
    """Certificates, made by openssl: NAME.pem and NAME.key beside ca.pem."""

    _REQUEST = ("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-days", "3")

    def __init__(self, folder):
        self._folder = folder
        run(*self._REQUEST, "-x509", "-subj", "/CN=authority", "-keyout", "ca.key", "-out", "ca.pem", cwd=folder)

    def certificate(self, name, subject, *extensions):
        run(*self._REQUEST, "-subj", subject, "-keyout", f"{name}.key", "-out", f"{name}.csr", cwd=self._folder)
        (self._folder / f"{name}.ext").write_text("\n".join(extensions) + "\n")
        run("openssl", "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
            "-days", "3", "-extfile", f"{name}.ext", "-out", f"{name}.pem", cwd=self._folder)


class Names(threading.Thread):
    """The cluster's DNS, instead of CoreDNS: headless services, and pods by names derived from their addresses."""

    def __init__(self, addresses_of):
        super().__init__(daemon=True)
        self._addresses_of = addresses_of
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((DNS, 53))

    def run(self):
        while True:
            query, caller = self._socket.recvfrom(4096)
            try:
                self._socket.sendto(self._answer(query), caller)
            except (ValueError, IndexError, struct.error):
                continue

    def _answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]].decode().lower())
            at += 1 + query[at]
        kind = struct.unpack(">H", query[at + 1:at + 3])[0]
        found = self._find(".".join(labels))
        answers = (found or []) if kind == 1 else []
        flags = 0x8580 if found is not None else 0x8583  # NXDOMAIN
        out = query[:2] + struct.pack(">HHHHH", flags, 1, len(answers), 0, 0) + query[12:at + 5]
        for address in answers:
            out += struct.pack(">HHHIH", 0xC00C, 1, 1, 1, 4) + ipaddress.IPv4Address(address).packed
        return out

    def _find(self, name):
        words = name.split(".")
        if not name.endswith(f".svc.{DOMAIN}"):
            return None
        if len(words) == 5:
            return self._addresses_of(words[1], words[0])
        if len(words) == 6:
            return [str(ipaddress.IPv4Address(words[0].replace("-", ".")))]
        return None


class Node:
    def __init__(self, number):
        self.name, self.number = f"node{number}", number
        self.address, self.pods = f"10.99.0.{10 + number}", f"10.88.{number}"


class ControlPlane:
    """`programs`: the folder that tests/kubernetes/build filled. `folder`: an empty one, for this cluster's files."""

    def __init__(self, programs, folder, nodes=2):
        self.programs, self.folder = pathlib.Path(programs), pathlib.Path(folder)
        self.nodes = [Node(number + 1) for number in range(nodes)]
        self.kubeconfig = self.folder / "admin.json"
        self._processes = []

    # Parts.

    def start(self):
        self._hide_folders()
        self._make_network()
        self._make_certificates()
        self._start("etcd", "--data-dir", self.folder / "etcd", "--listen-client-urls", "http://127.0.0.1:2379",
                    "--advertise-client-urls", "http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380",
                    "--initial-advertise-peer-urls", "http://127.0.0.1:2380", "--initial-cluster",
                    "default=http://127.0.0.1:2380")
        tls = self.folder
        self._start("kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", "--secure-port=443", "--insecure-port=0",
                    f"--advertise-address={HOST}", f"--tls-cert-file={tls}/server.pem",
                    f"--tls-private-key-file={tls}/server.key", f"--client-ca-file={tls}/ca.pem",
                    f"--service-account-key-file={tls}/ca.key", f"--service-account-signing-key-file={tls}/ca.key",
                    f"--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}", "--authorization-mode=RBAC",
                    f"--service-cluster-ip-range={SERVICE}/16", f"--kubelet-client-certificate={tls}/admin.pem",
                    f"--kubelet-client-key={tls}/admin.key", "--kubelet-preferred-address-types=InternalIP",
                    f"--cert-dir={tls}")
        self.until("the API server", lambda: self.kubectl("get", "--raw", "/readyz", check=False).stdout == "ok")
        self._start("kube-controller-manager", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false",
                    f"--service-account-private-key-file={tls}/ca.key", f"--root-ca-file={tls}/ca.pem",
                    f"--cert-dir={tls}")
        self._start("kube-scheduler", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", f"--cert-dir={tls}")
        self._make_pause_image()
        for node in self.nodes:
            self._start_node(node)
        self.until("nodes that are ready", lambda: all(
            any(each["type"] == "Ready" and each["status"] == "True" for each in item["status"].get("conditions", []))
            for item in self.get("nodes")) and len(self.get("nodes")) == len(self.nodes))
        Names(self._endpoints).start()

    def stop(self):
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _start(self, *argv, node=None, before=()):
        """Runs a program with its output in a log of its name. `before`: words before it, if not run on the machine
        itself."""
        own = self.programs / argv[0]
        log = open(self.folder / f"{argv[0]}{f'-{node.name}' if node else ''}.log", "wb")
        self._processes.append(subprocess.Popen(
            [*before, str(own if own.exists() else argv[0]), *map(str, argv[1:])], stdout=log, stderr=log,
            stdin=subprocess.DEVNULL, cwd=self.folder, start_new_session=True))

    def _hide_folders(self):
        """Hides these folders of the machine: kubelets, containerd and its plugins write there regardless of
        options."""
        for folder in ("/var/log/pods", "/var/log/containers", "/var/lib/kubelet", "/var/lib/cni", "/run/containerd"):
            pathlib.Path(folder).mkdir(exist_ok=True)
            run("mount", "-t", "tmpfs", "hidden", folder)

    def _make_network(self):
        run("ip", "link", "set", "lo", "up")
        for address in (SERVICE, HOST, DNS, *(node.address for node in self.nodes)):
            run("ip", "addr", "add", f"{address}/32", "dev", "lo")
        # The API server looks for a route on which others might reach it.
        run("ip", "link", "add", "outside", "type", "bridge")
        run("ip", "addr", "add", "10.98.0.1/24", "dev", "outside")
        run("ip", "link", "set", "outside", "up")
        run("ip", "route", "add", "default", "via", "10.98.0.2")
        pathlib.Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def _make_certificates(self):
        authority = Authority(self.folder)
        names = ",".join([*(f"IP:{each}" for each in (SERVICE, HOST, "127.0.0.1")), "DNS:kubernetes.default.svc"])
        authority.certificate("server", "/CN=kube-apiserver", f"subjectAltName={names}")
        authority.certificate("admin", "/O=system:masters/CN=admin", "extendedKeyUsage=clientAuth")
        at = str(self.folder)
        self.kubeconfig.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "it",
            "clusters": [{"name": "it", "cluster": {"server": f"https://{HOST}",
                                                    "certificate-authority": f"{at}/ca.pem"}}],
            "users": [{"name": "it", "user": {"client-certificate": f"{at}/admin.pem",
                                              "client-key": f"{at}/admin.key"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}]}))

    def _make_pause_image(self):
        """Makes the image that holds a pod's namespaces, as an archive for `ctr images import`."""
        (self.folder / "pause.c").write_text(PAUSE_PROGRAM)
        run("cc", "-static", "-Os", "-o", "pause", "pause.c", cwd=self.folder)
        with tarfile.open(self.folder / "layer.tar", "w") as layer:
            layer.add(self.folder / "pause", "pause")
        digest = run("sha256sum", "layer.tar", cwd=self.folder).stdout.split()[0]
        (self.folder / "config.json").write_text(json.dumps({
            "architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/pause"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]}}))
        (self.folder / "manifest.json").write_text(json.dumps([
            {"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]))
        with tarfile.open(self.folder / "pause.tar", "w") as archive:
            for name in ("manifest.json", "config.json", "layer.tar"):
                archive.add(self.folder / name, name)

    def _start_node(self, node):
        own = self.folder / node.name
        (own / "cni").mkdir(parents=True)
        (own / "cni/10-pods.conflist").write_text(json.dumps({
            "cniVersion": "0.4.0", "name": node.name, "plugins": [
                {"type": "bridge", "bridge": node.name, "isGateway": True, "ipMasq": False,
                 "ipam": {"type": "host-local", "dataDir": str(own / "addresses"),
                          "ranges": [[{"subnet": f"{node.pods}.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}))
        # The kubelet lowers no oom_score_adj where the machine does not let it.
        (own / "containerd.toml").write_text(f"""version = 2
root = "{own}/root"
state = "{own}/state"
[grpc]
  address = "{own}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  stream_server_port = "0"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{own}/cni"
""")
        (own / "kubelet.json").write_text(json.dumps({
            "kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False},
                               "x509": {"clientCAFile": str(self.folder / "ca.pem")}},
            "authorization": {"mode": "AlwaysAllow"}, "address": node.address, "port": 10250, "readOnlyPort": 0,
            "healthzPort": 0, "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": [],
            "failSwapOn": False, "makeIPTablesUtilChains": False, "evictionHard": {"memory.available": "0%"},
            "imageGCHighThresholdPercent": 100, "clusterDNS": [DNS], "clusterDomain": DOMAIN}))
        self._start("containerd", "--config", own / "containerd.toml", node=node)
        self.until(f"containerd of {node.name}", lambda: run(
            *self._ctr(node), "version", check=False).returncode == 0)
        self.load(self.folder / "pause.tar", [node])
        self._start("kubelet", f"--config={own}/kubelet.json",
                    f"--kubeconfig={self.kubeconfig}", "--container-runtime=remote",
                    f"--container-runtime-endpoint=unix://{own}/containerd.sock", f"--root-dir={own}/kubelet",
                    f"--cert-dir={own}/kubelet-tls", f"--hostname-override={node.name}", f"--node-ip={node.address}",
                    node=node, before=AGAIN)

    # The rest is for tests.

    def _ctr(self, node):
        return ("ctr", "--address", self.folder / node.name / "containerd.sock", "--namespace", "k8s.io")

    def load(self, archive, nodes=None):
        """Loads an image into the nodes, as `ctr images import` takes it."""
        for node in nodes or self.nodes:
            run(*self._ctr(node), "images", "import", archive)

    def kubectl(self, *words, check=True, text=None):
        return run(self.programs / "kubectl", f"--kubeconfig={self.kubeconfig}", *words, check=check, text=text)

    def get(self, kind, *words):
        return json.loads(self.kubectl("get", kind, *words, "-o", "json").stdout)["items"]

    def _endpoints(self, namespace, service):
        found = self.kubectl("-n", namespace, "get", "endpoints", service, "-o", "json", check=False)
        if found.returncode:
            return None
        parts = json.loads(found.stdout).get("subsets") or []
        return [each["ip"] for part in parts for key in ("addresses", "notReadyAddresses")
                for each in part.get(key, [])]

    def until(self, what, condition, patience=PATIENCE_S):
        end = time.monotonic() + patience
        while not (found := condition()):
            if time.monotonic() > end:
                raise AssertionError(f"never: {what}\n{self.tail()}")
            time.sleep(0.3)
        return found

    def tail(self):
        """Returns the ends of all logs, and the cluster's own description of its state."""
        parts = []
        for log in sorted(self.folder.glob("*.log")):
            text = log.read_text(errors="replace")
            panic = re.search(r"^(panic|fatal error): (.*\n){15}", text, re.MULTILINE)
            parts.append(f"-- {log.name}\n{panic.group() if panic else ''}{text[-1500:]}")
        said = self.kubectl("get", "pods,events", "-A", "-o", "wide", check=False)
        for pod in self.get("pods", "-A"):
            name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
            log = "".join(self.kubectl("-n", namespace, "logs", name, "--tail=15", *which, check=False).stdout
                          for which in ((), ("--previous",)))
            parts.append(f"-- {name}\n{log[-2500:]}")
        return "\n".join([*parts, said.stdout[-6000:]])


def run(*argv, check=True, cwd=None, text=None):
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, cwd=cwd, input=text,
                          timeout=PATIENCE_S * 3, env={**os.environ})
    if check and done.returncode:
        raise AssertionError(f"{' '.join(map(str, argv))}: {done.returncode}\n"
                             f"{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done
