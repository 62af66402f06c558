# SPDX-License-Identifier: Apache-2.0
"""Rules for the rendered deploy/kubernetes. check(ITEMS) returns findings, none if all is well."""

import yaml

from kustomize import pod_spec

WORKLOADS = {"Deployment", "StatefulSet"}
DAEMONS = {"leat-coordinator", "leat-worker"}
END_S = 3  # the time a daemon takes to end after its drain
DRAIN_MS = {"leat-coordinator": 2000, "leat-worker": 20_000}  # the default, if its file has no value
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


def size(text):
    unit = next(unit for unit in UNITS if str(text).endswith(unit))
    return int(str(text)[:-len(unit)]) * UNITS[unit]


def of_kind(items, *kinds):
    return [item for item in items if item["kind"] in kinds]


def name(item):
    return f"{item['kind']} {item['metadata']['name']}"


def labels(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def selects(selector, workload):
    """True if a label selector with matchLabels, or a Service's selector, matches the workload's pods."""
    wanted = selector.get("matchLabels", selector)
    return all(labels(workload).get(key) == value for key, value in wanted.items())


def flags(workload, items):
    """Returns the flags that a workload's ConfigMap passes to its daemon: a map; {} for other programs."""
    pod = pod_spec(workload)
    container = pod["containers"][0]
    if container["command"][0] not in DAEMONS:
        return {}
    path = container["args"][container["args"].index("--config") + 1]
    mount = next(m for m in container["volumeMounts"] if m["mountPath"] == path)
    volume = next(v for v in pod["volumes"] if v["name"] == mount["name"])
    found = next(i for i in of_kind(items, "ConfigMap") if i["metadata"]["name"] == volume["configMap"]["name"])
    return yaml.safe_load(found["data"][mount["subPath"]])


def check_pod(workload):
    """Checks the rules of the Pod Security Standard "restricted", and some of our own."""
    pod, where = pod_spec(workload), name(workload)
    context = pod.get("securityContext", {})
    for field in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace"):
        if pod.get(field):
            yield f"{where}: {field}"
    if context.get("runAsNonRoot") is not True or context.get("runAsUser", 0) < 1000:
        yield f"{where}: want runAsNonRoot, and a runAsUser that is no system's"
    if context.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        yield f"{where}: want seccompProfile RuntimeDefault"
    if pod.get("automountServiceAccountToken") is not (pod["serviceAccountName"] == "leat-pool"):
        yield f"{where}: only the adapter has a token of the API server"
    for volume in pod.get("volumes", []):
        kinds = set(volume) - {"name"}
        if not kinds <= {"configMap", "secret", "emptyDir", "persistentVolumeClaim"}:
            yield f"{where}: volume {volume['name']}: {kinds}"
        if "secret" in volume and volume["secret"].get("defaultMode", 0o644) & 0o007:
            yield f"{where}: volume {volume['name']}: everybody in the container could read it"
    declared = {volume["name"] for volume in pod.get("volumes", [])}
    declared |= {claim["metadata"]["name"] for claim in workload["spec"].get("volumeClaimTemplates", [])}
    for container in pod["containers"]:
        yield from check_container(container, f"{where}: {container['name']}")
        used = {mount["name"] for mount in container.get("volumeMounts", [])}
        if used != declared:
            yield f"{where}: volumes {used ^ declared} are declared or mounted alone"


def check_container(container, where):
    context = container.get("securityContext", {})
    tag = container["image"].rpartition("/")[2].partition(":")[2]
    if tag in ("", "latest"):
        yield f"{where}: image {container['image']}: want a version"
    if context.get("allowPrivilegeEscalation") is not False or context.get("privileged"):
        yield f"{where}: privileges"
    if context.get("readOnlyRootFilesystem") is not True:
        yield f"{where}: want readOnlyRootFilesystem"
    if context.get("capabilities") != {"drop": ["ALL"]}:
        yield f"{where}: want no capability"
    for kind in ("requests", "limits"):
        if not {"cpu", "memory"} <= set(container.get("resources", {}).get(kind, {})):
            yield f"{where}: want {kind} of cpu and memory"


def check_daemon(workload, items):
    told, where = flags(workload, items), name(workload)
    if not told:
        return
    pod = pod_spec(workload)
    container = pod["containers"][0]
    program = container["command"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    said = {"grpc": int(told["listen"].rpartition(":")[2]), "http": int(told["http"].rpartition(":")[2])}
    if ports != said:
        yield f"{where}: ports {ports}, but it listens on {said}"
    scheme = "HTTPS" if "tls-cert" in told else "HTTP"
    for probe, page in (("startupProbe", "/livez"), ("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        get = container.get(probe, {}).get("httpGet")
        if get != {"path": page, "port": "http", "scheme": scheme}:
            yield f"{where}: {probe}: {get}, want {scheme} {page}"
    drain = told.get("drain-timeout-ms", DRAIN_MS[program]) / 1000
    if pod["terminationGracePeriodSeconds"] < drain + END_S:
        yield f"{where}: it is killed after {pod['terminationGracePeriodSeconds']} s, and drains for {drain} s"
    # A volume belongs to root, but a disk cache must belong to its worker: it is a folder in the volume.
    paths = [told["state"]] if "state" in told else []
    paths += [told["disk-cache"].rpartition("/")[0]] if "disk-cache" in told else []
    mounts = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    if set(paths) != mounts:
        yield f"{where}: it writes to {paths}, and may write to {mounts}"
    for volume in pod["volumes"]:
        limit = volume.get("emptyDir", {}).get("sizeLimit")
        if "emptyDir" in volume and (limit is None or size(limit) <= size(told["disk-cache-bytes"])):
            yield f"{where}: volume {volume['name']}: want a sizeLimit above disk-cache-bytes"
        elif limit and size(limit) > size(container["resources"]["limits"]["ephemeral-storage"]):
            yield f"{where}: volume {volume['name']} may be larger than the limit of ephemeral-storage"
    if program == "leat-worker":
        yield from check_worker(workload, told, items)


def check_worker(workload, told, items):
    where, container = name(workload), pod_spec(workload)["containers"][0]
    hosts = {f"{each['metadata']['name']}.{each['metadata']['namespace']}.svc.cluster.local": each
             for each in of_kind(items, "Service")}
    host, _, port = told["coordinator"].partition(":")
    ports = [each["port"] for each in hosts[host]["spec"]["ports"]] if host in hosts else []
    if int(port) not in ports:
        yield f"{where}: coordinator {told['coordinator']}: no Service"
    domain = told.get("pod-domain")
    if domain is not None and not (domain in hosts and hosts[domain]["spec"]["clusterIP"] == "None"
                                   and selects(hosts[domain]["spec"]["selector"], workload)):
        yield f"{where}: pod-domain {domain}: no headless Service of its pods"
    if ("tls-cert" in told) != (domain is not None):
        yield f"{where}: a certificate is good for names, so TLS and pod-domain go together"
    if told["pool"] != labels(workload)["leat-pool"]:
        yield f"{where}: pool {told['pool']}, but its label is {labels(workload)['leat-pool']}"
    wanted = ["--name", "$(POD_NAME)", "--advertise", f"$(POD_IP):{told['listen'].rpartition(':')[2]}"]
    if container["args"][2:] != wanted:
        yield f"{where}: args {container['args']}"
    if "replicas" in workload["spec"]:
        yield f"{where}: replicas: applying the manifest would undo what scales it"


def check_services(items):
    for service in of_kind(items, "Service"):
        taken = [each for each in of_kind(items, *WORKLOADS) if selects(service["spec"]["selector"], each)]
        if not taken:
            yield f"{name(service)}: selects no pod"
        for workload in taken:
            ports = {port["name"]: port["containerPort"] for port in pod_spec(workload)["containers"][0]["ports"]}
            for port in service["spec"]["ports"]:
                if ports.get(port["targetPort"]) != port["port"]:
                    yield f"{name(service)}: port {port['port']} is not that of {name(workload)}"


def check_disruption(items):
    for workload in of_kind(items, *WORKLOADS):
        budgets = [each for each in of_kind(items, "PodDisruptionBudget")
                   if selects(each["spec"]["selector"], workload)]
        if len(budgets) != (labels(workload)["app.kubernetes.io/name"] in DAEMONS):
            yield f"{name(workload)}: {len(budgets)} PodDisruptionBudgets"
    for budget in of_kind(items, "PodDisruptionBudget"):
        if budget["spec"].get("maxUnavailable") in (0, "0%", None):
            yield f"{name(budget)}: a node could not be drained"
        if not any(selects(budget["spec"]["selector"], each) for each in of_kind(items, *WORKLOADS)):
            yield f"{name(budget)}: selects no pod"


def check_network(items):
    policies = of_kind(items, "NetworkPolicy")
    for workload in of_kind(items, *WORKLOADS):
        own = [each for each in policies if selects(each["spec"]["podSelector"], workload)]
        if len(own) != 1 or set(own[0]["spec"]["policyTypes"]) != {"Ingress", "Egress"}:
            yield f"{name(workload)}: {len(own)} NetworkPolicies, want one of both directions"
            continue
        opened = {port["port"] for rule in own[0]["spec"]["ingress"] for port in rule["ports"]}
        served = {port["containerPort"] for port in pod_spec(workload)["containers"][0].get("ports", [])}
        if opened != served:
            yield f"{name(workload)}: ports {served}, and {opened} are let in"
        for rule in own[0]["spec"]["ingress"]:
            if not rule.get("from"):
                yield f"{name(workload)}: everybody is let in"
    for policy in policies:
        if not any(selects(policy["spec"]["podSelector"], each) for each in of_kind(items, *WORKLOADS)):
            yield f"{name(policy)}: selects no pod"


def check_accounts(items):
    there = {each["metadata"]["name"] for each in of_kind(items, "ServiceAccount")}
    for workload in of_kind(items, *WORKLOADS):
        if pod_spec(workload)["serviceAccountName"] not in there:
            yield f"{name(workload)}: no such ServiceAccount"
    for role in of_kind(items, "Role", "ClusterRole"):
        for rule in role["rules"]:
            if "*" in rule["verbs"] + rule["resources"] + rule["apiGroups"] or "secrets" in rule["resources"]:
                yield f"{name(role)}: {rule}"
            if rule["resources"] == ["deployments/scale"] and not rule.get("resourceNames"):
                yield f"{name(role)}: every Deployment may be scaled"
    for binding in of_kind(items, "RoleBinding"):
        if binding["roleRef"]["name"] not in {each["metadata"]["name"] for each in of_kind(items, "Role")}:
            yield f"{name(binding)}: no such Role"
        for subject in binding["subjects"]:
            if subject["name"] not in there or subject["namespace"] != binding["metadata"]["namespace"]:
                yield f"{name(binding)}: no such account"


def scaled(items):
    """Yields triples (scaler, pool, Deployment)."""
    for workload in of_kind(items, "Deployment"):
        args = pod_spec(workload)["containers"][0]["args"]
        if args[:2] == ["pool", "run"]:
            yield name(workload), args[2], args[args.index("--kubernetes") + 1].removeprefix("deployment/")
    for each in of_kind(items, "ScaledObject"):
        yield name(each), each["spec"]["triggers"][0]["metadata"]["pool"], each["spec"]["scaleTargetRef"]["name"]
    for each in of_kind(items, "HorizontalPodAutoscaler"):
        metric = each["spec"]["metrics"][0]["external"]["metric"]
        yield name(each), metric["selector"]["matchLabels"]["pool"], each["spec"]["scaleTargetRef"]["name"]


def check_scalers(items):
    workers = {each["metadata"]["name"]: each for each in of_kind(items, "Deployment")
               if labels(each)["app.kubernetes.io/name"] == "leat-worker"}
    found = list(scaled(items))
    for who, pool, deployment in found:
        if deployment not in workers or flags(workers[deployment], items)["pool"] != pool:
            yield f"{who}: Deployment {deployment} has no workers of pool {pool}"
    if sorted(each[2] for each in found) != sorted(workers):
        yield f"each Deployment of workers has one scaler: {found}"
    for role in of_kind(items, "Role"):
        for rule in role["rules"]:
            if rule["resources"] == ["deployments/scale"]:
                for who, _, deployment in found:
                    if deployment not in rule.get("resourceNames", [deployment]):
                        yield f"{name(role)}: does not let {who} scale {deployment}"


def check(items):
    findings = []
    for workload in of_kind(items, *WORKLOADS):
        findings += check_pod(workload)
        findings += check_daemon(workload, items)
        if not selects(workload["spec"]["selector"], workload):
            findings.append(f"{name(workload)}: does not select its own pods")
    for rules in (check_services, check_disruption, check_network, check_accounts, check_scalers):
        findings += rules(items)
    return findings
