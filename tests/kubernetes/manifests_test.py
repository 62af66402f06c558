# SPDX-License-Identifier: Apache-2.0
"""The rendered deploy/kubernetes against strict schemas of every Kubernetes, policies, and the programs it starts."""

import copy
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

import kustomize
import policies

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
from cluster import program  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUBERNETES = ROOT / "deploy/kubernetes"
OVERLAYS = sorted(path.parent.name for path in KUBERNETES.glob("overlays/*/kustomization.yaml"))
OLDEST, NEWEST = "1.25", "1.37"
PAGE = ROOT / "docs/run/kubernetes.md"
# Fields of the custom resources, for which there is no packed schema, as their projects document them.
FIELDS = {
    "ScaledObject": {"scaleTargetRef": {"name"}, "minReplicaCount": int, "maxReplicaCount": int, "pollingInterval": int,
                     "cooldownPeriod": int, "advanced": {"horizontalPodAutoscalerConfig"},
                     "triggers": [{"type", "metadata", "authenticationRef"}]},
    "TriggerAuthentication": {"secretTargetRef": [{"parameter", "name", "key"}]},
    "Issuer": {"selfSigned": set(), "ca": {"secretName"}},
    "Certificate": {"secretName": str, "duration": str, "renewBefore": str, "isCA": bool, "commonName": str,
                    "privateKey": {"algorithm", "size", "rotationPolicy"}, "usages": [str], "dnsNames": [str],
                    "uris": [str], "issuerRef": {"name", "kind"}},
}
CUSTOM = ("keda.sh/", "cert-manager.io/")


def rendered(overlay):
    return kustomize.render(KUBERNETES / "overlays" / overlay)


def certificates():
    """Returns Secret -> the Certificate that makes it."""
    items = kustomize.render(KUBERNETES / "certificates")
    return {each["spec"]["secretName"]: each["spec"] for each in items if each["kind"] == "Certificate"}


class Schemas(unittest.TestCase):
    def test_objects_are_valid_in_every_version(self):
        if kubernetes_validate is None:
            self.skipTest(f"{sys.executable} has no kubernetes-validate")
        versions = sorted({".".join(v.split(".")[:2]) for v in kubernetes_validate.utils.all_versions()},
                          key=lambda v: int(v.split(".")[1]))
        self.assertLessEqual({OLDEST, NEWEST}, set(versions))
        objects, kinds = [], set()
        for overlay in OVERLAYS:
            objects += [item for item in rendered(overlay)
                        if item not in objects and not item["apiVersion"].startswith(CUSTOM)]
        for item in objects:
            # Every version once for each kind, the first and last for each object: schemas of a kind differ little.
            first = item["kind"] not in kinds
            kinds.add(item["kind"])
            for version in versions if first else (OLDEST, NEWEST):
                with self.subTest(version=version, object=policies.name(item)):
                    kubernetes_validate.validate(item, version, strict=True)
        self.assertLessEqual({"StatefulSet", "Deployment", "Service", "NetworkPolicy", "PodDisruptionBudget", "Role",
                              "HorizontalPodAutoscaler"}, kinds)
        wrong = copy.deepcopy(next(item for item in objects if item["kind"] == "Deployment"))
        wrong["spec"]["template"]["spec"]["containers"][0]["livenessProbes"] = {}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, NEWEST, strict=True)

    def test_custom_resources_have_known_fields(self):
        seen = set()
        for items in (rendered("keda"), kustomize.render(KUBERNETES / "certificates")):
            for item in items:
                if not item["apiVersion"].startswith(CUSTOM):
                    continue
                seen.add(item["kind"])
                known = FIELDS[item["kind"]]
                self.assertLessEqual(set(item), {"apiVersion", "kind", "metadata", "spec"})
                for field, value in item["spec"].items():
                    self.assertIn(field, known, policies.name(item))
                    shape = known[field]
                    if isinstance(shape, type):
                        self.assertIs(type(value), shape, field)
                    for part in value if isinstance(shape, list) else [value]:
                        each = shape[0] if isinstance(shape, list) else shape
                        if isinstance(each, set):
                            self.assertLessEqual(set(part), each, field)
                        elif isinstance(shape, list):
                            self.assertIs(type(part), each, field)
        self.assertEqual(seen, set(FIELDS))


class Policies(unittest.TestCase):
    def test_they_hold(self):
        self.assertLessEqual({"cpu", "gpu", "hpa", "insecure", "keda", "s3"}, set(OVERLAYS))
        for overlay in OVERLAYS:
            self.assertEqual(policies.check(rendered(overlay)), [], overlay)

    def test_every_folder_is_used_and_every_file_is_named(self):
        named = set()
        for file in KUBERNETES.rglob("kustomization.yaml"):
            content = yaml.safe_load(file.read_text())
            paths = list(content.get("resources", []))
            paths += [patch["path"] for patch in content.get("patches", [])]
            for each in content.get("configMapGenerator", []):
                paths += [entry.rpartition("=")[2] for entry in each["files"]]
            named |= {(file.parent / path).resolve() for path in paths} | {file.resolve()}
        left = {path.resolve() for path in KUBERNETES.rglob("*.yaml")} - named
        self.assertEqual({path.name for path in left}, {"prometheus-adapter.yaml"})
        tops = {path.parent.resolve() for path in KUBERNETES.glob("*/kustomization.yaml")}
        self.assertEqual({path.name for path in tops - named}, {"certificates"})

    def test_what_breaks_one_is_found(self):
        def first(items, kind, name=None):
            return next(i for i in items if i["kind"] == kind and name in (None, i["metadata"]["name"]))

        def pod(items, kind="Deployment", name="leat-worker"):
            return first(items, kind, name)["spec"]["template"]["spec"]

        def container(items, **at):
            return pod(items, **at)["containers"][0]

        def flags(items, old, new):
            file = first(items, "ConfigMap", pod(items)["volumes"][0]["configMap"]["name"])
            self.assertIn(old, file["data"]["worker.yaml"])
            file["data"]["worker.yaml"] = file["data"]["worker.yaml"].replace(old, new)

        breaks = [
            ("image", lambda i: container(i).update(image="leat:latest")),
            ("image", lambda i: container(i).update(image="leat")),
            ("limits", lambda i: container(i)["resources"]["limits"].pop("memory")),
            ("privileges", lambda i: container(i)["securityContext"].update(allowPrivilegeEscalation=True)),
            ("readOnlyRootFilesystem", lambda i: container(i)["securityContext"].pop("readOnlyRootFilesystem")),
            ("capability", lambda i: container(i)["securityContext"]["capabilities"].update(add=["SYS_PTRACE"])),
            ("seccomp", lambda i: pod(i)["securityContext"].pop("seccompProfile")),
            ("runAsNonRoot", lambda i: pod(i)["securityContext"].update(runAsUser=0)),
            ("hostNetwork", lambda i: pod(i).update(hostNetwork=True)),
            ("token of the API", lambda i: pod(i).update(automountServiceAccountToken=True)),
            ("volume data", lambda i: pod(i)["volumes"][2].update(hostPath={"path": "/data"})),
            ("could read it", lambda i: pod(i)["volumes"][1]["secret"].update(defaultMode=0o444)),
            ("mounted alone", lambda i: container(i)["volumeMounts"].pop(2)),
            ("livenessProbe", lambda i: container(i)["livenessProbe"]["httpGet"].update(path="/readyz")),
            ("readinessProbe", lambda i: container(i)["readinessProbe"]["httpGet"].update(scheme="HTTP")),
            ("it is killed", lambda i: pod(i).update(terminationGracePeriodSeconds=30)),
            ("ports", lambda i: container(i)["ports"][0].update(containerPort=7000)),
            ("sizeLimit", lambda i: flags(i, "20GiB", "40GiB")),
            ("its label is", lambda i: flags(i, "pool: cpu", "pool: gpu")),
            ("no Service", lambda i: flags(i, "leat-coordinator.leat", "leat-coordinator.other")),
            ("headless Service", lambda i: flags(i, "pod-domain: leat-worker", "pod-domain: leat-coordinator")),
            ("it writes to", lambda i: flags(i, "/var/cache/leat/disk", "/tmp/disk")),
            ("replicas", lambda i: first(i, "Deployment", "leat-worker")["spec"].update(replicas=3)),
            ("0 PodDisruptionBudgets", lambda i: i.remove(first(i, "PodDisruptionBudget", "leat-worker"))),
            ("could not be drained", lambda i: first(i, "PodDisruptionBudget")["spec"].update(maxUnavailable=0)),
            ("0 NetworkPolicies", lambda i: i.remove(first(i, "NetworkPolicy", "leat-worker"))),
            ("are let in", lambda i: first(i, "NetworkPolicy", "leat-worker")["spec"]["ingress"].pop()),
            ("everybody", lambda i: first(i, "NetworkPolicy", "leat-worker")["spec"]["ingress"][0].pop("from")),
            ("selects no pod", lambda i: first(i, "Service", "leat-worker")["spec"].update(selector={"a": "b"})),
            ("no such ServiceAccount", lambda i: i.remove(first(i, "ServiceAccount", "leat-worker"))),
            ("every Deployment", lambda i: first(i, "Role")["rules"][0].pop("resourceNames")),
            ("does not let", lambda i: first(i, "Role")["rules"][0]["resourceNames"].remove("leat-worker")),
            ("Role leat-pool", lambda i: first(i, "Role")["rules"][1]["verbs"].append("*")),
            ("no workers of pool", lambda i: container(i, name="leat-pool-cpu")["args"].__setitem__(2, "gpu")),
            ("one scaler", lambda i: i.remove(first(i, "Deployment", "leat-pool-cpu"))),
            ("does not select its own", lambda i: first(i, "StatefulSet")["spec"]["selector"].update(
                matchLabels={"a": "b"})),
        ]
        whole = rendered("cpu")
        for part, break_it in breaks:
            items = copy.deepcopy(whole)
            break_it(items)
            found = policies.check(items)
            self.assertTrue(any(part in each for each in found), f"{part}: {found}")

    def test_certificates_fit_who_shows_them(self):
        items, made = rendered("gpu") + rendered("keda"), certificates()
        shown = {}
        for workload in policies.of_kind(items, *policies.WORKLOADS):
            for volume in policies.pod_spec(workload)["volumes"]:
                if "secret" in volume and volume["name"] == "tls":
                    shown[volume["secret"]["secretName"]] = workload
        for each in policies.of_kind(items, "TriggerAuthentication"):
            shown[each["spec"]["secretTargetRef"][0]["name"]] = None
        self.assertEqual(set(made) - {"leat-ca", "leat-trainer-tls"}, set(shown))
        roles = {}
        for workload in policies.of_kind(items, "StatefulSet"):
            for rule in policies.flags(workload, items)["role-from-san"]:
                pattern, _, role = rule.rpartition("=")
                roles[re.compile(re.escape(pattern).replace(r"\*", "[^/.]*"))] = role

        def role(secret):
            (uri,) = made[secret]["uris"]
            return [name for pattern, name in roles.items() if pattern.fullmatch(uri)]
        self.assertEqual({secret: role(secret) for secret in made if secret != "leat-ca"},
                         {"leat-coordinator-tls": ["operator"], "leat-worker-tls": ["worker"],
                          "leat-pool-tls": ["viewer"], "leat-keda-tls": ["viewer"], "leat-trainer-tls": ["trainer"]})
        for secret, workload in shown.items():
            told = policies.flags(workload, items) if workload else {}
            self.assertEqual("server auth" in made[secret]["usages"], bool(told), secret)
            self.assertIn("client auth", made[secret]["usages"])
            if "pod-domain" in told:
                self.assertIn(f"*.{told['pod-domain']}", made[secret]["dnsNames"])
                self.assertIn(told["coordinator"].partition(":")[0], made["leat-coordinator-tls"]["dnsNames"])
        self.assertIn("localhost", made["leat-coordinator-tls"]["dnsNames"], "for kubectl exec")

    def test_the_overlay_on_the_page_has_its_image(self):
        with tempfile.TemporaryDirectory(prefix="leat-kubernetes-") as folder:
            folder = pathlib.Path(folder)
            (folder / "leat").symlink_to(ROOT)
            (folder / "mine").mkdir()
            shutil.copy(ROOT / "docs/examples/kubernetes/kustomization.yaml", folder / "mine")
            workloads = policies.of_kind(kustomize.render(folder / "mine"), *policies.WORKLOADS)
            self.assertEqual({container["image"] for workload in workloads
                              for container in policies.pod_spec(workload)["containers"]},
                             {"registry.example/leat:0.2.0"})

    def test_the_page_names_what_an_operator_brings(self):
        page, wanted = PAGE.read_text(), set()
        for overlay in OVERLAYS:
            self.assertIn(f"overlays/{overlay}", page)
            for workload in policies.of_kind(rendered(overlay), *policies.WORKLOADS):
                for volume in policies.pod_spec(workload)["volumes"]:
                    wanted |= {volume.get("secret", {}).get("secretName"),
                               volume.get("persistentVolumeClaim", {}).get("claimName")}
        for name in wanted - {None}:
            self.assertIn(name, page)


class Programs(unittest.TestCase):
    """Flags and arguments are those that the programs accept."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-kubernetes-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def make_secrets(self):
        for name in ("tls", "token"):
            (self.folder / name).mkdir()
        done = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=leat", "-addext", "subjectAltName=DNS:leat-coordinator,IP:10.1.2.3", "-keyout",
             self.folder / "tls/tls.key", "-out", self.folder / "tls/tls.crt"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        shutil.copy(self.folder / "tls/tls.crt", self.folder / "tls/ca.crt")
        (self.folder / "token/token").write_text("0123456789abcdef0123456789abcdef\n")

    def check(self, workload, items, change=lambda text: text):
        """Runs the daemon's own check of the workload's flags, with the files of the pod in a folder here."""
        container = policies.pod_spec(workload)["containers"][0]
        file = yaml.safe_dump(policies.flags(workload, items))
        (self.folder / "flags.yaml").write_text(change(file.replace("/etc/leat", str(self.folder))))
        args = [arg.replace("$(POD_NAME)", "leat-worker-7d9f8b6c5-x2x7k").replace("$(POD_IP)", "10.1.2.3")
                for arg in container["args"]]
        args[args.index("--config") + 1] = str(self.folder / "flags.yaml")
        name = container["command"][0].removeprefix("leat-").upper()
        return subprocess.run([program(name), *args, "--check-config"], capture_output=True, text=True, timeout=60,
                              check=False)

    def test_the_daemons_take_their_flags(self):
        self.make_secrets()
        checked = {}
        for overlay in OVERLAYS:
            items = rendered(overlay)
            for workload in policies.of_kind(items, *policies.WORKLOADS):
                if policies.flags(workload, items):
                    done = self.check(workload, items)
                    self.assertEqual(done.returncode, 0, f"{overlay} {policies.name(workload)}: {done.stderr}")
                    checked[workload["metadata"]["name"]] = workload, items
        self.assertEqual(set(checked), {"leat-coordinator", "leat-worker", "leat-worker-gpu"})
        wrong = self.check(*checked["leat-worker"], lambda text: text.replace("drain-timeout-ms", "drain-timeout"))
        self.assertEqual(wrong.returncode, 2, wrong.stdout)

    def test_the_adapter_takes_its_arguments(self):
        found = 0
        for overlay in OVERLAYS:
            for workload in policies.of_kind(rendered(overlay), "Deployment"):
                container = policies.pod_spec(workload)["containers"][0]
                if container["command"] == ["leat"]:
                    found += 1
                    done = subprocess.run(
                        [program("CLI"), *container["args"], "--once", "--server", "http://127.0.0.1:1"],
                        env={"LEAT_COORDINATOR": "127.0.0.1:1"}, capture_output=True, text=True, timeout=60,
                        check=False)
                    # It gets as far as connecting to the coordinator, which does not exist.
                    self.assertEqual(done.returncode, 4, done.stderr)
        self.assertGreater(found, 1)


if __name__ == "__main__":
    unittest.main()
