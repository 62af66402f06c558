# SPDX-License-Identifier: Apache-2.0
"""Each header of the domain code compiles alone.

Most of the time is spent on files that many headers include. Some of those are precompiled. A header is compiled after
a precompiled part only if it includes all files of that part anyway, so that this hides no missing include.
"""

import concurrent.futures
import os
import pathlib
import subprocess
import tempfile
import threading

import common
import compiled

PRECOMPILED = 40  # more precompiled parts save less than they cost
# The cost of reading a precompiled part, as a fraction of compiling it.
READING = 0.05
# The cost of a byte of our files, in bytes of other files: ours use declarations of others.
OWN = 15


class Files:
    """Sets of files as bit sets, and the cost of the files of a set: about their bytes."""

    def __init__(self, root):
        self._root, self._bits, self._cost = root, {}, []

    def of(self, paths):
        bits = 0
        for path in paths:
            if path not in self._bits:
                self._bits[path] = len(self._cost)
                ours = pathlib.Path(path).is_relative_to(self._root)
                self._cost.append(os.path.getsize(path) * (OWN if ours else 1))
            bits |= 1 << self._bits[path]
        return bits

    def cost(self, bits):
        return sum(size for at, size in enumerate(self._cost) if bits >> at & 1)


def _foreign(root, closure):
    """Returns the names of foreign headers that files include."""
    return tuple(sorted({name for path in closure for _, _, name in common.includes(common.text(root, path))
                         if not (root / name).is_file()}))


def _depends(source, arguments):
    """Returns the files that are read for a source text."""
    done = subprocess.run(["clang++-14", "-M", "-x", "c++", *arguments, "-"], input=source, capture_output=True,
                          text=True)
    return [word for word in done.stdout.replace("\\\n", " ").split()[1:] if word != "-" and os.path.exists(word)]


class Precompiled:
    """The precompiled parts in `folder`; each is made when it is first needed.

    closures: for each checked header, the files of the tree that it includes, with itself. Threads may share an object.
    """

    def __init__(self, root, folder, closures, arguments):
        self._root, self._folder, self._arguments = root, folder, arguments
        files = Files(root)
        foreign = {header: _foreign(root, closure) for header, closure in closures.items()}
        names = sorted({name for several in foreign.values() for name in several})
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            read = dict(zip(names, map(files.of, pool.map(
                lambda name: _depends(f"#include <{name}>\n", arguments), names))))
        self._all = {}  # for each header: all files that are read for it
        sources = {}    # for each candidate, a source text: the files in it
        for header, closure in closures.items():
            others = 0
            for name in foreign[header]:
                others |= read[name]
            self._all[header] = others | files.of(root / path for path in closure)
            sources["".join(f"#include <{name}>\n" for name in foreign[header])] = others
            sources[f'#include "{root / header}"\n'] = self._all[header]
        self._chosen = {source: sources[source] for source in self._choose(sources, files)}
        self._cost = {source: files.cost(bits) for source, bits in self._chosen.items()}
        self._locks = {source: threading.Lock() for source in self._chosen}

    def _choose(self, sources, files):
        """Chooses greedily: each time the part that saves most, given those before."""
        cost = {source: files.cost(bits) for source, bits in sources.items()}
        users = {source: [header for header, read in self._all.items() if bits & read == bits and bits != read]
                 for source, bits in sources.items() if bits}
        chosen, saved = [], dict.fromkeys(self._all, 0)

        def gain(source):
            worth = (1 - READING) * cost[source]
            return sum(max(0, worth - saved[header]) for header in users[source]) - cost[source]

        for _ in range(PRECOMPILED):
            gains = {source: gain(source) for source in users}
            best = max(gains, key=lambda source: (gains[source], source), default=None)
            if best is None or gains[best] <= 0:
                break
            chosen.append(best)
            for header in users[best]:
                saved[header] = max(saved[header], (1 - READING) * cost[best])
        return chosen

    def options(self, header):
        """Returns the options that make clang begin with the precompiled part for `header`; none if there is none."""
        read = self._all[header]
        fit = [source for source, bits in self._chosen.items() if bits & read == bits and bits != read]
        if not fit:
            return []
        source = max(fit, key=lambda one: (self._cost[one], one))
        made = self._folder / f"{list(self._chosen).index(source)}.pch"
        with self._locks[source]:
            if not made.exists():
                # Instantiates the templates that it uses once, and not for each header.
                subprocess.run(["clang++-14", "-x", "c++-header", "-fpch-instantiate-templates", "-Wno-everything",
                                *self._arguments, "-", "-o", str(made)],
                               cwd=self._root, input=source, capture_output=True, text=True)
        return ["-include-pch", str(made)] if made.exists() else []


def _options(units, build):
    """Returns the options of all units combined, and the include path of the generated messages, since the units that
    have it may be missing in a build (worker/gpu, without nvcc)."""
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
        shared = Precompiled(root, pathlib.Path(folder), closures, arguments)

        def command(file, unit):
            (header,) = unit.sources
            return ["clang++-14", "-fsyntax-only", "-Wno-everything", *shared.options(header), *arguments, str(file)]

        return compiled.run(root, build, "headers", headers, command)


if __name__ == "__main__":
    common.main(check, __doc__, build=True)
