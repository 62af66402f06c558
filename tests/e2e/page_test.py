# SPDX-License-Identifier: Apache-2.0
"""The coordinator's page, as a browser, a script, and a page of another site see it."""

import base64
import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import time
import unittest
import urllib.parse

import cluster
from browser import Browser, PrefixProxy
from cluster import PATIENCE_S, program

MANY = 10_000
WORKERS, CONSUMERS, JOBS = 1000, 12, ("resnet50", "vit-l.pretrain")
MARKUP = "<img/src=x/onerror=alert(1)>"
OWN = "an-own-token-of-the-daemon"
LOAD_S = 1.0


class Crowd:
    """leat_crowd, once it is ready."""

    def __init__(self, address, workers, consumers, jobs, env=None):
        self.process = subprocess.Popen(
            [program("CROWD"), address, MARKUP, str(workers), str(consumers), *jobs], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, bufsize=0, env={**os.environ, **(env or {})})
        line = cluster.read_line(self.process.stdout, "leat_crowd")
        if line != "ready":
            raise AssertionError(f"leat_crowd said {line!r}")

    def close(self):
        self.process.stdin.close()
        self.process.wait(PATIENCE_S)
        self.process.stdout.close()


def http_address(daemon):
    return re.search(r"http\.serving address=(\S+)", pathlib.Path(daemon.log).read_text())[1]


def ask(address, path, method="GET", body=None, **fields):
    """Status, fields and text."""
    connection = http.client.HTTPConnection(address, timeout=PATIENCE_S)
    try:
        connection.request(method, path, body=body,
                           headers={name.replace("_", "-"): value for name, value in fields.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


class PageTest(cluster.ClusterTest):
    def start(self, *flags, listen="127.0.0.1:0", http="127.0.0.1:0", env=None):
        """A coordinator that takes nobody for lost who is late on a busy machine."""
        argv = [program("COORDINATOR"), "--listen", listen, "--http", http, "--lost-after-ms", "30000",
                "--state", str(self.folder / "state"), *flags]
        self.coordinator = self._keep(cluster.Daemon("coordinator", argv, self._log("coordinator"), env))
        self.address = http_address(self.coordinator)
        return f"http://{self.address}/"

    def crowd(self, workers=WORKERS, consumers=CONSUMERS, jobs=JOBS, env=None):
        """Comes, and has been heard of."""
        crowd = self._keep(Crowd(self.coordinator.address, workers, consumers, jobs, env))
        token = {"Authorization": f"Bearer {env['LEAT_ACCESS_TOKEN']}"} if env else {}

        def heard():
            state = json.loads(ask(self.address, "/api/state", **token)[2])
            told = sum("stats" in worker for worker in state["status"].get("workers", []))
            return told == workers and sum(int(each["stats"].get("rows_total", 0)) > 0
                                           for each in state["consumers"]) == consumers * len(jobs)

        self.until("the crowd is there", heard)
        return crowd

    def browser(self, **options):
        return self._keep(Browser(self.folder, **options))

    def state(self):
        return json.loads(ask(self.address, "/api/state")[2])

    def cli(self, *words):
        """What the CLI reads."""
        done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, *words, "-o", "json"],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertIn(done.returncode, (0, 6), done.stderr)
        return json.loads(done.stdout)

    def shown(self, browser):
        self.until("the page shows a state", lambda: browser.ask("document.body.dataset.shown"))


class DocumentTest(PageTest):
    """What needs no browser."""

    def test_a_script_and_another_site(self):
        self.start()
        self.crowd(3, 1, ("cats",))
        status, fields, text = ask(self.address, "/")
        self.assertEqual(status, 200)
        policy = fields["Content-Security-Policy"]
        self.assertNotIn("unsafe", policy)
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertEqual(fields["X-Content-Type-Options"], "nosniff")
        self.assertEqual(fields["Referrer-Policy"], "no-referrer")
        # Nothing in it is of another origin, or of a fixed place.
        for name in re.findall(r'(?:src|href|action)="([^"]*)"', text):
            self.assertNotRegex(name, r"^(/|[a-z]+:)")
        assets = re.findall(r'(?:src|href)="(assets/[^"]*)"', text)
        self.assertGreater(len(assets), 4)
        for name in assets:
            status, fields, _ = ask(self.address, "/" + name)
            self.assertEqual(status, 200, name)
            self.assertIn("immutable", fields["Cache-Control"])
        self.assertEqual(ask(self.address, "/assets/0123456789abcdef/app.js")[0], 404)
        for path in ("/nothing", "/assets/", "/api/", "/index.html"):
            self.assertEqual(ask(self.address, path)[0], 404, path)
        for path in ("/api/state", "/live", "/api/history?job=cats&minutes=5", "/api/worker?name=node-0001",
                     "/api/sheet?job=cats"):
            for fields in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"}):
                self.assertEqual(ask(self.address, path, **fields)[0], 403, (path, fields))
            self.assertEqual(ask(self.address, path, Host="evil.example")[0], 421, path)
        self.assertEqual(json.loads(ask(self.address, "/api/worker?name=node-0001")[2])["name"], "node-0001")
        self.assertEqual(ask(self.address, "/api/worker?name=nobody")[0], 404)
        self.assertEqual(ask(self.address, "/api/history?job=none&minutes=5")[0], 404)
        self.assertEqual(ask(self.address, "/api/sheet?job=none")[0], 404)
        # The crowd's consumers answer no wish, so that there is nothing to show.
        self.assertEqual(json.loads(ask(self.address, "/api/sheet?job=cats")[2]), {"consumers": True, "sheet": None})
        for minutes in ("", "0", "61", "x", "-1", "5x"):
            self.assertEqual(ask(self.address, f"/api/history?job=cats&minutes={minutes}")[0], 400, minutes)

    def test_the_state_is_what_the_cli_reads(self):
        self.start()
        self.crowd(20, 3, ("cats", "dogs"))
        state, status = self.state(), self.cli("status")
        for field in ("version", "address", "started_at"):
            self.assertEqual(state["status"][field], status[field])
        self.assertEqual({each["name"]: each["stats"]["rows_per_s"] for each in state["status"]["workers"]},
                         {each["name"]: each["stats"]["rows_per_s"] for each in status["workers"]})
        for own, told in zip(state["status"]["jobs"], status["jobs"]):
            for field in ("rows_per_s", "stall_fraction"):
                self.assertEqual(own[field], told[field])
            for field in ("consumers", "epoch", "step", "steps_per_epoch"):
                self.assertEqual(int(own[field]), told[field])
        self.assertEqual(state["total"]["rows_per_s"], sum(each["stats"]["rows_per_s"] for each in status["workers"]))
        # What time changes is the same at one time.
        told = lambda status: ([job["limited_by"] for job in status["jobs"]],  # noqa: E731
                               [(each["code"], each["summary"]) for each in status["findings"]])
        self.until("both say the same", lambda: told(self.state()["status"]) == told(self.cli("status")))

    def test_events_go_on_where_a_viewer_was(self):
        self.start()
        self.crowd(2, 1, ("cats",))

        def first(**fields):
            """The first events of a stream: their id, and what they are."""
            connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
            self.addCleanup(connection.close)
            headers = {name.replace("_", "-"): value for name, value in fields.items()}
            connection.request("GET", "/live", headers=headers)
            stream = connection.getresponse()
            self.assertEqual(stream.headers["Content-Type"], "text/event-stream")
            found = {}
            while "state" not in found:
                name = stream.readline().decode().partition("event: ")[2].strip()
                if not name:
                    continue
                line = stream.readline().decode()
                if line.startswith("id: "):
                    found["id"], line = line[4:].strip(), stream.readline().decode()
                found[name] = json.loads(line.partition("data: ")[2])
            return found

        all_ = first()
        self.assertIn("job.created", [event["type"] for event in all_["happened"]["events"]])
        instance, _, sequence = all_["id"].partition("-")
        later = first(Last_Event_ID=all_["id"]).get("happened", {"events": []})
        self.assertTrue(all(int(event["sequence"]) > int(sequence) for event in later["events"]))
        before = first(Last_Event_ID=f"{instance}-{int(sequence) - 1}")
        self.assertEqual(before["happened"]["events"][0]["sequence"], sequence)
        # The numbers of another start, and what is no number, mean nothing.
        told = all_["happened"]["events"]
        for other in (f"{int(instance) + 1}-{sequence}", "x-y", "-", sequence):
            self.assertEqual(first(Last_Event_ID=other)["happened"]["events"][:len(told)], told)

    def test_a_session_stands_for_a_token(self):
        self.start(env={"LEAT_ACCESS_TOKEN": OWN})
        made = {}
        for role in ("viewer", "worker", "trainer"):
            done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "access", "create",
                                   "--role", role, "--name", role], capture_output=True, text=True, timeout=PATIENCE_S,
                                  env={**os.environ, "LEAT_ACCESS_TOKEN": OWN})
            self.assertEqual(done.returncode, 0, done.stderr)
            made[role] = done.stdout.split()[-1]

        def sign_in(token, **fields):
            return ask(self.address, "/sign-in", "POST", urllib.parse.urlencode({"token": token}), **fields)

        status, _, text = ask(self.address, "/")
        self.assertEqual(status, 401)
        self.assertIn('action="sign-in"', text)
        self.assertNotIn("Workers", text)
        for path in ("/api/state", "/live", "/api/history?job=a&minutes=5", "/api/worker?name=a", "/api/sheet?job=a"):
            self.assertEqual(ask(self.address, path)[0], 401, path)
        for wrong in ("", "x" * 3000, "<b>" * 9, made["viewer"][:-1], made["worker"]):
            status, fields, text = sign_in(wrong)
            self.assertEqual(status, 401, wrong[:20])
            self.assertNotIn("Set-Cookie", fields)
            self.assertNotIn("<b>", text)
        self.assertEqual(sign_in(made["viewer"], Origin="http://evil.example")[0], 403)
        status, fields, _ = sign_in(made["viewer"], Origin=f"http://{self.address}")
        self.assertEqual((status, fields["Location"]), (303, "./"))
        self.assertRegex(fields["Set-Cookie"], r"^leat_session=[0-9a-f]{64}; HttpOnly; SameSite=Strict$")
        self.assertNotIn(made["viewer"], fields["Set-Cookie"])
        cookie = fields["Set-Cookie"].partition(";")[0]
        self.assertEqual(ask(self.address, "/", Cookie=cookie)[0], 200)
        self.assertEqual(ask(self.address, "/api/state", Cookie=cookie)[0], 200)
        self.assertEqual(ask(self.address, "/api/state", Cookie=cookie[:-1])[0], 401)
        self.assertEqual(ask(self.address, "/api/state", Authorization=f"Bearer {made['viewer']}")[0], 200)
        # Rows are for who may pull them, also on a page.
        for role, answer in (("viewer", 403), ("trainer", 404)):
            status, _, text = ask(self.address, "/api/sheet?job=none", Authorization=f"Bearer {made[role]}")
            self.assertEqual(status, answer, text)
        second = sign_in(made["viewer"])[1]["Set-Cookie"].partition(";")[0]
        self.assertEqual(ask(self.address, "/sign-out", "POST", "", Cookie=second)[0], 303)
        self.assertEqual(ask(self.address, "/api/state", Cookie=second)[0], 401)
        # A token that is revoked opens nothing, and ends the streams of its sessions.
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/live", headers={"Cookie": cookie})
        stream = connection.getresponse()
        done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "access", "revoke", "viewer"],
                              capture_output=True, timeout=PATIENCE_S, env={**os.environ, "LEAT_ACCESS_TOKEN": OWN})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(stream.read().endswith(b"event: denied\ndata: {}\n\n"))
        self.assertEqual(ask(self.address, "/api/state", Cookie=cookie)[0], 401)


class ManyTest(PageTest):
    def test_ten_thousand_workers(self):
        """The page, its state, `top` and `get` answer within bounds of time and memory."""
        self.start()
        maps = pathlib.Path(f"/proc/{self.coordinator.process.pid}/maps").read_text()
        if "libasan" in maps or "libtsan" in maps:
            self.skipTest("a sanitizer takes ten times the time and memory")
        self._keep(Crowd(self.coordinator.address, MANY, 2, ("cats",)))
        self.until("all are there", lambda: self.state()["counts"]["workers"] == MANY)
        for path, most in (("/", 256 << 10), ("/api/state", 1 << 20)):
            begin = time.monotonic()
            status, _, text = ask(self.address, path)
            self.assertEqual(status, 200)
            self.assertLess(time.monotonic() - begin, 2, path)  # 0.06 s, and others use the machine
            self.assertLess(len(text), most, path)
        state = self.state()
        self.assertEqual(len(state["status"]["workers"]), 2000)
        self.until("they told their rates", lambda: self.state()["total"]["rows_per_s"] > 400 * MANY)
        # Both at a time: each takes a core for some seconds.
        output = {what: (self.folder / what).open("w+") for what in ("top", "get")}
        leat = [program("CLI"), "--coordinator", self.coordinator.address]
        running = {what: subprocess.Popen([*leat, what, "workers", *(["--count", "1"] if what == "top" else [])],
                                          stdout=output[what]) for what in output}
        for what, process in running.items():
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0, what)
            self.assertLess(usage.ru_utime + usage.ru_stime, 20, what)  # 5 s
            self.assertLess(usage.ru_maxrss, 1 << 20, what)  # KiB; 540 MiB
        shown = {}
        for what, file in output.items():
            file.seek(0)
            shown[what] = file.read().splitlines()
            file.close()
        self.assertIn(f"workers 32 of {MANY}", shown["top"][0])
        self.assertLess(len(shown["top"]), 40)
        self.assertEqual(len(shown["get"]), MANY + 1)
        peak = re.search(r"VmHWM:\s+(\d+) kB",
                         pathlib.Path(f"/proc/{self.coordinator.process.pid}/status").read_text())[1]
        self.assertLess(int(peak), 512 << 10)  # 310 MiB


class BrowserTest(PageTest):
    def test_a_thousand_workers(self):
        page = self.start("--cluster", "prod-a")
        self.crowd()
        browser = self.browser()
        times = []
        while not times or min(times) >= LOAD_S:
            # The machine may be busy with other tests.
            self.assertLess(len(times), 10, times)
            browser.open(page)
            self.shown(browser)
            times.append(browser.ask("performance.getEntriesByName('shown')[0].startTime") / 1000)
        self.until("the figures are there", lambda: browser.values("#jobs .chosen .figures"))
        self.assertEqual(browser.ask("document.querySelectorAll('#workers .tile[data-key]').length"), WORKERS)
        self.equal_to_the_api(browser)
        self.as_text(browser)
        self.with_keys(browser)
        self.narrow(browser)
        # The whole page in both colours, for who looks at it.
        if folder := os.environ.get("LEAT_SCREENSHOTS"):
            self.until("there is a past", lambda: browser.ask(
                "document.querySelectorAll('#strip .hosts li').length") == CONSUMERS)
            for name, dark in (("light", False), ("dark", True)):
                browser.look(dark=dark, height=int(browser.ask("document.documentElement.scrollHeight")))
                browser.driver.save_screenshot(str(pathlib.Path(folder) / f"page-{name}.png"))
        self.assertEqual(browser.complaints(), [])

    def equal_to_the_api(self, browser):
        """Every number in the banners, the tiles, the queues and the caches, but for totals that grow."""
        state, status = self.state(), self.cli("status")
        jobs = {job["job"]["spec"]["name"]: job for job in status["jobs"]}
        for name in JOBS:
            job = jobs[name]
            self.assertEqual(browser.values(f"#jobs [data-key='{name}'] .facts"),
                             [job[field] for field in ("rows_per_s", "stall_fraction", "epoch", "step", "consumers")])
        titles = browser.driver.execute_script(
            "return Object.fromEntries([...document.querySelectorAll('#workers .tile[data-key]')]"
            ".map((tile) => [tile.dataset.key, tile.title]));")
        median = statistics.median_high
        for worker in status["workers"]:
            rate = worker["stats"]["rows_per_s"]
            self.assertIn(f"{worker['name']}: {rate:.0f} rows/s" if rate < 1000 else
                          f"{worker['name']}: {rate / 1000:.2f} k rows/s", titles[worker["name"]])
        rates = [worker["stats"]["rows_per_s"] for worker in status["workers"] if not worker["devices"]]
        self.assertEqual(next(each for each in state["classes"] if each["name"] == "CPU, 8 threads")
                         ["median_rows_per_s"], median(rates))
        depths = {stage["stage"]: int(stage.get("queue_depth", 0)) for stage in state["stages"]}
        levels = browser.values("#queues .level")
        for stage, own in (("READ", 12 * WORKERS), ("DECODE", 84 * WORKERS), ("SEND", 3 * WORKERS)):
            self.assertEqual(depths[f"STAGE_{stage}"], own)
            self.assertIn(own, levels)
        self.assertIn(20 * WORKERS, levels)
        self.assertEqual(browser.values("#storage .numbers")[2], (3 << 30) * WORKERS)
        # What limits a job is the API's, as the figures behind it.
        told = self.cli("bottleneck", JOBS[0])
        self.assertEqual(len(told["figures"]), 3)
        for own, figure in zip(browser.values("#jobs .chosen .figures"), told["figures"]):
            self.assertLess(abs(own - figure["value"]), 5, figure["what"])
        self.assertIn(jobs[JOBS[0]]["limited_by"], browser.texts("#jobs .chosen .limit")[0])

    def as_text(self, browser):
        """Names that are markup are shown, and are none."""
        self.assertEqual(browser.ask("document.querySelectorAll('main img').length"), 0)
        self.until("the strip is there", lambda: browser.ask("document.querySelectorAll('#strip .hosts li').length"))
        self.assertTrue(any(MARKUP in text for text in browser.texts("#strip .hosts li")))
        self.assertTrue(any(MARKUP in text for text in browser.texts("#findings li")), browser.texts("#findings li"))
        browser.driver.execute_script("document.querySelector(\"#workers [data-key='node-0003']\").click();")
        self.until("the worker is shown", lambda: browser.texts("#worker h3") == ["node-0003"])
        self.assertTrue(any(MARKUP in text for text in browser.texts("#worker dd")))

    def with_keys(self, browser):
        """The arrow keys walk from tile to tile, of which one alone is on the way of the tabulator."""
        from selenium.webdriver.common.keys import Keys
        self.assertEqual(browser.ask("document.querySelectorAll(\"#workers .tile[tabindex='0']\").length"), 1)
        browser.driver.execute_script("document.querySelector(\"#workers .tile[tabindex='0']\").focus();")
        first = browser.ask("document.activeElement.dataset.key")
        browser.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
        second = browser.ask("document.activeElement.dataset.key")
        self.assertNotEqual(first, second)
        browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
        self.until("the worker is shown", lambda: browser.texts("#worker h3") == [second])

    def narrow(self, browser):
        """40 columns of text are wide enough: nothing is scrolled sideways."""
        browser.look(width=320, height=700)
        self.assertEqual(browser.ask("innerWidth"), 320)
        self.assertLessEqual(browser.ask("document.documentElement.scrollWidth"), 320)
        browser.look()

    def test_it_goes_on_when_the_coordinator_is_back(self):
        page = self.start()
        browser = self.browser()
        browser.open(page)
        self.shown(browser)
        self.until("it is live", lambda: "live" in browser.texts("#connection")[0])
        self.assertEqual(browser.complaints(), [])
        before = browser.ask("document.body.dataset.shown")
        self.coordinator.kill9()
        self.until("it says so", lambda: "not connected" in browser.texts("#connection")[0])
        browser.complaints()  # that nobody answers
        self.start(listen=self.coordinator.address, http=self.address)
        self.until("it is live again", lambda: "live" in browser.texts("#connection")[0]
                   and browser.ask("document.body.dataset.shown") > before)
        # Events of another start are told from the beginning.
        self.until("it tells the start", lambda: "coordinator.started" in browser.texts("#events code"))

    def test_what_limits_a_training(self):
        """One that is real: a decode thread is not enough for a trainer that takes whatever comes."""
        page = self.start()
        self.start_worker(threads=1)
        spec = self.spec(cluster.train_graph(cluster.photos(), 64), batch=16)
        self.consumer(spec, "--rate-s", 600, env={"LEAT_PLANE": "grpc"})
        browser = self.browser()
        browser.open(page)
        self.shown(browser)
        self.until("the banner says so",
                   lambda: browser.texts("#jobs .chosen .limit") == ["limited by decode (CPU)"])
        self.assertEqual(len(browser.texts("#jobs .chosen .figures li")), 3)
        self.assertIn("add workers, or threads", browser.texts("#jobs .chosen .advice")[0])
        self.assertEqual(browser.complaints(), [])

    def test_rows_as_the_trainer_gets_them(self):
        page = self.start()
        self.start_worker(threads=1)
        spec = self.spec(cluster.train_graph(cluster.photos(), 64), batch=16)
        self.consumer(spec, "--rate-s", 600, env={"LEAT_PLANE": "grpc"})
        browser = self.browser()
        browser.open(page)
        self.shown(browser)
        self.until("the job is there", lambda: "job" in browser.texts("#job-title")[0])
        self.assertEqual(browser.texts("#sheet .rows figure"), [])  # nobody has looked yet
        browser.driver.execute_script("document.querySelector('#sheet .look').click();")
        self.until("rows are shown", lambda: len(browser.texts("#sheet .rows figure")) == 12)
        self.assertRegex(browser.texts("#sheet .state")[0], r"^epoch \d+, step [\d,]+, of .*: the first 12 rows of \w")
        self.assertEqual(browser.complaints(), [])  # reading pixels back is one
        # Pixel by pixel the API's, of a picture that is one.
        drawn = browser.ask("""(() => {
          const canvas = document.querySelector("#sheet .rows canvas");
          const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
          return [canvas.width, canvas.height, [...data].filter((_, i) => i % 4 < 3)];
        })()""")
        self.assertEqual(drawn[:2], [64, 64])
        self.assertGreater(len(set(drawn[2])), 20)
        self.assertTrue(all(text for text in browser.texts("#sheet figcaption")))

        def same():
            told = json.loads(ask(self.address, "/api/sheet?job=job")[2])["sheet"]
            shown = browser.ask("""[...document.querySelectorAll("#sheet .rows canvas")].map((canvas) =>
              [...canvas.getContext("2d").getImageData(0, 0, 64, 64).data].filter((_, i) => i % 4 < 3))""")
            return [list(base64.b64decode(tile["rgb"])) for tile in told["tiles"]] == shown
        self.until("both show the same rows", same)

    def test_a_job_ends_while_it_is_watched_by_another_clock(self):
        page = self.start()
        crowd = self.crowd(2, 1, ("cats",))
        browser = self.browser()
        browser.set_clock(ahead_s=60)
        browser.open(page)
        self.shown(browser)
        self.until("it is watched", lambda: "cats" in browser.texts("#job-title")[0])
        browser.driver.execute_script("document.querySelector('#workers .tiles .tile').click();")
        self.until("the worker is shown", lambda: browser.texts("#worker h3"))
        since = [text for text in browser.texts("#worker dl div") if text.startswith("Here since")]
        self.assertRegex(since[0], r"^Here since[1-4]?\d s$")  # by the coordinator's clock
        crowd.close()
        self.until("nobody pulls", lambda: "nobody pulls" in browser.texts("#jobs .chosen .limit")[0])
        done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "delete", "job", "cats",
                               "--yes"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.until("there is none", lambda: browser.texts("#jobs-title") == ["Jobs: there are none"])
        self.assertEqual(browser.texts("#jobs article"), [])
        self.until("and no chart of it", lambda: browser.ask("document.querySelector('#job').hidden"))
        self.assertEqual(browser.complaints(), [])

    def test_behind_a_prefix(self):
        self.start()
        self.crowd(4, 1, ("cats",))
        proxy = self._keep(PrefixProxy(self.address))
        browser = self.browser()
        browser.open(proxy.address)
        self.shown(browser)
        self.assertEqual(browser.ask("document.querySelectorAll('#workers .tile[data-key]').length"), 4)
        self.until("it is live", lambda: "live" in browser.texts("#connection")[0])
        browser.driver.execute_script("document.querySelector('#workers .tiles .tile').click();")
        self.until("the worker is shown", lambda: browser.texts("#worker h3"))
        self.assertEqual(browser.complaints(), [])

    def test_without_scripts_it_is_tables(self):
        page = self.start(env={"LEAT_ACCESS_TOKEN": OWN})
        self.crowd(300, 1, ("cats",), env={"LEAT_ACCESS_TOKEN": OWN})
        browser = self.browser(scripts=False)
        from selenium.webdriver.common.by import By
        browser.open(page)
        browser.driver.find_element(By.ID, "token").send_keys(OWN)
        browser.driver.find_element(By.TAG_NAME, "button").click()

        def judged():
            browser.driver.refresh()
            text = browser.driver.find_element(By.TAG_NAME, "main").text
            return text if "decode threads" in text else None

        text = self.until("the job is judged", judged)
        for part in ("Job cats", "What to change:", "Findings", "Stages, in the last minute", "node-0001",
                     "100 more are not shown", MARKUP, "Cache and storage", "worker.joined"):
            self.assertTrue(part in text, part)
        self.assertEqual(browser.driver.find_elements(By.CSS_SELECTOR, "main img"), [])
        self.assertEqual([each["httpOnly"] for each in browser.driver.get_cookies()], [True])


if __name__ == "__main__":
    unittest.main()
