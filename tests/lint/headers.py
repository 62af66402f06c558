# SPDX-License-Identifier: Apache-2.0
"""Each header of the domain code compiles alone.

Most of the time is spent on files that many headers include. So headers are compiled in chains, each one after another
whose files it includes anyway, and the first one of a chain after a precompiled part that it includes anyway. Neither
hides a missing include.
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
    return tuple(sorted({name for path in closure for name in common.direct_includes(root, path)[1]}))


def _depends(source, arguments):
    """Returns the files that are read for a source text."""
    done = subprocess.run(["clang++-14", "-M", "-x", "c++", *arguments, "-"], input=source, capture_output=True,
                          text=True)
    return [word for word in done.stdout.replace("\\\n", " ").split()[1:] if word != "-" and os.path.exists(word)]


class Reads:
    """The files that are read for each checked header.

    closures: for each checked header, the files of the tree that it includes, with itself.
    """

    def __init__(self, root, closures, arguments):
        self.files = Files(root)
        self.of = {}       # for each header: all files that are read for it
        self.sources = {}  # for each candidate of a precompiled part, a source text: the files in it
        foreign = {header: _foreign(root, closure) for header, closure in closures.items()}
        names = sorted({name for several in foreign.values() for name in several})
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            read = dict(zip(names, map(self.files.of, pool.map(
                lambda name: _depends(f"#include <{name}>\n", arguments), names))))
        for header, closure in closures.items():
            others = 0
            for name in foreign[header]:
                others |= read[name]
            self.of[header] = others | self.files.of(root / path for path in closure)
            self.sources["".join(f"#include <{name}>\n" for name in foreign[header])] = others
            self.sources[f'#include "{root / header}"\n'] = self.of[header]


def chains(reads):
    """Returns lists of headers: each header includes all that those before it in its list read. Chooses greedily the
    pairs of neighbours: each time the one that saves most."""
    cost = {header: reads.files.cost(bits) for header, bits in reads.of.items()}
    after = {header: sorted((other for other, bits in reads.of.items() if bits != own and bits & own == own),
                            key=lambda other: (cost[other], other))
             for header, own in reads.of.items()}
    following, followers = {}, set()
    for header in sorted(after, key=lambda header: (-cost[header], header)):
        for other in after[header]:
            if other not in followers:
                following[header] = other
                followers.add(other)
                break
    found = []
    for header in sorted(set(reads.of) - followers):
        found.append([header])
        while found[-1][-1] in following:
            found[-1].append(following[found[-1][-1]])
    return found


class Precompiled:
    """The precompiled parts in `folder` for the headers that begin chains; each is made when it is first needed.

    Threads may share an object.
    """

    def __init__(self, root, folder, reads, first, arguments):
        self._root, self._folder, self._arguments = root, folder, arguments
        files, sources = reads.files, reads.sources
        self._all = {header: reads.of[header] for header in first}
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
    reads = Reads(root, closures, arguments)
    headers = [compiled.Unit(chain, arguments) for chain in chains(reads)]
    with tempfile.TemporaryDirectory(prefix="leat-headers-") as folder:
        first = [unit.sources[0] for unit in headers]
        shared = Precompiled(root, pathlib.Path(folder), reads, first, arguments)

        def command(file, unit):
            return ["clang++-14", "-fsyntax-only", "-Wno-everything", *shared.options(unit.sources[0]), *arguments,
                    str(file)]

        return compiled.run(root, build, "headers", headers, command)


if __name__ == "__main__":
    common.main(check, __doc__, build=True)
