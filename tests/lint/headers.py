# SPDX-License-Identifier: Apache-2.0
"""Each header of the domain code compiles alone.

Most of the time goes into headers that many others include. A few of these are precompiled: a header is compiled behind
one that it includes itself, at any depth, so that this hides nothing that it fails to include.
"""

import pathlib
import subprocess
import tempfile
import threading

import common
import compiled

PRECOMPILED = 16  # headers; more of them save less than they cost


class Precompiled:
    """Precompiled headers in `folder`, each made when it is first needed.

    closures: of each header that is looked at, the files of the tree that it includes, with itself. Threads may share
    an object.
    """

    def __init__(self, root, folder, closures):
        self._root, self._folder, self._closures = root, folder, closures
        self._cost = {header: self._foreign(closure) for header, closure in closures.items()}
        self._locks = {header: threading.Lock() for header in self._chosen()}

    def _foreign(self, closure):
        """How many headers of others are included: that is about what a header costs."""
        return len({name for path in closure for _, _, name in common.includes(common.text(self._root, path))
                    if not (self._root / name).is_file()})

    def _best(self, header, among):
        """The most expensive one of those that `header` includes; None if it includes none."""
        fit = [other for other in among if other != header and other in self._closures[header]]
        return max(fit, key=lambda other: (self._cost[other], other), default=None)

    def _chosen(self):
        """The headers that save most: each time the next one, given those before."""
        chosen, saved = [], dict.fromkeys(self._closures, 0)
        users = {header: [user for user, closure in self._closures.items() if header in closure and user != header]
                 for header in self._closures}

        def gain(header):
            return sum(max(0, self._cost[header] - saved[user]) for user in users[header]) - self._cost[header]

        for _ in range(PRECOMPILED):
            gains = {header: gain(header) for header in self._closures}
            header = max(gains, key=lambda one: (gains[one], one), default=None)
            if header is None or gains[header] <= 0:
                break
            chosen.append(header)
            for user in [header, *users[header]]:
                saved[user] = max(saved[user], self._cost[header])
        return chosen

    def options(self, header, arguments):
        """The options by which clang begins with what is precompiled for `header`; none if that cannot be made."""
        shared = self._best(header, self._locks)
        if shared is None:
            return []
        made = self._folder / f"{str(shared).replace('/', '_')}.pch"
        with self._locks[shared]:
            if not made.exists():
                subprocess.run(["clang++-14", "-x", "c++-header", "-Wno-everything", *arguments,
                                str(self._root / shared), "-o", str(made)], cwd=self._root, capture_output=True)
        return ["-include-pch", str(made)] if made.exists() else []


def _options(units, build):
    """What all units are given, together, and the messages: units that see them may be left out of a build (worker/gpu,
    where there is no nvcc)."""
    words = ["-isystem", str(pathlib.Path(build).resolve() / "proto")]
    for unit in units:
        pending = iter(unit.arguments)
        for word in pending:
            option = [word, next(pending)] if word in ("-isystem", "-I", "-D", "-include") else [word]
            if not any(words[at:at + len(option)] == option for at in range(len(words))):
                words += option
    return words


def check(root, build):
    root = pathlib.Path(root).resolve()
    units = compiled.domain_units(root, build)
    folders = {source.parts[:-1] for unit in units for source in unit.sources}
    closures = {path: common.own_includes(root, path) for path in common.files(root, ".h")
                if path.parts[:-1] in folders and not common.reaches_grpc(root, path)}
    arguments = _options(units, build)
    headers = [compiled.Unit([path], arguments) for path in closures]
    with tempfile.TemporaryDirectory(prefix="leat-headers-") as folder:
        shared = Precompiled(root, pathlib.Path(folder), closures)

        def command(file, unit):
            (header,) = unit.sources
            return ["clang++-14", "-fsyntax-only", "-Wno-everything", *shared.options(header, arguments), *arguments,
                    str(file)]

        return compiled.run(root, build, "headers", headers, command)


if __name__ == "__main__":
    common.main(check, __doc__, build=True)
