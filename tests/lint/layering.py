# SPDX-License-Identifier: Apache-2.0
"""Who may include whom: the table of docs/ARCHITECTURE.md."""

import re

import common

# The longest prefix of a path decides. `own`: prefixes of our own headers; `not`: but for these. `grpc`, `proto`: what
# else it may see.
RULES = {
    "core/": {"own": ("core/",), "grpc": False, "proto": ()},
    "cuda/": {"own": ("core/", "cuda/"), "grpc": False, "proto": ()},
    "rpc/": {"own": ("core/", "rpc/"), "grpc": True, "proto": ("leat/v1/", "leat/stored/")},
    "rpc/convert": {"own": ("core/", "rpc/convert"), "grpc": False, "proto": ("leat/v1/",)},
    "rpc/lending": {"own": ("core/", "rpc/lending"), "grpc": False, "proto": ("leat/v1/",)},
    "rpc/flag_file": {"own": ("core/", "rpc/flag_file"), "grpc": False, "proto": ()},
    "rpc/http/": {"own": ("core/", "rpc/http/", "rpc/connections/listener.h"), "grpc": False, "proto": ("leat/v1/",)},
    "server/": {"own": ("core/", "rpc/", "server/"), "grpc": True,
                "proto": ("leat/v1/", "leat/stored/", "externalscaler/")},
    "worker/": {"own": ("core/", "rpc/", "worker/"), "not": ("worker/gpu/",), "grpc": True,
                "proto": ("leat/v1/", "leat/stored/")},
    "worker/gpu/": {"own": ("core/", "worker/"), "not": ("worker/gpu/cuda/",), "grpc": False, "proto": ()},
    "worker/gpu/cuda/": {"own": ("core/", "cuda/", "worker/"), "grpc": False, "proto": ()},
    "worker/gpu/device/": {"own": ("core/", "worker/gpu/device/", "worker/gpu/decode_shape.h",
                                   "worker/gpu/launch_config.h", "worker/gpu_worker.h", "worker/image/"),
                           "grpc": False, "proto": ()},
    "worker/image/": {"own": ("core/", "worker/image/", "worker/stored_sample.h"), "grpc": False, "proto": ()},
    "worker/plane/": {"own": ("core/", "rpc/lending", "worker/plane/", "worker/row_work.h"), "grpc": False,
                      "proto": ("leat/v1/",)},
    "worker/source/": {"own": ("core/", "worker/source/", "worker/stored_sample.h"), "grpc": False,
                       "proto": ("leat/stored/",)},
    "client/": {"own": ("core/", "cuda/", "rpc/", "client/", "leat/"), "grpc": True,
                "proto": ("leat/v1/", "leat/stored/")},
    "client/leat/": {"own": ("leat/",), "grpc": False, "proto": ()},
    "client/cli/": {"own": ("core/", "leat/", "client/leat/", "client/cli/"), "grpc": False,
                    "proto": ("leat/stored/",)},
}
# What the maths may not touch: files and the network.
_FILES = {"fstream", "filesystem", "fcntl.h", "unistd.h", "sys/stat.h", "sys/socket.h", "sys/mman.h"}
_PROTO = re.compile(r"^(?:leat|externalscaler)/.*\.pb\.h$|^google/protobuf/")
_GRPC = re.compile(r"^grpcpp?/|^grpc\+\+/|\.grpc\.pb\.h$")
# One folder knows whose GPUs they are; kernels' sources are its compiler's.
_NEUTRAL, _MAKERS = "worker/gpu/", ("worker/gpu/cuda/",)
_MAKERS_WORD = re.compile(r"\w*(?i:cuda|nvjpeg|nvcc)\w*|\bcu[A-Z]\w*")
_NO_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^\s*#\s*include[^\n]*', re.S | re.M)
_COMPILERS_OWN = {"__CUDA_ARCH__"}
_PYTHON = re.compile(r"^\s*(?:import|from)\s+(grpc|google\.protobuf)\b", re.M)


def check_include(path, rule, name):
    """What is wrong with `path` including `name`, or None."""
    if name.startswith("opentelemetry/") and not path.startswith("rpc/otlp_exporter"):
        return "does not know OpenTelemetry's messages: rpc/tracing/otlp_exporter.h sends spans"
    if _GRPC.search(name) and not rule["grpc"]:
        return "does not know gRPC"
    if _PROTO.search(name):
        allowed = rule["grpc"] or any(name.startswith(p) for p in rule["proto"])
        if name.startswith(("leat/", "externalscaler/")):
            allowed = any(name.startswith(p) for p in rule["proto"])
        return None if allowed or rule["proto"] and name.startswith("google/") else "may not see these messages"
    if re.match(r"^(core|cuda|rpc|server|worker|client|leat|tests|proto)/", name):
        # The public client's headers are leat/*.h, written from anywhere as users write them.
        if name.startswith(rule.get("not", ())) and not path.startswith(rule["not"]):
            return f"may not include {', '.join(rule['not'])}"
        return None if name.startswith(rule["own"]) else f"may include only {', '.join(rule['own'])}"
    if path.startswith("core/") and name in _FILES:
        return "is maths: no files, no sockets"
    if re.match(r"cuda|nvjpeg|device_launch", name) and not path.endswith(".cu"):
        return "needs no CUDA toolkit: cuda/driver.h and cuda/nvjpeg.h declare what we use"
    return None


def makers_words(source):
    """Pairs (line, word) of the names in C++ code that say whose device it is for."""
    code = _NO_CODE.sub(lambda m: "\n" * m[0].count("\n"), source)
    return [(code.count("\n", 0, m.start()) + 1, m[0]) for m in _MAKERS_WORD.finditer(code)
            if m[0] not in _COMPILERS_OWN]


def check(root):
    findings = []
    for path in common.files(root, *common.CPP, ".cu"):
        prefix = max((p for p in RULES if str(path).startswith(p)), key=len, default=None)
        if prefix is None:
            continue
        for line, _, name in common.includes(common.text(root, path)):
            problem = check_include(str(path), RULES[prefix], name)
            if problem:
                findings.append(f'{path}:{line}: includes "{name}", but {prefix} {problem}')
        if str(path).startswith(_NEUTRAL) and not str(path).startswith(_MAKERS) and path.suffix != ".cu":
            findings += [f"{path}:{line}: {word}: only {', '.join(_MAKERS)} knows whose device it is"
                         for line, word in makers_words(common.text(root, path))]
    for path in common.files(root, ".py"):
        if path.parts[0] == "python_client":
            for match in _PYTHON.finditer(common.text(root, path)):
                findings.append(f"{path}: imports {match[1]}, but python_client speaks through leat.h only")
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
