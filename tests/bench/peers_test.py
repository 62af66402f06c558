# SPDX-License-Identifier: Apache-2.0
"""The peers' runner, with fake programs as peers: no library is needed."""

import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import loaders  # noqa: E402
from peers import environment, measured, photos, runner  # noqa: E402

PATIENCE_S = 60  # for processes that end by themselves


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="leat peers ")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


class AnswerTest(Folder):
    """`alive`: a named pipe that fakes hold open, so that its end shows when the last of them has ended."""

    def setUp(self):
        super().setUp()
        self.alive = self.folder / "alive"
        os.mkfifo(self.alive)

    def argv(self, code):
        return [sys.executable, "-c", f"alive = {str(self.alive)!r}\n" + textwrap.dedent(code)]

    def answer(self, code, patience_s=PATIENCE_S, grace_s=PATIENCE_S):
        return runner.answer(self.argv(code), patience_s, grace_s=grace_s)

    def test_the_rate_is_what_the_program_prints_among_other_things(self):
        self.assertEqual(self.answer("print('hello'); print('rate 12.5'); print('rates fell')"), 12.5)

    def test_its_own_reason_is_reported(self):
        self.assertEqual(self.answer("print('absent ModuleNotFoundError: no such')"), "ModuleNotFoundError: no such")

    def test_a_crash_is_reported_with_what_was_said_last(self):
        self.assertEqual(self.answer("raise ValueError('two legs')"), "ValueError: two legs (exit code 1)")
        self.assertEqual(self.answer("import os; os.kill(os.getpid(), 11)"), "it said nothing (killed by SIGSEGV)")

    def test_a_program_that_is_not_there_is_reported(self):
        self.assertIn("No such file", runner.answer([self.folder / "none"], PATIENCE_S))

    def test_one_that_hangs_is_ended_at_its_time(self):
        reader = os.open(self.alive, os.O_RDONLY | os.O_NONBLOCK)
        self.assertEqual(self.answer("import signal; held = open(alive, 'w'); signal.pause()", patience_s=1),
                         "no rate within 1 s")
        self.assert_all_ended(reader)

    def test_what_came_loose_and_ignores_the_request_is_killed(self):
        reader = os.open(self.alive, os.O_RDONLY | os.O_NONBLOCK)
        rate = self.answer("""
            import os, signal
            held = open(alive, "w")
            start, started = os.pipe()
            if os.fork() == 0:
                os.setsid()  # a session of its own, which keeps the output open
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                if os.fork() == 0:
                    os.write(started, b"x")
                    signal.pause()
                os._exit(0)
            os.read(start, 1)
            print("rate 3", flush=True)
            """, grace_s=0.2)
        self.assertEqual(rate, 3)
        self.assert_all_ended(reader)

    def test_processes_are_asked_before_they_are_killed(self):
        rate = self.answer("""
            import os, signal, sys
            start, started = os.pipe()
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, lambda *_: (open(alive + ".asked", "w").close(), os._exit(0)))
                os.write(started, b"x")
                while True:
                    signal.pause()
            os.read(start, 1)
            print("rate 4")
            """)
        self.assertEqual(rate, 4)
        self.assertTrue(pathlib.Path(f"{self.alive}.asked").exists())

    def test_its_temporary_files_go_with_it(self):
        self.answer("import os, tempfile; os.symlink(tempfile.mkdtemp(), alive + '.made'); print('rate 1')")
        made = os.readlink(f"{self.alive}.made")
        self.assertFalse(os.path.exists(os.path.dirname(made)), made)

    def test_nothing_is_left_when_the_runner_is_killed(self):
        for number in (signal.SIGKILL, signal.SIGINT):
            with self.subTest(number):
                hangs = self.argv("import signal; held = open(alive, 'w'); signal.pause()")
                code = f"import sys; sys.path.insert(0, {str(HERE)!r})\nfrom peers import runner\n" \
                       f"runner.answer({hangs!r}, {PATIENCE_S})"
                above = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
                with open(self.alive, "rb") as reader:  # waits until the fake holds the other end
                    above.send_signal(number)
                    self.assertTrue(select.select([reader], [], [], PATIENCE_S / 3)[0], "it is alive")
                self.assertEqual(above.wait(PATIENCE_S), -number)

    def assert_all_ended(self, reader):
        """Reading a pipe without writers gives its end; with a writer it gives "nothing yet"."""
        with open(reader, "rb", buffering=0) as pipe:
            self.assertEqual(pipe.read(), b"")


class PeersTest(Folder):
    def peers(self, **more):
        return runner.Peers(self.folder, 1, 1, lambda peer: "no python", self.folder, **more)

    def test_one_that_was_absent_is_not_tried_again(self):
        with mock.patch.object(runner, "answer", side_effect=["it fell", 7.0]) as answer:
            peers = self.peers()
            self.assertEqual([peers.rate("tfdata"), peers.rate("tfdata"), peers.rate("dali_cpu")],
                             ["it fell", "it fell", 7.0])
            self.assertEqual(answer.call_count, 2)

    def test_a_known_reason_is_given_without_a_try(self):
        self.assertEqual(self.peers(absent={"tfdata": "no wheel"}).rate("tfdata"), "no wheel")

    def test_without_a_compiler_the_yardstick_says_which_package_to_install(self):
        (self.folder / "a.jpg").write_bytes(b"")
        with mock.patch.dict(os.environ, {"PATH": str(self.folder)}):
            self.assertIn("Debian's g++", self.peers().rate("limit"))

    def test_names_of_peers_are_checked(self):
        self.assertEqual(runner.named("limit"), [])
        self.assertEqual(runner.named("tfdata,limit,pillow", ("pillow",)), ["tfdata", "pillow"])
        self.assertEqual(runner.named("all", ("tfdata", "pillow")), [*runner.PEERS, "pillow"])
        with self.assertRaisesRegex(ValueError, "--peers tf_data: want limit, all, none, or some of tfdata"):
            runner.named("tf_data")

    def test_a_line_has_the_median_of_ratios_in_the_same_round(self):
        rounds = [{"limit": 100.0, "x": 50.0, "y": "no"}, {"limit": 300.0, "x": 300.0, "y": "no"},
                  {"limit": 100.0, "x": "it fell", "y": "no"}]
        self.assertEqual(runner.line("x", rounds).split(), "x 175 0.75 50, 300, none: it fell".split())
        self.assertEqual(runner.line("y", rounds).split(), "y absent: no".split())


class MeasuredTest(Folder):
    def test_rate_is_of_what_comes_after_the_first_batches(self):
        clock = iter([0, 10, 20, 30, 31, 32, 33])  # four slow batches, then one a second
        with mock.patch.object(measured.time, "perf_counter", lambda: next(clock)):
            self.assertEqual(measured.rate([[0] * 64] * 10, 3), 64)

    def test_a_loader_that_ends_too_early_has_no_rate(self):
        with self.assertRaisesRegex(RuntimeError, "it ended after 128 images and less than 60 s"):
            measured.rate([[0] * 64] * 6, 60)

    def answered(self, module):
        (self.folder / "a.JPEG").write_bytes(b"")
        code = "import sys, types, peers, peers.measured\nof_fake = types.ModuleType('peers.of_fake')\n" \
               f"{module}\npeers.PEERS['fake'] = ('of_fake', 'batches', {{'step': 2}})\n" \
               "peers.measured.main('fake', *sys.argv[1:])"
        env = {**os.environ, "PYTHONPATH": str(HERE)}
        return runner.answer([sys.executable, "-c", code, self.folder, 0.01, 1], PATIENCE_S, env)

    def test_a_peer_that_works_has_a_rate(self):
        self.assertGreater(self.answered(
            "def batches(files, seconds, threads, step):\n"
            "    print('rate 5')  # of a library\n"
            "    return iter(lambda: [files[0]] * step, None)\n"
            "of_fake.batches = batches; sys.modules['peers.of_fake'] = of_fake"), 5)

    def test_a_peer_that_does_not_import_says_so(self):
        self.assertEqual(self.answered(""), "ModuleNotFoundError: No module named 'peers.of_fake'")


class PhotosTest(Folder):
    MAKER = "#!/bin/sh\nmkdir \"$1\" && echo x >\"$1/0.jpg\" && echo made >>\"$0.log\"\n"

    def maker(self, text=MAKER):
        path = self.folder / "maker"
        path.write_text(text)
        path.chmod(0o755)
        return path

    def test_files_are_found_at_any_depth_in_any_case(self):
        for name in ("b.JPEG", "a.jpg", "c/d/e.Jpeg", "c/f.png", "jpg"):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).touch()
        found = [os.path.relpath(file, self.folder) for file in photos.files(self.folder)]
        self.assertEqual(found, ["a.jpg", "b.JPEG", "c/d/e.Jpeg"])

    def test_a_folder_without_photos_is_an_error_that_names_who_gave_it(self):
        with self.assertRaisesRegex(FileNotFoundError, r"want \.jpg or \.jpeg files.*by --images"):
            photos.choose(self.folder, "maker", self.folder)
        with mock.patch.dict(os.environ, LEAT_TEST_DATA=str(self.folder)):
            with self.assertRaisesRegex(FileNotFoundError, "imagenet-sample: want .*by LEAT_TEST_DATA"):
                photos.choose(None, "maker", self.folder)

    def test_drawn_photos_are_made_once_and_anew_by_another_program(self):
        place, log = self.folder / "place", self.folder / "maker.log"
        with mock.patch.dict(os.environ):
            os.environ.pop("LEAT_TEST_DATA", None)
            first, words = photos.choose(None, self.maker(), place)
            self.assertIn("drawn", words)
            self.assertEqual(photos.choose(None, self.maker(), place)[0], first)
            self.assertEqual(log.read_text(), "made\n")
            second, _ = photos.choose(None, self.maker(self.MAKER + "# another\n"), place)
        self.assertEqual([path.name for path in place.iterdir()], [second.name])

    def test_drawing_that_fails_leaves_nothing(self):
        with self.assertRaisesRegex(OSError, "the pen broke"):
            photos.drawn(self.maker(self.MAKER + "echo the pen broke >&2; exit 1\n"), self.folder / "place")
        self.assertEqual(list((self.folder / "place").iterdir()), [])

    def test_drawing_that_was_interrupted_is_not_taken_for_whole(self):
        (self.folder / "place/photos.making").mkdir(parents=True)
        self.assertEqual(len(photos.files(photos.drawn(self.maker(), self.folder / "place"))), 1)


class EnvironmentTest(Folder):
    REQUIREMENTS = "numpy==2\n# peers: a b\none==1\n# a remark\n# peers: b\ntwo==2\n# peers: c\npillow-simd==3\n"

    def setUp(self):
        super().setUp()
        self.venv, self.file, self.calls, self.refused = self.folder / "venv", self.folder / "requirements", [], {}
        self.file.write_text(self.REQUIREMENTS)
        silent = mock.patch("builtins.print")
        silent.start()
        self.addCleanup(silent.stop)

    def run_fake(self, argv, **_):
        argv = [str(a) for a in argv]
        if argv[1].endswith("keeper.py"):
            argv = argv[4:]
        if argv[1:3] == ["-m", "venv"]:
            (self.venv / "bin").mkdir(parents=True)
            (self.venv / "bin/python").touch()
        if argv[1:3] == ["-m", "pip"]:
            self.calls.append(" ".join(a for a in argv[3:] if not a.startswith("-") and "/" not in a))
            for package, reason in self.refused.items():
                if package == argv[-1]:
                    if isinstance(reason, BaseException):
                        raise reason
                    return subprocess.CompletedProcess(argv, 1, "", reason)
        return subprocess.CompletedProcess(argv, 0, "Python 3.11.2", "")

    def install(self, *peers):
        """Returns pip's arguments, and the absent peers."""
        self.calls.clear()
        made = environment.Environment(self.venv, self.file, self.run_fake)
        made.install(peers)
        return self.calls[:], made.absent

    def test_only_what_the_peers_need_is_installed_and_only_once(self):
        self.assertEqual(self.install("a"), (["install numpy==2 one==1"], {}))
        self.assertEqual(self.install("a"), ([], {}))
        self.assertEqual(self.install("b"), (["install numpy==2 one==1 two==2"], {}))
        self.assertEqual(self.install("a", "b"), ([], {}))
        self.assertEqual(self.install(), ([], {}))

    def test_no_peers_make_no_environment(self):
        self.install()
        self.assertFalse(self.venv.exists())

    def test_other_requirements_make_it_anew(self):
        self.install("a")
        (self.venv / "old").touch()
        self.file.write_text(self.REQUIREMENTS.replace("one==1", "one==1.1"))
        self.assertEqual(self.install("a"), (["install numpy==2 one==1.1"], {}))
        self.assertFalse((self.venv / "old").exists())

    def test_one_that_was_left_half_made_is_made_anew(self):
        self.install("a")
        self.refused["two==2"] = KeyboardInterrupt()
        with self.assertRaises(KeyboardInterrupt):
            self.install("b")
        self.refused.clear()
        (self.venv / "old").touch()
        self.assertEqual(self.install("a"), (["install numpy==2 one==1"], {}))
        self.assertFalse((self.venv / "old").exists())

    def test_a_refused_package_leaves_its_peers_absent_and_is_tried_again(self):
        self.refused["one==1"] = "hm\nERROR: no wheel\nbye"
        calls, absent = self.install("a", "b")
        self.assertEqual(calls, ["install numpy==2 one==1", "install numpy==2 two==2"])
        self.assertEqual(absent, dict.fromkeys("ab", "pip install one==1: ERROR: no wheel"))
        self.refused.clear()
        self.assertEqual(self.install("a"), (["install numpy==2 two==2 one==1"], {}))

    def test_a_full_disk_leaves_nothing(self):
        self.refused["one==1"] = "ERROR: [Errno 28] No space left on device"
        with self.assertRaisesRegex(OSError, "the disk is full"):
            self.install("a")
        self.assertFalse(self.venv.exists())

    def test_pillow_simd_takes_pillows_place_after_whatever_brings_that(self):
        place = ["wheel pillow-simd==3", "uninstall pillow pillow-simd", "install pillow-simd==3"]
        self.assertEqual(self.install("c"), (["install numpy==2", *place], {}))
        self.assertEqual(self.install("a"), (["install numpy==2 one==1", *place], {}))

    def test_pillow_stays_where_its_substitute_cannot_be_built(self):
        self.refused["pillow-simd==3"] = "RequiredDependencyException: jpeg"
        calls, absent = self.install("a", "c")
        self.assertEqual(calls[-1], "wheel pillow-simd==3")
        self.assertEqual(list(absent), ["c"])

    def test_the_real_requirements_have_every_peer_and_fixed_versions(self):
        having = set()
        for own in ("", *(f"-{name}" for name in environment.OWN)):
            text = environment.REQUIREMENTS.with_name(f"requirements{own}.txt").read_text()
            common, *found = environment.sections(text)
            self.assertEqual(common[0], None)
            having |= {name for names, _ in found for name in names}
            for line in common[1] + [line for _, lines in found for line in lines]:
                self.assertRegex(line, r"^[\w.\[\]-]+==[\w.]+$")
        self.assertEqual(set(runner.PEERS) - having, set())

    def test_a_peer_with_requirements_of_its_own_has_its_own_environment(self):
        every = environment.Environments(self.folder)
        self.assertEqual(every.python("ffcv"), self.folder / "peers-ffcv-venv/bin/python")
        self.assertEqual(every.python("tfdata"), self.folder / "peers-venv/bin/python")

    def test_peers_whose_debian_packages_are_refused_are_absent(self):
        refuse = mock.Mock(side_effect=lambda argv, **_: subprocess.CompletedProcess(
            argv, int("bench-peers" in argv), "", "install-dependencies: error: no network"))
        every = environment.Environments(self.folder, refuse)
        every.install(["spdl", "ffcv"])
        self.assertEqual(every.absent, dict.fromkeys(
            ("spdl", "ffcv"), "Debian's packages: install-dependencies: error: no network"))
        self.assertEqual(sorted(path.suffix for path in self.folder.glob("peers*")), [".lock"] * 3)


class EpochsTest(Folder):
    def test_the_first_epoch_counts_from_the_start_and_the_tenth_alone(self):
        clock = iter(range(10, 1000, 10))  # each epoch takes ten seconds
        with mock.patch.object(measured.time, "perf_counter", lambda: next(clock)):
            self.assertEqual(measured.epochs(-10, iter(lambda: [0] * 100, None), 100), (5, 10))

    def test_a_batch_across_an_epochs_end_counts_once(self):
        clock = iter(range(1, 1000))
        with mock.patch.object(measured.time, "perf_counter", lambda: next(clock)):
            first, tenth = measured.epochs(0, iter(lambda: [0] * 64, None), 100)
        self.assertEqual((first, tenth), (128, 64))

    def test_a_loader_that_ends_too_early_has_no_epochs(self):
        with self.assertRaisesRegex(RuntimeError, "it ended after 300 images, before 10 epochs of 100"):
            measured.epochs(0, [[0] * 100] * 3, 100)


class LoadersTest(Folder):
    FOUND = {"photos": 5000, "prepare_s": {"ffcv": 12.4},
             "rounds": [{"limit": 100.0, "leat": [110.0, 700.0], "ffcv": [50.0, 60.0], "spdl": "no wheel"},
                        {"limit": 200.0, "leat": [200.0, 1400.0], "ffcv": "it fell", "spdl": "no wheel"}]}

    def test_the_table_has_both_epochs_who_is_absent_and_what_it_took_to_prepare(self):
        text = loaders.table(self.FOUND)
        self.assertIn("| Leat | 155 | 1.05 | 1050 | 7.00 | 110 / 700, 200 / 1400 |\n", text)
        self.assertIn("| FFCV, JPEG mode | 50 | 0.50 | 60 | 0.60 |", text)
        self.assertIn("50 / 60, none: it fell |", text)
        self.assertIn("* SPDL is absent: no wheel\n* FFCV, JPEG mode took 12 s", text)

    def test_every_peer_has_a_title(self):
        self.assertEqual({*runner.PEERS, *loaders.LEAT}, set(loaders.TITLES))

    def test_the_page_gets_the_table_and_the_chart_two_bars_a_loader(self):
        page, target = self.folder / "page.md", self.folder / "chart.svg"
        page.write_text(f"before\n{loaders.BEGIN}old\n{loaders.END}after\n")
        loaders.write(self.FOUND, page, target)
        self.assertEqual(page.read_text(),
                         f"before\n{loaders.BEGIN}{loaders.table(self.FOUND)}{loaders.END}after\n")
        self.assertEqual(target.read_text().count("<rect"), 1 + 2 * 2)

    def test_a_page_without_marks_is_an_error(self):
        page = self.folder / "page.md"
        page.write_text("nothing\n")
        with self.assertRaisesRegex(ValueError, "page.md: want the lines"):
            loaders.write(self.FOUND, page, self.folder / "chart.svg")

    def test_the_measurements_page_has_the_marks(self):
        self.assertLess(loaders.PAGE.read_text().index(loaders.BEGIN), loaders.PAGE.read_text().index(loaders.END))


if __name__ == "__main__":
    unittest.main()
