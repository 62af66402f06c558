# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/run's facts about a machine from its tools, and a trainer beside a worker; scripts stand in for both."""

import contextlib
import os
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e")]

import findings  # noqa: E402
import machine  # noqa: E402
import runner  # noqa: E402
import tool_steps  # noqa: E402
import trainer_steps  # noqa: E402


class MachineTest(unittest.TestCase):
    DMON = """# gpu     sm    mem    enc    dec    jpg    ofa
# Idx      %      %      %      %      %      %
    0      5      1      0      0     12      0
    0      5      1      0      0      -      0
# gpu     sm    mem    enc    dec    jpg    ofa
# Idx      %      %      %      %      %      %
    0     50     10      0      0     98      0
"""

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="leat-machine-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def tool(self, name, text):
        """Patches machine.tool to find a script `name`."""
        path = self.folder / name
        path.write_text(f"#!{sys.executable}\nimport sys, time\n{text}")
        path.chmod(0o755)
        self.enterContext_(mock.patch.object(machine, "tool", lambda asked: path if asked == name else None))
        return path

    def enterContext_(self, context):
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def lines(self, call):
        """Runs a step, and returns the lines that it writes."""
        path = self.folder / "lines"
        with contextlib.closing(findings.Lines(path)) as lines:
            call(lines)
        return findings.read(path)

    def test_a_column_of_dmon(self):
        self.assertEqual(machine.column(self.DMON, "jpg"), [12, 98])
        self.assertEqual(machine.column(self.DMON, "sm"), [5, 5, 50])
        self.assertEqual(machine.column(self.DMON, "none"), [])
        self.assertEqual(machine.column("no devices", "jpg"), [])

    def test_the_engines_utilisation_is_a_mean_and_a_percentile(self):
        marker = self.folder / "printed"
        self.tool("nvidia-smi", f"print({self.DMON!r}, end='', flush=True)\nopen({str(marker)!r}, 'w').close()\n"
                                "time.sleep(100)")
        engines = machine.Engines(self.folder)
        end = time.monotonic() + 30
        while not marker.exists() and time.monotonic() < end:
            time.sleep(0.01)
        found = self.lines(lambda lines: tool_steps.utilisation(lines, engines, "nvjpeg"))
        self.assertEqual([(line["value"], line["of"]) for line in found],
                         [(55, {"step": "nvjpeg", "which": "mean"}),
                          (12, {"step": "nvjpeg", "which": "95th percentile"})])

    def test_without_figures_of_engines_it_says_why(self):
        self.tool("nvidia-smi", "print('Not supported on this device'); sys.exit(3)")
        engines = machine.Engines(self.folder)
        engines._process.wait(30)  # pylint: disable=protected-access
        (line,) = self.lines(lambda lines: tool_steps.utilisation(lines, engines, "slots"))
        self.assertIn("Not supported on this device", line["why"])
        with mock.patch.object(machine, "tool", lambda name: None):
            engines = machine.Engines(self.folder)
        self.assertEqual((engines.close(), engines.why), ([], "no nvidia-smi on this machine"))

    def test_a_field_that_nvidia_smi_does_not_know_costs_its_set_only(self):
        self.tool("nvidia-smi", "fields = sys.argv[1].partition('=')[2].split(',')\n"
                                "if 'clocks_event_reasons.active' in fields: sys.exit(2)\n"
                                "print(', '.join(f'<{field}>' for field in fields))")
        (gpu,) = machine.smi_fields(machine.tool("nvidia-smi"))
        self.assertEqual(gpu["pcie.link.gen.current"], "<pcie.link.gen.current>")
        self.assertEqual(gpu["clocks_throttle_reasons.active"], "<clocks_throttle_reasons.active>")
        self.assertNotIn("clocks_event_reasons.active", gpu)

    def test_what_the_machine_has(self):
        facts = machine.describe()
        self.assertGreater(facts["memory_bytes"], 1 << 20)
        self.assertIn("hyperthreads", facts)
        self.assertIn("numa_cores", facts)

    def test_a_sanitizer_that_does_not_support_the_device_is_missing(self):
        context = runner.Context(self.folder, self.folder, self.folder, dict(os.environ))
        (self.folder / "checks").mkdir()
        (self.folder / "checks/gpu_fused_device_test").touch()
        said = "========= Error: Device not supported. Please refer to\n========= ERROR SUMMARY: 1 error"
        self.tool("compute-sanitizer", f"print({said!r}); sys.exit(9)")
        (line,) = self.lines(lambda lines: tool_steps.memcheck(context, lines))
        self.assertEqual(line["why"], "it does not support this device")
        self.tool("compute-sanitizer", "print('========= ERROR SUMMARY: 1 error'); sys.exit(9)")
        found = self.lines(lambda lines: tool_steps.initcheck(context, lines))
        self.assertIs(found[-1]["ok"], False)


TORCH = """
import time
bfloat16 = None
class cuda:
    @staticmethod
    def synchronize(): time.sleep(0.001)
def randn(*sides, device, dtype): return sides
def matmul(a, b): pass
"""


class TrainerTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="leat-trainer-test-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def trainer(self, torch):
        (self.folder / "torch.py").write_text(torch)
        made = trainer_steps.Trainer({**os.environ, "PYTHONPATH": str(self.folder)}, self.folder)
        self.addCleanup(made.close)
        return made

    def test_its_products_are_counted_between_two_times(self):
        trainer = self.trainer(TORCH)
        trainer.ready()
        # Each 16 products wait for a millisecond at least.
        self.assertGreater(trainer.rate(0.2), 0)
        self.assertLessEqual(trainer.rate(0.2), 16_000)

    def test_what_was_done_at_a_time_lies_between_samples(self):
        samples = [[10, 0], [11, 100], [11, 100], [13, 140]]
        for at, done in ((9, 0), (10.5, 50), (11, 100), (12, 120), (14, 140)):
            self.assertEqual(trainer_steps.done_until(samples, at), done)

    def test_what_each_loses_is_in_per_cent(self):
        trainer = self.trainer(TORCH)
        trainer.ready()
        rates = iter((100.0, 75.0))

        def rate():
            time.sleep(0.15)
            return next(rates)
        path = self.folder / "lines"
        with contextlib.closing(findings.Lines(path)) as lines:
            trainer_steps.beside(lines, trainer, 1e9, rate, 0.15, {"class": "exact"})
        found = {line["figure"]: line["value"] for line in findings.read(path)}
        self.assertEqual(found["what rows lose by a trainer"], 25)
        self.assertAlmostEqual(found["what a trainer loses by rows"], 100, delta=1)

    def test_one_that_cannot_begin_says_why(self):
        with self.assertRaisesRegex(RuntimeError, "the trainer: ModuleNotFoundError: no CUDA here"):
            self.trainer("raise ModuleNotFoundError('no CUDA here')").ready()


if __name__ == "__main__":
    unittest.main()
