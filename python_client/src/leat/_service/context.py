# SPDX-License-Identifier: Apache-2.0
"""The context that LEAT_CONTEXT names, which the command `leat` writes and reads."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping

from leat._library import native
from leat.errors import InvalidArgument

_PATIENCE_S = 10.0


# The environment variable of each value of a context.
_VARIABLES = {
    "coordinator": "LEAT_COORDINATOR",
    "access_token_file": "LEAT_ACCESS_TOKEN_FILE",
    "tls_ca": "LEAT_TLS_CA",
    "tls_cert": "LEAT_TLS_CERT",
    "tls_key": "LEAT_TLS_KEY",
}


def environment() -> Mapping[str, str]:
    """Returns the variables that locate a service and hold its credentials. If LEAT_CONTEXT names a context, they come
    from it alone, so that no service is shown the token of another one; otherwise they are the process's own.

    Raises:
        leat.InvalidArgument: there is no such context, or its file is refused; the text says why.
    """
    name = os.environ.get("LEAT_CONTEXT")
    if not name:
        return os.environ
    command = [str(native.folder / "leat"), "context", "show", name, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    if done.returncode != 0:
        reason = (done.stderr.splitlines() or [f"exit {done.returncode}"])[0].removeprefix("leat: context: ")
        raise InvalidArgument(f"LEAT_CONTEXT = {name!r}: {reason}")
    resolved = json.loads(done.stdout)["resolved"]
    return {variable: resolved[key] for key, variable in _VARIABLES.items() if resolved[key]}
