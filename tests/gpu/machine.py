# SPDX-License-Identifier: Apache-2.0
"""What a machine has: its GPUs, as the driver tells them, and NVIDIA's tools. `machine.py --probe` prints JSON."""

import ctypes
import json
import os
import pathlib
import platform
import resource
import shutil
import subprocess
import sys

_DRIVERS = ("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")
PROBE_S = 60
_CONTAINER = ("NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY")
_TOOLS = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", "/usr/local/nvidia/bin", "/usr/lib/wsl/lib")


def _driver():
    named = os.environ.get("LEAT_CUDA_LIBRARY")
    errors = []
    for path in [named] if named else _DRIVERS:
        try:
            return ctypes.CDLL(path)
        except OSError as error:
            errors.append(str(error))
    raise RuntimeError(f"no NVIDIA driver could be loaded: {'; '.join(errors)}")


def probe():
    """[{name, memory_bytes, free_bytes}] of the GPUs. RuntimeError: says why there is none."""
    cuda = _driver()

    def call(name, *args):
        code = getattr(cuda, name)(*args)
        if code != 0:
            raise RuntimeError(f"{name} returned {code}")

    call("cuInit", 0)
    count, version = ctypes.c_int(), ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    call("cuDriverGetVersion", ctypes.byref(version))
    if count.value == 0:
        raise RuntimeError("the driver knows no GPU")
    gpus = []
    for index in range(count.value):
        device, name, context = ctypes.c_int(), ctypes.create_string_buffer(128), ctypes.c_void_p()
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        call("cuDeviceGet", ctypes.byref(device), index)
        call("cuDeviceGetName", name, len(name), device)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxPushCurrent_v2", context)
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        call("cuCtxPopCurrent_v2", ctypes.byref(context))
        call("cuDevicePrimaryCtxRelease_v2", device)
        gpus.append({"index": index, "name": name.value.decode(), "memory_bytes": total.value,
                     "free_bytes": free.value, "cuda_version": version.value})
    return gpus


def probed():
    """`probe` in a process of its own, so that this one has no context. (gpus, "") or ([], why not)."""
    try:
        done = subprocess.run([sys.executable, "-B", __file__, "--probe"], capture_output=True, text=True,
                              timeout=PROBE_S)
    except subprocess.TimeoutExpired:
        return [], f"the driver did not answer within {PROBE_S} s"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return [], lines[-1] if lines else f"the probe ended with {done.returncode}"
    return json.loads(done.stdout), ""


def tool(name):
    """The path of one of NVIDIA's tools, or None."""
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(_TOOLS))


def describe():
    """Everything worth keeping beside figures."""
    facts = {"kernel": platform.release(), "libc": " ".join(platform.libc_ver()), "python": platform.python_version(),
             "cores": len(os.sched_getaffinity(0))}
    try:
        names = [line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                 if line.startswith("model name")]
        facts["cpu"] = names[0] if names else platform.machine()
    except OSError:
        facts["cpu"] = platform.machine()
    facts["memory_bytes"] = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    facts["memlock_bytes"] = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    facts["shmem_enabled"] = _read("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    facts["container"] = {name: os.environ[name] for name in _CONTAINER if name in os.environ}
    facts["nvcuvid"] = _loads("libnvcuvid.so.1")
    smi = tool("nvidia-smi")
    if smi:
        fields = "name,driver_version,memory.total,mig.mode.current,compute_cap,clocks.max.sm,persistence_mode"
        done = subprocess.run([smi, f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True,
                              timeout=60)
        facts["nvidia_smi"] = done.stdout.strip() or done.stderr.strip()
        facts["nvidia_smi_fields"] = fields
    return facts


def has_mig(facts):
    """Whether this process sees a slice, as nvidia-smi tells."""
    names = facts.get("nvidia_smi_fields", "").split(",")
    for line in facts.get("nvidia_smi", "").splitlines():
        if dict(zip(names, line.split(", "))).get("mig.mode.current") == "Enabled":
            return True
    return False


def _read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return None


def _loads(library):
    """Whether the loader finds it, in a process of its own: drivers' libraries leave threads behind."""
    done = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r})"], capture_output=True,
                          timeout=PROBE_S)
    return done.returncode == 0


def packages(*names):
    """Versions of Python packages of this interpreter; None: not there."""
    from importlib import metadata
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = None
    return found


if __name__ == "__main__":
    if sys.argv[1:] != ["--probe"]:
        sys.exit("usage: machine.py --probe")
    try:
        print(json.dumps(probe()))
    except (RuntimeError, AttributeError) as error:
        sys.exit(str(error))
