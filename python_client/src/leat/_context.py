# SPDX-License-Identifier: Apache-2.0
"""The context that LEAT_CONTEXT names, which the command `leat` keeps and reads."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping

from leat import _native
from leat.errors import InvalidArgument

_PATIENCE_S = 10.0


# Where the values of a context stand in the environment.
_VARIABLES = {
    "coordinator": "LEAT_COORDINATOR",
    "access_token_file": "LEAT_ACCESS_TOKEN_FILE",
    "tls_ca": "LEAT_TLS_CA",
    "tls_cert": "LEAT_TLS_CERT",
    "tls_key": "LEAT_TLS_KEY",
}


def environment() -> Mapping[str, str]:
    """The variables that say where a service is and what it asks for: those that the context says alone, so that no
    service is shown the token of another one; the process's own, if it names no context.

    Raises:
        leat.InvalidArgument: there is no such context, or the file that has it is refused; the text says why.
    """
    name = os.environ.get("LEAT_CONTEXT")
    if not name:
        return os.environ
    command = [str(_native.folder / "leat"), "context", "show", name, "-o", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    if done.returncode != 0:
        reason = (done.stderr.splitlines() or [f"exit {done.returncode}"])[0].removeprefix("leat: context: ")
        raise InvalidArgument(f"LEAT_CONTEXT = {name!r}: {reason}")
    resolved = json.loads(done.stdout)["resolved"]
    return {variable: resolved[key] for key, variable in _VARIABLES.items() if resolved[key]}
