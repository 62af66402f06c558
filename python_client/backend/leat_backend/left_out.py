# SPDX-License-Identifier: Apache-2.0
"""Libraries that Leat's packages leave out, and the stand-ins for them.

A distribution's libcurl supports LDAP, RTMP, SSH and Kerberos, its libtiff knows JBIG. Leat uses curl only for HTTP and
HTTPS, and refuses TIFF files with compressions that are not in its list (worker/image/codecs/tiff.cc), so none of those
libraries is ever called; but the loader needs them. Some are under the GPL or LGPL, and together they are two thirds of
curl's dependencies. Each is replaced by a stand-in: a library of a few kB with the symbols that are needed. Functions
that curl calls when it starts or stops return a value; any other function prints its name and ends the process.
"""

from __future__ import annotations

import collections
import pathlib
import re
import tempfile

from leat_backend import elf
from leat_backend.errors import BuildError

# Matches the part of a library's name after "lib" and before the version.
_NAMES = re.compile(
    r"^lib(jbig|ldap(_r)?|lber|rtmp|ssh2?|gssapi(_krb5)?|krb5(support)?|k5crypto|com_err|sasl2|gnutls|idn2?|unistring"
    r"|psl|nettle|hogweed|gmp|p11-kit|tasn1|keyutils|readline|gdbm)(-[\d.]+)?\.so(\.|$)")
# Functions that are called although their protocol or compression is not used, and their results as C expressions.
_ANSWERS = {
    "libssh2_init": "0", "libssh2_exit": "0", "ssh_init": "0", "ssh_finalize": "0",
    "idn2_check_version": "0",  # no names beyond ASCII: the resolver refuses them
    "psl_free": "0", "psl_builtin": "0", "psl_latest": "0", "psl_is_cookie_domain_acceptable": "0",
    "ldap_get_option": "-1",  # curl_version(), for the name of the library
    "jbg_dec_init": "0", "jbg_dec_free": "0", "jbg_dec_in": "64", "jbg_newlen": "64",
    "jbg_strerror": '(long)"JBIG is left out of this build"',
}


def is_left_out(name: str) -> bool:
    return bool(_NAMES.match(name))


def stand_in_of(name: str) -> str:
    """Returns the stand-in's name: libldap-2.5.so.0 -> leat-no-ldap.so."""
    match = _NAMES.match(name)
    assert match, name
    return f"leat-no-{match[1]}.so"


def _source(library: str, symbols: list[elf.Symbol]) -> str:
    lines = ["#include <stdio.h>", "#include <stdlib.h>",
             "static long missing(const char* name) {",
             f'  fprintf(stderr, "leat: %s of {library} was called, which is left out of this build\\n", name);',
             "  abort();", "}"]
    for symbol in symbols:
        if symbol.bytes:
            lines.append(f"char {symbol.name}[{symbol.bytes}] __attribute__((aligned(16)));")
        else:
            answer = _ANSWERS.get(symbol.name, f'missing("{symbol.name}")')
            lines.append(f"long {symbol.name}(void) {{ return {answer}; }}")
    return "\n".join([*lines, ""])


def make(library: pathlib.Path, users: list[pathlib.Path], out: pathlib.Path) -> None:
    """Writes the stand-in for `library` to `out`, with the symbols that the files `users` need."""
    asked = {name for user in users for name, _ in elf.undefined(user)}
    symbols = sorted((s for s in elf.defined(library).values() if s.name in asked), key=lambda s: s.name)
    versions = collections.defaultdict(list)
    for symbol in symbols:
        if symbol.version:
            versions[symbol.version].append(symbol.name)
    with tempfile.TemporaryDirectory(prefix="leat-stand-in-") as folder:
        source, script = pathlib.Path(folder, "stand_in.c"), pathlib.Path(folder, "stand_in.map")
        source.write_text(_source(library.name, symbols))
        script.write_text("".join(f"{version} {{ global: {'; '.join(names)}; }};\n"
                                  for version, names in sorted(versions.items())))
        flags = [f"-Wl,--version-script={script}"] if versions else []
        elf.run("cc", "-shared", "-fPIC", "-O1", "-fno-builtin", "-w", "-s", f"-Wl,-soname,{out.name}",
                "-Wl,--build-id=none", *flags, "-o", out, source)


def check(files: list[pathlib.Path]) -> None:
    """Raises if one of the files is such a library, or needs one."""
    for file in files:
        wrong = [name for name in (file.name.removeprefix("leat-"), *elf.needs(file).libraries)
                 if is_left_out(name.removeprefix("leat-"))]
        if wrong:
            raise BuildError(f"{file.name}: {wrong[0]} may not be in a package of Leat (leat_backend/left_out.py)")
