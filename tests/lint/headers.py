# SPDX-License-Identifier: Apache-2.0
"""Each header of the domain code compiles alone."""

import common
import compiled


def check(root, build):
    # A header is compiled as a source of its own folder would be: the one that sees the most.
    arguments = {}
    for path, args in compiled.domain_sources(root, build).items():
        folder = path.parts[:-1]
        arguments[folder] = max(arguments.get(folder, []), args, key=len)
    headers = {path: arguments[path.parts[:-1]] for path in common.files(root, ".h")
               if path.parts[:-1] in arguments and not common.reaches_grpc(root, path)}
    return compiled.run(root, build, "headers", headers,
                        lambda path, args: ["clang++-14", "-fsyntax-only", "-x", "c++", "-Wno-everything", *args,
                                            str(path)])


if __name__ == "__main__":
    common.main(check, __doc__, build=True)
