# SPDX-License-Identifier: Apache-2.0
"""A folder that holds only glibc, bash and Python's standard library, and a way to run programs in it.

They see no other file, and only their own loopback. Run as a program (by the one in EmptyRoot.run, with namespaces of
its own) it enters the root: empty_root.py ROOT PROGRAM ARGUMENT…
"""

import fcntl
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import sys
import sysconfig
import unittest

# glibc's libraries, besides those that the programs need.
GLIBC = ("libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2", "libutil.so.1")
PROGRAMS = ("/bin/bash", "/usr/bin/env", "/usr/bin/dirname")
# Parts of the standard library that need libraries which a machine may lack.
LEFT_OUT = re.compile(r"^(test|idlelib|tkinter|ensurepip|lib2to3|__pycache__|config-.*|dist-packages|site-packages|"
                      r"_(ssl|hashlib|curses|curses_panel|sqlite3|dbm|gdbm|tkinter|crypt)\..*|(readline|nis)\..*)$")
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def libraries(file):
    """Returns the paths of the shared libraries that the loader gives it."""
    listed = subprocess.run(["ldd", str(file)], capture_output=True, text=True).stdout
    return [pathlib.Path(path) for path in re.findall(r"(?:=> |^\s*)(/\S+) \(0x", listed, re.M)]


class EmptyRoot:
    """An empty root at `folder`. Skips the test if this process may not make namespaces."""

    def __init__(self, folder):
        self.folder = folder
        tried = subprocess.run([*self._unshare(), "true"], capture_output=True, text=True)
        if tried.returncode != 0:
            raise unittest.SkipTest(f"no namespaces can be made here: {tried.stderr.strip()}")
        for name in ("usr/bin", "usr/lib", "usr/lib64", "proc", "dev", "tmp", "src"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        for name in ("bin", "lib", "lib64"):
            (folder / name).symlink_to(f"usr/{name}")
        for program in PROGRAMS:
            self._take(pathlib.Path(program))
        (libc,) = (file for file in libraries(PROGRAMS[0]) if file.name == "libc.so.6")
        for name in GLIBC:
            self._take(libc.with_name(name))
        self._python()

    def _take(self, file):
        """Copies the file to its place, and its libraries to theirs."""
        for one in (file, *libraries(file)):
            target = self.folder / str(one.parent.resolve() / one.name).lstrip("/")
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(one.resolve(), target)

    def _python(self):
        """Copies the machine's own Python, without packages; not that of a virtual environment."""
        binary = pathlib.Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
        self._take(binary)
        (self.folder / "usr/bin/python3").symlink_to(binary)
        library = pathlib.Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix}))
        shutil.copytree(library, self.folder / str(library).lstrip("/"), symlinks=False,
                        ignore=lambda folder, names: [name for name in names if LEFT_OUT.match(name)],
                        ignore_dangling_symlinks=True)
        for module in (library / "lib-dynload").glob("*.so"):
            if not LEFT_OUT.match(module.name):
                self._take(module)

    def take_lookalikes(self, built, folder):
        """Copies the libraries of `built` (tests/support/fake_cuda) into `folder`, with their dependencies."""
        place = self.folder / folder
        place.mkdir()
        for name in ("libcuda.so.1", "libnvcuvid.so.1", "libnvjpeg.so.13"):
            for file in (built / name, *libraries(built / name)):
                if not re.match(r"(ld-linux|lib(c|m|dl|rt|pthread)\.so)", file.name):
                    shutil.copy(file.resolve(), place / file.name)
        for file in place.iterdir():
            subprocess.run(["patchelf", "--set-rpath", "$ORIGIN", str(file)], check=True)

    @staticmethod
    def _unshare():
        mine = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        return ["unshare", *mine, "--mount", "--net", "--pid", "--fork", "--kill-child"]

    def run(self, *words, timeout):
        """Runs a program of the root, with an empty environment."""
        return subprocess.run([*self._unshare(), sys.executable, "-B", __file__, str(self.folder), *map(str, words)],
                              capture_output=True, text=True, timeout=timeout)


def _enter(root, words):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        name = b"lo".ljust(16, b"\0")
        flags, = struct.unpack_from("H", fcntl.ioctl(asked, SIOCGIFFLAGS, name + bytes(24)), 16)
        fcntl.ioctl(asked, SIOCSIFFLAGS, name + struct.pack("H", flags | IFF_UP) + bytes(22))
    subprocess.run(["mount", "-t", "proc", "proc", f"{root}/proc"], check=True)
    subprocess.run(["mount", "--rbind", "/dev", f"{root}/dev"], check=True)
    os.chroot(root)
    os.chdir("/src")
    os.execve(words[0], words, {"PATH": "/usr/bin:/bin", "HOME": "/tmp"})


if __name__ == "__main__":
    _enter(sys.argv[1], sys.argv[2:])
