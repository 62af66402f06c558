# SPDX-License-Identifier: Apache-2.0
"""Connections whose handshake fails: the error reports it, without gRPC's own log lines."""

import contextlib
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import threading

import pytest

SCRIPT = """
import sys, leat
try:
    leat.connect(sys.argv[1], ca=sys.argv[2], timeout=0.5)
except leat.Unavailable as error:
    print(error)
"""


@pytest.fixture(scope="module")
def stranger(tmp_path_factory):
    """Returns the address of a server whose certificate is not that of the file."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl program here to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    for name in ("own", "other"):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{name}.key", "-out",
             f"{name}.pem"],
            cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "own.pem", folder / "own.key")
    context.set_alpn_protocols(["h2"])
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                connection, _ = listener.accept()
                with connection, contextlib.suppress(OSError):
                    context.wrap_socket(connection, server_side=True).close()

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}", folder / "other.pem"
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()


def connecting(stranger, **variables):
    done = subprocess.run([sys.executable, "-c", SCRIPT, *map(str, stranger)], capture_output=True, text=True,
                          timeout=60, env={**os.environ, **variables})
    assert done.returncode == 0, done.stderr
    assert "shows a certificate that no authority which is trusted here vouches for" in done.stdout
    return done.stderr


def test_an_error_says_what_is_wrong_with_tls_and_grpc_nothing(stranger):
    assert connecting(stranger) == ""


def test_who_asks_grpc_for_more_has_its_own_lines(stranger):
    assert re.search(r"^E\d{4} .*Handshake failed", connecting(stranger, GRPC_VERBOSITY="ERROR"), re.M)
