# SPDX-License-Identifier: Apache-2.0
"""Ports for servers whose ports are chosen before they start."""

import pathlib
import random
import socket

_RANGE = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range")
_held = []  # sockets that reserve their ports while this process lives


def free_ports(count):
    """Returns unused ports, each for one server. The system assigns them to no socket that binds to any port, and
    `free_ports` of other processes does not return them while this process lives."""
    first, last = map(int, _RANGE.read_text().split())
    candidates = [port for port in range(10_000, 65_000) if not first <= port <= last]
    random.SystemRandom().shuffle(candidates)
    found = []
    while len(found) < count:
        port = candidates.pop()
        claim = socket.socket(socket.AF_UNIX)
        try:
            claim.bind(f"\0leat-test-port-{port}")
            with socket.socket() as probe:
                probe.bind(("0.0.0.0", port))
        except OSError:
            claim.close()
            continue
        _held.append(claim)
        found.append(port)
    return found


def free_port():
    return free_ports(1)[0]
