# SPDX-License-Identifier: Apache-2.0
"""A small API server with one Deployment, which answers an adapter as the real one does, and refuses everything else.

Its controllers run in set_replicas and sync: the cheapest pods end (pod-deletion-cost), and new ones begin. `on_start`
and `on_end` are called for each. Faults are put into `faults`, one for each of the next requests: "503", "cut", "html",
"slow".
"""

import http.server
import json
import ssl
import threading
import time
import urllib.parse

COST = "controller.kubernetes.io/pod-deletion-cost"
LABELS = "app.kubernetes.io/name=leat-worker,leat-pool=cpu"
MERGE, JSON = "application/merge-patch+json", "application/json"


class Refused(Exception):
    def __init__(self, code, reason, message):
        super().__init__(message)
        self.code, self.body = code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
                                      "message": message, "code": code}


def want(condition, message):
    if not condition:
        raise Refused(400, "BadRequest", message)


class ApiServer:
    def __init__(self, namespace="leat", deployment="leat-worker", token=None, certificate=None, on_start=None,
                 on_end=None):
        self.namespace, self.deployment, self.token = namespace, deployment, token
        self.on_start, self.on_end = on_start or (lambda name: None), on_end or (lambda name: None)
        self.lock = threading.RLock()
        self.pods, self.replicas, self.version, self.made = {}, 0, 1, 0
        self.allowed = {("get", "deployments/scale"), ("patch", "deployments/scale"), ("list", "pods"),
                        ("patch", "pods"), ("create", "pods/eviction")}
        self.requests, self.faults, self.conflicts = [], [], 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = 30

            def answer(self):
                owner.serve(self)

            do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        scheme = "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            scheme = "https"
        self.url = f"{scheme}://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    # The part of kubectl and the controllers.

    def live(self):
        with self.lock:
            return sorted(name for name, pod in self.pods.items() if not pod["ends"])

    def set_replicas(self, replicas):
        with self.lock:
            self.replicas = replicas
            self.version += 1
            self.sync()

    def sync(self):
        with self.lock:
            by_cost = sorted(self.live(), key=lambda name: (int(self.pods[name]["annotations"].get(COST, 0)), name))
            for name in by_cost[:max(0, len(by_cost) - self.replicas)]:
                self.end(name)
            while len(self.live()) < self.replicas:
                self.made += 1
                name = f"{self.deployment}-5d9c7f-{self.made:05}"
                self.pods[name] = {"uid": f"uid-{self.made}", "annotations": {}, "ends": False}
                self.on_start(name)

    def end(self, name):
        self.pods[name]["ends"] = True
        self.on_end(name)

    def gone(self, name):
        """Records that the pod has ended."""
        with self.lock:
            del self.pods[name]

    # Requests.

    def serve(self, handler):
        length = int(handler.headers.get("Content-Length", 0))
        body = handler.rfile.read(length) if length else b""
        with self.lock:
            fault = self.faults.pop(0) if self.faults else None
        if fault == "cut":
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b'{"kind":')
            handler.close_connection = True
            return
        if fault == "slow":
            time.sleep(1)
        try:
            if fault == "503":
                raise Refused(503, "ServiceUnavailable", "the server is currently unable to handle the request")
            with self.lock:
                code, answer = self.route(handler, body)
        except Refused as refused:
            code, answer = refused.code, refused.body
        text = b"<html>login</html>" if fault == "html" else json.dumps(answer).encode()
        handler.send_response(code)
        handler.send_header("Content-Type", "text/html" if fault == "html" else "application/json")
        handler.send_header("Content-Length", str(len(text)))
        if code in (429, 503):
            handler.send_header("Retry-After", "1")
        handler.end_headers()
        handler.wfile.write(text)

    def route(self, handler, body):
        url = urllib.parse.urlsplit(handler.path)
        path = [urllib.parse.unquote(part) for part in url.path.split("/")[1:]]
        self.requests.append(f"{handler.command} {url.path}")
        if self.token and handler.headers.get("Authorization") != f"Bearer {self.token}":
            raise Refused(401, "Unauthorized", "Unauthorized")
        kind = handler.headers.get("Content-Type")
        if path[:5] == ["apis", "apps", "v1", "namespaces", self.namespace] and path[5] == "deployments":
            return self.scale(handler.command, path[6:], kind, body)
        if path[:4] == ["api", "v1", "namespaces", self.namespace] and path[4] == "pods":
            if len(path) == 5:
                return self.list(handler, urllib.parse.parse_qs(url.query, strict_parsing=True))
            return self.pod(handler.command, path[5:], kind, body)
        raise Refused(404, "NotFound", f"the server could not find {url.path}")

    def may(self, verb, resource, name=""):
        if (verb, resource) not in self.allowed:
            raise Refused(403, "Forbidden", f'{resource} "{name}" is forbidden: User "system:serviceaccount:leat:pool" '
                          f'cannot {verb} resource "{resource}" in the namespace "{self.namespace}"')

    def scale(self, method, path, kind, body):
        want(len(path) == 2 and path[1] == "scale" and method in ("GET", "PATCH"), f"{method} {path}")
        self.may({"GET": "get", "PATCH": "patch"}[method], "deployments/scale", path[0])
        if path[0] != self.deployment:
            raise Refused(404, "NotFound", f'deployments.apps "{path[0]}" not found')
        if method == "PATCH":
            want(kind == MERGE, f"Content-Type {kind}")
            patch = json.loads(body)
            want(set(patch) == {"metadata", "spec"} and set(patch["metadata"]) == {"resourceVersion"}
                 and set(patch["spec"]) == {"replicas"}, f"strict decoding: {patch}")
            want(isinstance(patch["spec"]["replicas"], int) and isinstance(patch["metadata"]["resourceVersion"], str),
                 f"types of {patch}")
            if self.conflicts > 0:
                self.conflicts -= 1
                self.version += 1
            if patch["metadata"]["resourceVersion"] != str(self.version):
                raise Refused(409, "Conflict", "the object has been modified; please apply your changes to the latest "
                              "version and try again")
            self.set_replicas(patch["spec"]["replicas"])
        spec = {"replicas": self.replicas} if self.replicas else {}
        return 200, {"kind": "Scale", "apiVersion": "autoscaling/v1", "spec": spec,
                     "metadata": {"name": self.deployment, "namespace": self.namespace,
                                  "resourceVersion": str(self.version)},
                     "status": {"replicas": len(self.live()), "selector": LABELS}}

    def list(self, handler, query):
        self.may("list", "pods")
        want(handler.command == "GET" and "as=PartialObjectMetadataList" in handler.headers["Accept"], "the list")
        want(query["labelSelector"] == [LABELS] and int(query["limit"][0]) > 0, f"{query}")
        names = sorted(self.pods)
        first = int(query.get("continue", ["0"])[0])
        last = first + min(2, int(query["limit"][0]))  # fewer than requested, as a server may return
        items = []
        for name in names[first:last]:
            pod = self.pods[name]
            metadata = {"name": name, "namespace": self.namespace, "uid": pod["uid"]}
            if pod["annotations"]:
                metadata["annotations"] = pod["annotations"]
            if pod["ends"]:
                metadata["deletionTimestamp"] = "2026-11-25T00:00:00Z"
            items.append({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
        metadata = {"resourceVersion": str(self.version)}
        if last < len(names):
            metadata["continue"] = str(last)
        return 200, {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata,
                     "items": items}

    def pod(self, method, path, kind, body):
        name, content = path[0], json.loads(body)
        if path[1:] == ["eviction"]:
            self.may("create", "pods/eviction", name)
            want(method == "POST" and kind == JSON, f"{method} {kind}")
            want((content["apiVersion"], content["kind"]) == ("policy/v1", "Eviction")
                 and content["metadata"]["name"] == name, f"{content}")
            uid = content["deleteOptions"]["preconditions"]["uid"]
        else:
            self.may("patch", "pods", name)
            want(method == "PATCH" and kind == MERGE and len(path) == 1, f"{method} {kind} {path}")
            want(set(content) == {"metadata"} and set(content["metadata"]) == {"uid", "annotations"}
                 and set(content["metadata"]["annotations"]) == {COST}, f"strict decoding: {content}")
            uid = content["metadata"]["uid"]
        if name not in self.pods:
            raise Refused(404, "NotFound", f'pods "{name}" not found')
        if uid != self.pods[name]["uid"]:
            raise Refused(409, "Conflict", f"Precondition failed: UID in precondition: {uid}")
        if path[1:]:
            self.end(name)
            self.sync()
            return 201, {"kind": "Status", "status": "Success"}
        cost = content["metadata"]["annotations"][COST]
        if cost is None:
            self.pods[name]["annotations"].pop(COST, None)
        else:
            want(isinstance(cost, str) and str(int(cost)) == cost, f"cost {cost}")
            self.pods[name]["annotations"][COST] = cost
        return 200, {"kind": "Pod"}
