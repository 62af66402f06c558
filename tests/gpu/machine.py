# SPDX-License-Identifier: Apache-2.0
"""Describes a machine: its GPUs, as the driver reports them, and NVIDIA's tools. `machine.py --probe` prints JSON."""

import ctypes
import json
import os
import pathlib
import platform
import resource
import re
import shutil
import signal
import subprocess
import sys

_DRIVERS = ("libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")
PROBE_S = 60
_CONTAINER = ("NVIDIA_DRIVER_CAPABILITIES", "NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY")
# Fields of nvidia-smi. It refuses a whole set if it does not know one of its fields.
_SMI_SETS = (
    "name,driver_version,memory.total,mig.mode.current,compute_cap,clocks.max.sm,persistence_mode",
    "pci.bus_id,pcie.link.gen.current,pcie.link.gen.max,pcie.link.width.current,pcie.link.width.max",
    "clocks.sm,clocks.mem,clocks.max.mem,power.draw,power.limit,temperature.gpu",
    "clocks_event_reasons.active",
    "clocks_throttle_reasons.active",  # its name in drivers before 535
)
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
    """Returns [{name, memory_bytes, free_bytes}] of the GPUs. RuntimeError: there is none; the text has the reason."""
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
    """Runs `probe` in a process of its own, so that this one has no context: (gpus, "") or ([], why not)."""
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
    """Returns the path of one of NVIDIA's tools, or None."""
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(_TOOLS))


def describe():
    """Returns everything worth keeping with figures."""
    facts = {"kernel": platform.release(), "libc": " ".join(platform.libc_ver()), "python": platform.python_version(),
             "cores": len(os.sched_getaffinity(0))}
    try:
        names = [line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                 if line.startswith("model name")]
        facts["cpu"] = names[0] if names else platform.machine()
    except OSError:
        facts["cpu"] = platform.machine()
    facts["hyperthreads"] = hyperthreads()
    facts["numa_cores"] = {path.parent.name: _read(path)
                           for path in sorted(pathlib.Path("/sys/devices/system/node").glob("node*/cpulist"))}
    facts["memory_bytes"] = memory_bytes()
    facts["memlock_bytes"] = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    facts["shmem_enabled"] = _read("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    facts["container"] = {name: os.environ[name] for name in _CONTAINER if name in os.environ}
    facts["nvcuvid"] = _loads("libnvcuvid.so.1")
    smi = tool("nvidia-smi")
    if smi:
        facts["nvidia_smi"] = smi_fields(smi)
        for gpu in facts["nvidia_smi"]:
            if bus := gpu.get("pci.bus_id"):  # "00000000:19:00.0"; the kernel's has 4 digits in the first part
                gpu["numa_node"] = _read(f"/sys/bus/pci/devices/{bus.lower()[-12:]}/numa_node")
    return facts


def memory_bytes():
    """Returns MemTotal now: a virtual machine's may grow."""
    found = re.search(r"^MemTotal:\s+(\d+) kB", _read("/proc/meminfo") or "", re.M)
    return int(found[1]) << 10 if found else os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def hyperthreads():
    """Returns threads per core, as the kernel reports them; None: it does not."""
    siblings = _read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    if not siblings:
        return None
    spans = [[int(word) for word in part.split("-")] for part in siblings.split(",")]
    return sum(span[-1] - span[0] + 1 for span in spans)


def smi_fields(smi):
    """Returns [{field: text}] of every GPU, for the fields that this nvidia-smi knows."""
    gpus = []
    for fields in _SMI_SETS:
        done = subprocess.run([smi, f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True,
                              timeout=60)
        if done.returncode != 0:
            continue
        for index, line in enumerate(done.stdout.strip().splitlines()):
            if index == len(gpus):
                gpus.append({})
            gpus[index].update(zip(fields.split(","), line.split(", ")))
    return gpus


class Engines:
    """Watches the utilisation of the JPEG engines of GPU 0 (the column `jpg` of nvidia-smi dmon) while it is open."""

    def __init__(self, folder):
        self.why = ""  # the reason why there is no utilisation
        self._process, self._log = None, folder / "dmon.log"
        smi = tool("nvidia-smi")
        if not smi:
            self.why = "no nvidia-smi on this machine"
            return
        with open(self._log, "wb") as out:
            self._process = subprocess.Popen([smi, "dmon", "-s", "u", "-d", "1", "-i", "0"], stdin=subprocess.DEVNULL,
                                             stdout=out, stderr=subprocess.STDOUT)

    def close(self):
        """Stops watching; returns per cent for each second."""
        if self._process is None:
            return []
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None
        text = self._log.read_text(errors="replace")
        found = column(text, "jpg")
        if not found:
            said = [line for line in text.splitlines() if line.strip()]
            self.why = f"nvidia-smi dmon has no figures of engines: {said[-1][:200] if said else 'it said nothing'}"
        return found


def column(text, name):
    """Returns the numbers of a column in the output of nvidia-smi dmon; "-" is none."""
    at, found = None, []
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["#"]:
            if name in words:
                at = words.index(name) - 1
        elif at is not None and at < len(words) and re.fullmatch(r"\d+", words[at]):
            found.append(int(words[at]))
    return found


def has_mig(facts):
    """True if this process sees a MIG slice, according to nvidia-smi."""
    return any(gpu.get("mig.mode.current") == "Enabled" for gpu in facts.get("nvidia_smi", []))


def _read(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return None


def _loads(library):
    """True if the loader finds it, tested in a process of its own: drivers' libraries leave threads behind."""
    done = subprocess.run([sys.executable, "-c", f"import ctypes; ctypes.CDLL({library!r})"], capture_output=True,
                          timeout=PROBE_S)
    return done.returncode == 0


def packages(*names):
    """Returns versions of Python packages of this interpreter; None: not installed."""
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
