# SPDX-License-Identifier: Apache-2.0
"""The credentials that a service demands of its callers: from arguments of `connect`, or from the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from leat._graphs.options import file_text
from leat.errors import InvalidArgument

Path = str | os.PathLike[str] | None


def variable(name: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns a variable's value; None: it is not set. Empty is an error: it was meant to be set, as by "$(cat
    FILE)"."""
    value = environ.get(name)
    if value is not None and not value.strip():
        raise InvalidArgument(f"{name} is set and empty; expected a value, or that it is not set")
    return value


def access_token(
    token: str | None, path: Path, environ: Mapping[str, str] = os.environ
) -> tuple[str | None, str | None]:
    """Returns the access token itself, that of a file, or the environment's, and the file that it is of; None: there is
    none. The path is absolute, since the file is read again while the script runs."""
    if token is not None and path is not None:
        raise InvalidArgument("expected one of access_token and access_token_file")
    if token is not None:
        if not isinstance(token, str):
            raise InvalidArgument(f"access_token is {type(token).__name__}; expected a text")
        return _checked("access_token", token) if token.strip() else token, None
    name = "access_token_file"
    if path is None:
        token = variable("LEAT_ACCESS_TOKEN", environ)
        if token is not None:
            return _checked("LEAT_ACCESS_TOKEN", token), None
        name, path = "LEAT_ACCESS_TOKEN_FILE", variable("LEAT_ACCESS_TOKEN_FILE", environ)
    text = file_text(name, path)
    if text is None or path is None:
        return None, None
    return _checked(f"{name} = {os.fspath(path)!r}", text), os.path.abspath(path)


def _checked(what: str, text: str) -> str:
    """Returns the token without surrounding spaces and line ends; `what` names its origin. No error shows the token."""
    token = text.strip(" \t\n\v\f\r")  # as core/cluster/roles.h
    if not token:
        raise InvalidArgument(f'{what} has no access token in it; expected the line that "leat access create" printed')
    if not all("!" <= letter <= "~" for letter in token):
        raise InvalidArgument(
            f"{what} is no access token: some of its {len(token)} characters are spaces, line ends or beyond "
            'ASCII; expected the line that "leat access create" printed'
        )
    return token


# Where Debian, Fedora, SUSE and Alpine keep the authorities that a machine trusts.
SYSTEM_ROOTS = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def pem(name: str, path: Path, environ: Mapping[str, str] = os.environ) -> str | None:
    """Returns the file's text, or that of the environment's file; None: there is none. `name`: "ca", "cert" or
    "key"."""
    if path is None:
        name = f"LEAT_TLS_{name.upper()}"
        path = variable(name, environ)
    if isinstance(path, str) and path == "system" and name in ("ca", "LEAT_TLS_CA"):
        path = _system_roots(name)
    return file_text(name, path)


def _system_roots(name: str) -> str:
    """Returns the path of the file that SSL_CERT_FILE names, or of the system's file."""
    for path in (os.environ.get("SSL_CERT_FILE"), *SYSTEM_ROOTS):
        if path and (path not in SYSTEM_ROOTS or os.path.isfile(path)):
            return path
    raise InvalidArgument(
        f'{name} is "system", but this machine has no file of the authorities that it trusts; '
        "expected ca-certificates to be installed, or SSL_CERT_FILE to name one"
    )


def refuse(**given: Any) -> None:
    """Raises InvalidArgument if any argument is given: a private service uses none of them."""
    for name, value in given.items():
        if value is not None:
            raise InvalidArgument(
                f"{name} is given, but no address: a private service has an access token of its own and no TLS; "
                "expected an address, or LEAT_COORDINATOR"
            )
