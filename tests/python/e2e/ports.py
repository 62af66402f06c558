# SPDX-License-Identifier: Apache-2.0
"""Ports for the servers that tests start."""

import socket


def free_port():
    """A port that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
