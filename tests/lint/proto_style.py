# SPDX-License-Identifier: Apache-2.0
"""The protos' style, read from protoc's descriptors (docs/STYLE.md, "Protos")."""

import pathlib
import re
import subprocess

import common

# Interfaces of other programs, which choose names and share messages in their own way.
_OTHERS = {"externalscaler"}
_TOKEN = re.compile(r'\s*(?:([A-Za-z0-9_.+-]+)\s*(:|\{)|(\})|("(?:[^"\\]|\\.)*"|[A-Za-z0-9_.+-]+))')


def parse(source):
    """Parses protobuf's text format to nested dicts of lists."""
    root = {}
    stack, key = [root], None
    for match in _TOKEN.finditer(source):
        name, opens, closes, value = match.groups()
        if name and opens == "{":
            child = {}
            stack[-1].setdefault(name, []).append(child)
            stack.append(child)
        elif name:
            key = name
        elif closes:
            stack.pop()
        elif key:
            stack[-1].setdefault(key, []).append(value.strip('"'))
            key = None
    return root


def describe(root, protos):
    """Returns the FileDescriptorProtos of `protos`, whose paths are relative to root/proto."""
    base = pathlib.Path(root) / "proto"
    encoded = subprocess.run(
        ["protoc", f"-I{base}", "--include_source_info", "--descriptor_set_out=/dev/stdout", *protos],
        check=True, capture_output=True).stdout
    decoded = subprocess.run(["protoc", "--decode=google.protobuf.FileDescriptorSet", "-I/usr/include",
                              "google/protobuf/descriptor.proto"], check=True, capture_output=True, input=encoded)
    return parse(decoded.stdout.decode()).get("file", [])


def _snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).upper()


def _commented(file):
    """Returns the paths (as tuples of numbers) that have a leading comment."""
    locations = file.get("source_code_info", [{}])[0].get("location", [])
    return {tuple(map(int, l.get("path", []))) for l in locations if "leading_comments" in l}


def check_services(file, used):
    name, findings, commented = file["name"][0], [], _commented(file)
    ours = file["package"][0] not in _OTHERS
    services = file.get("service", [])
    if len(services) > 1:
        findings.append(f"{name}: {len(services)} services, one a file")
    for s, service in enumerate(services):
        if ours and not service["name"][0].endswith("Service"):
            findings.append(f"{name}: service {service['name'][0]}: want a name that ends in Service")
        if (6, s) not in commented:
            findings.append(f"{name}: service {service['name'][0]}: want a comment")
        for m, method in enumerate(service.get("method", [])):
            rpc = method["name"][0]
            if (6, s, 2, m) not in commented:
                findings.append(f"{name}: rpc {rpc}: want a comment: behaviour, errors, what may be retried")
            for kind in ("input_type", "output_type") if ours else ():
                message = method[kind][0].rsplit(".", 1)[1]
                want = rpc + ("Request" if kind == "input_type" else "Response")
                if message != want:
                    findings.append(f"{name}: rpc {rpc}: {message}, want {want}")
                if method[kind][0] in used:
                    findings.append(f"{name}: rpc {rpc}: {message} is also of rpc {used[method[kind][0]]}")
                used[method[kind][0]] = rpc
    return findings


def check_file(file, used):
    name, findings = file["name"][0], check_services(file, used)
    package = file.get("package", [""])[0]
    folder = name.rsplit("/", 1)[0].replace("/", ".")
    if package != folder or package not in _OTHERS and not re.search(r"\.v\d+$", package):
        findings.append(f"{name}: package {package}: want {folder}, ending in a version")
    if file.get("syntax", [""])[0] != "proto3":
        findings.append(f"{name}: want syntax proto3")
    for enum in file.get("enum_type", []):
        prefix = _snake(enum["name"][0])
        for value in enum.get("value", []):
            if not value["name"][0].startswith(prefix + "_"):
                findings.append(f"{name}: {value['name'][0]}: want the prefix {prefix}_")
        first = enum["value"][0]
        if first["name"][0] != prefix + "_UNSPECIFIED" or first.get("number", ["0"])[0] != "0":
            findings.append(f"{name}: enum {enum['name'][0]}: want {prefix}_UNSPECIFIED = 0 first")
    for message in file.get("message_type", []):
        for field in message.get("field", []):
            if not re.fullmatch(r"[a-z][a-z0-9_]*", field["name"][0]):
                findings.append(f"{name}: {message['name'][0]}.{field['name'][0]}: want lower_snake_case")
    stored = "stored" in package
    for dependency in file.get("dependency", []):
        if dependency.startswith("leat/") and ("stored" in dependency) != stored:
            findings.append(f"{name}: imports {dependency}: storage and wire never share messages")
    return findings


def check(root):
    # Names and numbers in opentelemetry/ come from OpenTelemetry's protocol.
    protos = [str(p.relative_to("proto")) for p in common.files(root, ".proto")
              if p.parts[0] == "proto" and p.parts[1] != "opentelemetry"]
    findings, used = [], {}
    if protos:
        for file in describe(root, protos):
            findings += check_file(file, used)
    return findings


if __name__ == "__main__":
    common.main(check, __doc__)
