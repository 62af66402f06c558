# SPDX-License-Identifier: Apache-2.0
"""The wheel of python_client/ from libraries that are built already (install component "wheel" of a build tree).

It is stored, not deflated: the bundle around it is compressed, and finds the libraries that it has already.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import platform
import re
import tomllib
import zipfile

_EPOCH = (1980, 1, 1, 0, 0, 0)


def version_of(root: pathlib.Path) -> str:
    found = re.search(r"project\(leat VERSION ([0-9.]+)", (root / "CMakeLists.txt").read_text())
    assert found, f"{root}/CMakeLists.txt: no version"
    return found[1]


def _metadata(project: dict, version: str, readme: str) -> str:
    lines = ["Metadata-Version: 2.1", f"Name: {project['name']}", f"Version: {version}",
             f"Summary: {project['description']}", f"License: {project['license']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {need}; extra == "{extra}"' for need in needs]
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def write(root: pathlib.Path, native: pathlib.Path, folder: pathlib.Path, version: str) -> pathlib.Path:
    """Writes the wheel into `folder`; `native` holds what goes into leat/_native/."""
    client = root / "python_client"
    project = tomllib.loads((client / "pyproject.toml").read_text())["project"]
    tag = f"py3-none-manylinux_2_36_{platform.machine()}"
    info = f"leat-{version}.dist-info"
    files: dict[str, tuple[bytes, bool]] = {}
    for source in sorted((client / "src/leat").rglob("*")):
        if source.is_file() and "__pycache__" not in source.parts and "_native" not in source.parts:
            files[str(source.relative_to(client / "src"))] = (source.read_bytes(), False)
    for source in sorted(native.rglob("*")):
        if source.is_file():
            files[f"leat/_native/{source.relative_to(native)}"] = (source.read_bytes(), source.parent == native)
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    texts = {"METADATA": _metadata(project, version, (client / "README.md").read_text()),
             "WHEEL": f"Wheel-Version: 1.0\nGenerator: leat\nRoot-Is-Purelib: false\nTag: {tag}\n",
             "entry_points.txt": f"[console_scripts]\n{scripts}",
             "licenses/LICENSE": (root / "LICENSE").read_text()}
    for name, text in texts.items():
        files[f"{info}/{name}"] = (text.encode(), False)
    record = "".join(
        f"{name},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
        for name, (data, _) in files.items())
    files[f"{info}/RECORD"] = (f"{record}{info}/RECORD,,\n".encode(), False)

    wheel = folder / f"leat-{version}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for name, (data, executable) in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            archive.writestr(entry, data)
    return wheel
