# SPDX-License-Identifier: Apache-2.0
"""The lints of layers find what the tables of folders.md do not allow."""

import pathlib

import layering
import layering_python
from self_test_tree import SPDX, Tree


class Layering(Tree):
    PAGE = """
| folder | what it is for | may include | messages |
|---|---|---|---|
| `core` | all | | |
| `core/plan` | plans | `core/random` | |
| `core/random` | draws | | |
| `rpc/call` | calls | `core/*` | gRPC `leat/v1` |
| `server` | a program | `rpc/call` | |
| `client/leat` | public | | |
| `client/cli` | a program | `client/leat` | |
| `worker/gpu` | devices | `worker/gpu/device` | |
| `worker/gpu/device` | interfaces | | |
| `worker/gpu/cuda` | makers | `cuda` `worker/gpu` | |
| `cuda` | the driver | | |
| `worker` | a program | | |
"""
    NEEDED = {"core/a.cc": "", "core/random/philox.h": "int x;", "core/plan/a.cc": '#include "core/random/philox.h"',
              "rpc/call/a.h": '#include "core/a.h"', "server/a.h": '#include "rpc/call/a.h"',
              "client/leat/client.h": "int x;", "client/cli/a.cc": '#include "leat/client.h"',
              "worker/gpu/a.h": '#include "worker/gpu/device/a.h"', "worker/gpu/device/a.h": "int x;",
              "worker/gpu/cuda/a.h": '#include "cuda/driver.h"\n#include "worker/gpu/a.h"', "cuda/driver.h": "int x;",
              "worker/a.cc": ""}

    def setUp(self):
        super().setUp()
        self.write("docs/architecture/folders.md", self.PAGE)
        for path, line in self.NEEDED.items():
            self.write(path, f"{SPDX}{line}\nint y;\n")
            self.write(str(pathlib.PurePath(path).parent / "README.md"), "")

    def found(self, path, line):
        self.write(path, SPDX + line + "\nint y;\n")
        findings = layering.check(self.root)
        if path in self.NEEDED:
            self.write(path, f"{SPDX}{self.NEEDED[path]}\nint y;\n")
        else:
            (self.root / path).unlink()
        return findings

    def test_what_the_table_allows_passes(self):
        self.assertEqual(self.found("core/b.cc", '#include <vector>\n#include "fmt/format.h"'), [])
        self.assertEqual(
            self.found("rpc/call/b.cc",
                       '#include "core/plan/a.h"\n#include "leat/v1/types.pb.h"\n#include <grpcpp/grpcpp.h>'), [])
        self.assertEqual(self.found("client/cli/main.cc", '#include "leat/admin.h"\n#include <CLI/CLI.hpp>'), [])

    def test_what_it_does_not_name_fails(self):
        self.assert_one(self.found("worker/b.cc", '#include "server/a.h"'),
                        "worker/b.cc:2", "server/a.h", "may include only")
        self.assert_one(self.found("core/plan/b.cc", '#include "rpc/call/a.h"'), "core/plan/b.cc:2", "core/random")
        self.assert_one(self.found("client/leat/b.h", '#include "core/plan/job.h"'), "client/leat/b.h:2")
        self.assert_one(self.found("server/b.cc", '#include "tests/support/fake.h"'), "tests/support")
        self.assert_one(self.found("worker/b.cc", '#include "worker/gpu/a.h"'), "worker/b.cc:2")

    def test_a_name_that_no_file_needs_fails(self):
        self.assert_one(self.found("core/plan/a.cc", ""), "core/plan does not include core/random")

    def test_a_folder_that_the_table_lacks_fails(self):
        self.assert_one(self.found("core/boxes/a.cc", ""), "core/boxes is not in docs/architecture/folders.md")

    def test_a_folder_without_a_readme_fails(self):
        (self.root / "core/plan/README.md").unlink()
        self.assert_one(layering.check(self.root), "core/plan: no README.md")

    def test_a_row_without_sources_fails(self):
        self.write("docs/architecture/folders.md", self.PAGE + "| `core/boxes` | boxes | | |\n")
        self.assert_one(layering.check(self.root), "names core/boxes, which has no sources")

    def test_a_circle_fails(self):
        self.write("docs/architecture/folders.md",
                   self.PAGE.replace("| `core/random` | draws | | |", "| `core/random` | draws | `core/plan` | |"))
        self.assert_one(self.found("core/random/b.cc", '#include "core/plan/a.h"'), "circle", "core/plan, core/random")

    def test_a_header_that_only_includes_another_fails(self):
        self.write("core/b.h", SPDX + '#pragma once\n\n#include "core/a.h"  // moved\n')
        self.assert_one(layering.check(self.root), "core/b.h", "nothing but include")

    def test_core_knows_no_grpc_and_no_files(self):
        self.assert_one(self.found("core/b.h", '#include "grpcpp/channel.h"'), "does not know gRPC")
        self.assert_one(self.found("core/plan/b.h", '#include <fstream>\n#include "core/random/philox.h"'), "no files")

    def test_messages_are_those_of_the_row(self):
        self.assert_one(self.found("worker/b.cc", '#include "leat/v1/types.pb.h"'), "may not see these messages")
        self.assert_one(self.found("rpc/call/b.cc", '#include "leat/stored/v1/records.pb.h"'),
                        "may not see these messages")

    def test_only_kernels_need_the_cuda_toolkit(self):
        self.assertEqual(self.found("worker/gpu/b.cu", "#include <cuda_fp16.h>"), [])
        self.assert_one(self.found("worker/gpu/b.cc", "#include <cuda.h>"), "worker/gpu/b.cc:2", "no CUDA toolkit")

    def test_one_folder_of_the_worker_knows_whose_gpus_they_are(self):
        for path in ("worker/gpu/b.cc", "worker/gpu/device/b.h", "worker/b.cc", "server/b.cc"):
            self.assert_one(self.found(path, '#include "cuda/driver.h"'), f"{path}:2", "may include only")
        self.assert_one(self.found("worker/gpu/b.cc", '#include "worker/gpu/cuda/a.h"'),
                        "worker/gpu/b.cc:2", "may include only")

    def test_only_that_folder_names_them(self):
        for line in ("uint64_t rows_by_cuda = 0;", "class NvjpegSlot;", "a = DecoderClass::kNvjpeg;", "cuMemAlloc(0);"):
            self.assert_one(self.found("worker/gpu/b.cc", line), "worker/gpu/b.cc:2", "whose device")
        self.assertEqual(self.found("worker/gpu/b.cc", '// nvJPEG decodes\nLog("nvjpeg={}", cut);  /* CUDA */'), [])
        self.assertEqual(self.found("worker/gpu/b.h", "#ifdef __CUDA_ARCH__"), [])
        self.assertEqual(self.found("worker/gpu/b.cu", "using namespace nvcuda;"), [])
        self.assertEqual(self.found("worker/gpu/cuda/b.cc", "class NvjpegSlot;"), [])

    def test_python_speaks_through_the_c_interface(self):
        self.write("python_client/src/leat/a.py", "import grpc\n")
        self.assert_one(layering.check(self.root), "imports grpc")


class LayeringOfPython(Tree):
    PAGE = """
| package | what it is for | may import |
|---|---|---|
| `leat` | all | `leat._graphs` `leat._library` |
| `leat._graphs` | graphs | `leat._library` |
| `leat._library` | a library | |
| `leat.dali` | another interface | `leat` `leat._graphs` |
"""
    NEEDED = {"__init__.py": '"""Leat."""\nfrom leat._graphs import graph\nfrom leat._library import native\n',
              "errors.py": "import re\n", "fn.py": "", "_graphs/__init__.py": '"""Graphs."""\n',
              "_graphs/graph.py": "from leat._library.native import lib\n",
              "_library/__init__.py": '"""A library."""\n',
              "_library/native.py": "from leat import errors\nfrom leat.errors import Error\nimport leat.errors\n",
              "dali/__init__.py": '"""DALI."""\nfrom leat.dali.fn import a\n',
              "dali/fn/__init__.py": "", "dali/fn/a.py": "from leat import fn\nfrom leat._graphs import graph\n"}

    def setUp(self):
        super().setUp()
        self.write("docs/architecture/folders.md", self.PAGE)
        for path, source in self.NEEDED.items():
            self.write(f"python_client/src/leat/{path}", source)

    def found(self, path, source):
        self.write(f"python_client/src/leat/{path}", source)
        return layering_python.check(self.root)

    def test_what_the_table_allows_passes(self):
        self.assertEqual(layering_python.check(self.root), [])
        self.assertEqual(self.found("dali/a.py", "import leat\nimport leat.jax\nimport numpy.random\n"), [])

    def test_what_it_does_not_name_fails(self):
        for source in ("from leat._graphs import graph", "from leat._graphs.graph import Node",
                       "import leat._graphs.graph", "import os, leat._graphs", "from .._graphs import graph",
                       "def f():\n    import leat._graphs", "from leat import _graphs, errors",
                       "if TYPE_CHECKING:\n    from leat._graphs.graph import Node"):
            self.assert_one(self.found("_library/b.py", source + "\n"), "python_client/src/leat/_library/b.py:",
                            "imports leat._graphs", "leat._library may import only leat.errors")
        self.assert_one(self.found("_library/b.py", "from leat import fn\n"), "_library/b.py:1", "imports leat.fn")
        self.assert_one(self.found("_library/b.py", "import leat\n"), "imports leat, but")

    def test_stubs_count(self):
        self.assert_one(self.found("_library/b.pyi", "from leat._graphs.graph import Node as Node\n"), "b.pyi:1")

    def test_what_everybody_may_import_imports_nothing(self):
        self.assert_one(self.found("errors.py", "from leat import fn\n"), "errors.py:1", "nothing of ours")

    def test_a_name_that_no_module_needs_fails(self):
        self.assert_one(self.found("_graphs/graph.py", ""), "leat._graphs does not import leat._library")

    def test_a_package_that_the_table_lacks_fails(self):
        self.assert_one(self.found("_boxes/a.py", ""), "leat._boxes is not in docs/architecture/folders.md")

    def test_a_row_without_sources_fails(self):
        self.write("docs/architecture/folders.md", self.PAGE + "| `leat._boxes` | boxes | |\n")
        self.assert_one(layering_python.check(self.root), "names leat._boxes, which has no sources")

    def test_a_package_without_a_docstring_fails(self):
        self.assert_one(self.found("_graphs/__init__.py", ""), "_graphs/__init__.py: no docstring")

    def test_a_circle_fails(self):
        self.write("docs/architecture/folders.md",
                   self.PAGE.replace("| a library | |", "| a library | `leat._graphs` |"))
        self.assert_one(self.found("_library/b.py", "import leat._graphs\n"), "circle", "leat._graphs, leat._library")
