# SPDX-License-Identifier: Apache-2.0
"""No output of a cluster shows secrets."""

import re
import subprocess
import unittest

import cluster
from cluster import PATIENCE_S, program
from pages import get, http_address


class SecretsTest(cluster.ClusterTest):
    """Secrets in addresses of datasets appear in none of the outputs."""

    # There is no server at port 1, so storage's errors name the addresses for as long as a listing waits.
    ADDRESSES = ("http://user:pa5sword-1@127.0.0.1:1/a.tar", "s3://AK1AKEY2:s3cret-2@photos/b.tar",
                 "http://127.0.0.1:1/c.tar?X-Amz-Credential=cr3dential-3&X-Amz-Signature=51gnature-4")
    SECRETS = re.compile("pa5sword-1|s3cret-2|cr3dential-3|51gnature-4")

    def test_no_page_metric_log_or_command_shows_one(self):
        environment = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "k",
                       "AWS_SECRET_ACCESS_KEY": "s3cret-2", "AWS_REGION": "us-east-1"}
        self.start_coordinator("--http", "127.0.0.1:0", "--log-level", "debug", "--log-format", "json")
        self.start_worker("--http", "0", "--log-level", "debug", env=environment)
        addresses = [http_address(self.coordinator), http_address(self.workers[0])]
        specs = []
        for number, address in enumerate(self.ADDRESSES):
            reader = cluster.node("readers.webdataset", **{
                name: {"strings_value": {"values": [value]}}
                for name, value in (("paths", address), ("ext", "cls"), ("types", "int64"))})
            graph = {"nodes": [reader], "outputs": [{"name": "label", "ref": {"node": 0}}]}
            specs.append(self.spec(graph, name=f"job{number}"))
        consumers = [self.consumer(spec, "--timeout-s", 3) for spec in specs]
        seen = {f"consumer {number}": consumer.finish().error for number, consumer in enumerate(consumers)}
        for address in addresses:
            for path in ("/", "/metrics", "/api/state"):
                seen[f"{address}{path}"] = get(address, path)[1]
        for words in (["status"], ["events"], ["get", "datasets", "-o", "json"], ["get", "jobs", "-o", "json"],
                      ["health", "-o", "json"], ["doctor"]):
            done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, *words],
                                  capture_output=True, text=True, timeout=PATIENCE_S)
            seen[" ".join(words)] = done.stdout + done.stderr
        for log in self.folder.glob("*.log"):
            seen[log.name] = log.read_text()
        for what, text in seen.items():
            self.assertNotRegex(str(text), self.SECRETS, what)
        # The addresses themselves appear, so these are the texts that could have shown the secrets.
        everything = "\n".join(map(str, seen.values()))
        for part in ("127.0.0.1:1/a.tar", "photos/b.tar", "127.0.0.1:1/c.tar"):
            self.assertIn(part, everything)

if __name__ == "__main__":
    unittest.main()
