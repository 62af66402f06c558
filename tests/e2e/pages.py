# SPDX-License-Identifier: Apache-2.0
"""The daemons' pages over HTTP, for tests that ask for them."""

import http.client
import pathlib
import re

import cluster
from cluster import PATIENCE_S


def http_address(daemon):
    """Returns the address of its pages, which it has logged before it became ready."""
    return re.search(r"http\.serving address=(\S+)", pathlib.Path(daemon.log).read_text())[1]


def get(address, path, token=None, host=None, tls=None):
    """Returns status and text. `tls`: an SSLContext."""
    connection = (http.client.HTTPSConnection(address, timeout=PATIENCE_S, context=tls) if tls else
                  http.client.HTTPConnection(address, timeout=PATIENCE_S))
    headers = {"Host": host or address}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


class Pages(cluster.ClusterTest):
    """A coordinator and a worker with pages."""

    def start(self):
        self.start_coordinator("--http", "127.0.0.1:0")
        self.start_worker("--http", "0")
        return [http_address(self.coordinator), http_address(self.workers[0])]
