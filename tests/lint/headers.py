# SPDX-License-Identifier: Apache-2.0
"""Each header of the domain code compiles alone."""

import pathlib

import common
import compiled


def check(root, build):
    # A header is compiled as a source of its own folder would be: the one that sees the most. Messages are seen by all,
    # since a folder's sources that see them may be left out of a build (worker/gpu, where there is no nvcc).
    messages = ["-isystem", str(pathlib.Path(build).resolve() / "proto")]
    arguments = {}
    for unit in compiled.domain_units(root, build):
        for source in unit.sources:
            folder = source.parts[:-1]
            arguments[folder] = max(arguments.get(folder, []), unit.arguments, key=len)
    headers = [compiled.Unit([path], arguments[path.parts[:-1]] + messages) for path in common.files(root, ".h")
               if path.parts[:-1] in arguments and not common.reaches_grpc(root, path)]
    return compiled.run(root, build, "headers", headers,
                        lambda file, args: ["clang++-14", "-fsyntax-only", "-Wno-everything", *args, str(file)])


if __name__ == "__main__":
    common.main(check, __doc__, build=True)
