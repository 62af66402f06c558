# SPDX-License-Identifier: Apache-2.0
"""The coordinator's page, as a browser shows it."""

import base64
import json
import statistics
import subprocess
import unittest

import cluster
from browser import PrefixProxy
from cluster import PATIENCE_S, node, program
from page import JOBS, MARKUP, OWN, WORKERS, PageTest, ask

LOAD_S = 1.0


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
        self.assertEqual(browser.complaints(), [])

    def equal_to_the_api(self, browser):
        """Compares every number in the banners, the tiles, the queues and the caches, except totals that grow."""
        def status_as_shown():
            # The stall covers a running minute, and on a busy machine the page may be seconds old.
            status = self.cli("status")
            jobs = {job["job"]["spec"]["name"]: job for job in status["jobs"]}
            stalls = {name: browser.values(f"#jobs [data-key='{name}'] .facts")[1] for name in JOBS}
            return status if all(abs(stalls[name] - jobs[name]["stall_fraction"]) <= 0.05 for name in JOBS) else None
        status = self.until("the page shows the stalls of the API", status_as_shown)
        state = self.state()
        jobs = {job["job"]["spec"]["name"]: job for job in status["jobs"]}
        for name in JOBS:
            job = jobs[name]
            rate, _, *rest = browser.values(f"#jobs [data-key='{name}'] .facts")
            self.assertEqual([rate, *rest], [job[field] for field in ("rows_per_s", "epoch", "step", "consumers")])
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
        # The limit of a job is the API's, and so are the figures behind it.
        told = self.cli("bottleneck", JOBS[0])
        self.assertEqual(len(told["figures"]), 3)
        for own, figure in zip(browser.values("#jobs .chosen .figures"), told["figures"]):
            self.assertLess(abs(own - figure["value"]), 5, figure["what"])
        self.assertIn(jobs[JOBS[0]]["limited_by"], browser.texts("#jobs .chosen .limit")[0])

    def as_text(self, browser):
        """Names that are markup are shown as text."""
        self.assertEqual(browser.ask("document.querySelectorAll('main img').length"), 0)
        self.until("the strip is there", lambda: browser.ask("document.querySelectorAll('#strip .hosts li').length"))
        self.assertTrue(any(MARKUP in text for text in browser.texts("#strip .hosts li")))
        self.assertTrue(any(MARKUP in text for text in browser.texts("#findings li")), browser.texts("#findings li"))
        browser.driver.execute_script("document.querySelector(\"#workers [data-key='node-0003']\").click();")
        self.until("the worker is shown", lambda: browser.texts("#worker h3") == ["node-0003"])
        self.assertTrue(any(MARKUP in text for text in browser.texts("#worker dd")))

    def with_keys(self, browser):
        """The arrow keys walk from tile to tile; only one of them is reached by the tab key."""
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
        """40 columns of text are wide enough: nothing needs to be scrolled sideways."""
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
        browser.complaints()  # that the server does not answer
        self.start(listen=self.coordinator.address, http=self.address)
        self.until("it is live again", lambda: "live" in browser.texts("#connection")[0]
                   and browser.ask("document.body.dataset.shown") > before)
        # Events of another start are shown from the beginning.
        self.until("it tells the start", lambda: "coordinator.started" in browser.texts("#events code"))

    def test_what_limits_a_training(self):
        """A real limit: one decode thread is not enough for a trainer that takes rows at once."""
        page = self.start()
        self.start_worker(threads=1)
        # Each row is a lot of work and few bytes, so that decoding is the limit on a busy machine too.
        graph = cluster.train_graph(cluster.photos(), 2000)
        small = {"ints_value": {"values": [32, 32]}}
        graph["nodes"].append(node("resize", (4, 0), size=small))
        graph["outputs"][0]["ref"]["node"] = 5
        spec = self.spec(graph, batch=16)
        self.consumer(spec, "--rate-s", 600, env={"LEAT_TRANSPORT": "grpc"})
        browser = self.browser()
        browser.open(page)
        self.shown(browser)
        self.until("the banner says so",
                   lambda: browser.texts("#jobs .chosen .limit")[0].startswith("limited by decode and augment ("))
        self.assertEqual(len(browser.texts("#jobs .chosen .figures li")), 3)
        self.assertIn("add workers, or threads", browser.texts("#jobs .chosen .advice")[0])
        self.assertEqual(browser.complaints(), [])

    def test_rows_as_the_trainer_gets_them(self):
        page = self.start()
        self.start_worker(threads=1)
        spec = self.spec(cluster.train_graph(cluster.photos(), 64), batch=16)
        self.consumer(spec, "--rate-s", 600, env={"LEAT_TRANSPORT": "grpc"})
        browser = self.browser()
        browser.open(page)
        self.shown(browser)
        self.until("the job is there", lambda: "job" in browser.texts("#job-title")[0])
        self.assertEqual(browser.texts("#sheet .rows figure"), [])  # no preview was requested yet
        browser.driver.execute_script("document.querySelector('#sheet .look').click();")
        self.until("rows are shown", lambda: len(browser.texts("#sheet .rows figure")) == 12)
        self.assertRegex(browser.texts("#sheet .state")[0], r"^epoch \d+, step [\d,]+, of .*: the first 12 rows of \w")
        self.assertEqual(browser.complaints(), [])  # reading pixels back gives one
        # The first picture's pixels are the API's, one by one.
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
        self.until("no consumer pulls", lambda: "no consumer" in browser.texts("#jobs .chosen .limit")[0])
        done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "delete", "job", "cats",
                               "--yes"], capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.until("there is none", lambda: browser.texts("#jobs-title") == ["Jobs: there are none"])
        self.assertEqual(browser.texts("#jobs .none"),
                         [f'A training makes them: leat.connect("{self.coordinator.address}").job(...)'])
        self.assertEqual(browser.texts("#jobs article"), [])
        self.until("and no chart of it", lambda: browser.ask("document.querySelector('#job').hidden"))
        self.assertEqual(browser.complaints(), [])

    def test_the_address_may_have_any_text_after_it(self):
        page = self.start()
        self.crowd(2, 1, ("cats", "dogs"))
        browser = self.browser()
        for text, job in (("#100%", "cats"), ("#d%6Fgs", "dogs")):
            browser.open("about:blank")
            browser.open(page + text)
            self.shown(browser)
            self.until("a job is chosen", lambda job=job: browser.texts("#job-title") == [f"{job} over time"])
        self.assertEqual(browser.complaints(), [])

    def test_a_clock_is_set_back(self):
        """The parts that ask again and again go on, and none asks for more than is looked at."""
        page = self.start()
        self.crowd(2, 1, ("cats", "dogs"))
        browser = self.browser()
        browser.open(page)
        self.shown(browser)
        browser.driver.execute_script("""
          window.asked = [];
          const own = window.fetch, now = Date.now;
          window.fetch = (address, ...more) => (window.asked.push(String(address)), own(address, ...more));
          Date.now = () => now() - 3600_000;""")
        self.until("the history is asked for", lambda: browser.ask(
            "window.asked.filter((each) => each.startsWith('api/history')).length") >= 2)
        # The sheet is asked for one job, and then another one is chosen.
        self.assertEqual(browser.texts("#job-title"), ["cats over time"])
        browser.driver.execute_script("document.querySelector('#sheet .look').click();")
        self.until("the sheet is asked for", lambda: "api/sheet?job=cats" in browser.ask("window.asked"))
        browser.driver.execute_script("document.querySelector(\"#jobs [data-key='dogs'] .choose\").click();")
        states = {browser.ask("document.body.dataset.shown")}

        def two_more():
            states.add(browser.ask("document.body.dataset.shown"))
            return len(states) > 2
        self.until("two more states are shown", two_more)
        self.assertNotIn("api/sheet?job=dogs", browser.ask("window.asked"))
        self.assertEqual(browser.texts("#sheet .state"), [""])
        self.assertEqual(browser.complaints(), [])

    def test_modules_of_the_page(self):
        """Parts of the page with states that take long, or a large service."""
        page = self.start()
        browser = self.browser()
        browser.open(page)
        self.shown(browser)
        self.keeps_the_focus(browser)
        self.counts_no_steps_of_a_stream(browser)
        self.proposes_commands_that_work(browser)
        self.compares_workers(browser)
        self.says_what_it_leaves_out(browser)
        self.has_no_stream_while_hidden(browser)
        self.assertEqual(browser.complaints(), [])

    def told(self, browser, script):
        """Returns what a script returns, in which import_(NAME) returns a module of the page."""
        return browser.driver.execute_async_script("""
          const done = arguments[arguments.length - 1];
          const folder = document.querySelector("script[type=module]").src.replace(/[^/]*$/, "");
          const import_ = (name) => import(folder + name);
          (async () => {""" + script + "})().then(done, (error) => done(String(error)));")

    def keeps_the_focus(self, browser):
        """An element has the focus while others come, go and change places."""
        self.assertEqual(self.told(browser, """
          const { keyed, h } = await import_("dom.js");
          const list = document.querySelector("main").appendChild(h("div"));
          const show = (names) => keyed(list, [...names], (name) => name, (name) => h("button", {}, name), () => {});
          show("abc");
          list.children[1].focus();
          const seen = [];
          for (const names of ["abc", "bc", "cb", "xcby", "b", "c"]) {
            show(names);
            const focused = document.activeElement;
            seen.push(list.textContent, focused === document.body ? "" : focused.textContent);
          }
          list.remove();
          return seen;"""), ["abc", "b", "bc", "b", "cb", "b", "xcby", "b", "b", "b", "c", ""])

    def counts_no_steps_of_a_stream(self, browser):
        self.assertEqual(self.told(browser, """
          const { Jobs } = await import_("jobs.js");
          new Jobs(() => {}).show({ counts: { jobs: 2 }, verdicts: [], status: { jobs: ["0", "1"].map((consumers) => (
            { job: { spec: { name: consumers } }, consumers, step: "5", steps_per_epoch: String(2 ** 40) })) } });
          return [...document.querySelectorAll("#jobs .facts")].map((each) => each.textContent);"""),
            ["Steps an epochwithout end", "Rate0 rows/sWaits0 %Epoch0Step5Consumers1"])

    def proposes_commands_that_work(self, browser):
        """A job's name that begins with "-" is no option of the commands to copy."""
        self.assertEqual(self.told(browser, """
          const { Jobs } = await import_("jobs.js");
          history.replaceState(null, "", "#");
          new Jobs(() => {}).show({ counts: { jobs: 1 }, verdicts: [], status: { address: "h:1", jobs: [
            { job: { spec: { name: "-x" } }, consumers: 0, epoch: "1", step: "2" }] } });
          return [...document.querySelectorAll("#sheet .command code")].map((each) => each.textContent);"""),
            ["leat --coordinator h:1 sheet --epoch 1 --step 2 --rows 64 -o sheet.png -- -x",
             "leat --coordinator h:1 why --epoch 1 --step 2 --row 0 -- -x"])

    def compares_workers(self, browser):
        """Where most of a class are idle, the others are not called so; a lost worker has no present rate."""
        self.assertEqual(self.told(browser, """
          const { Workers } = await import_("workers.js");
          const workers = new Workers();
          const worker = (name, rows_per_s) => ({ name, state: "WORKER_STATE_READY", stats: { rows_per_s } });
          workers.show({ at_ms: 0, counts: { workers: 3, ready: 3 }, class_of: [0, 0, 0],
            classes: [{ name: "CPU", ready: 3, median_rows_per_s: 0, median_capacity_rows_per_s: 0 }],
            status: { workers: [worker("a", 0), worker("b", 500), worker("c", 0)] } });
          const titles = [...document.querySelectorAll("#workers .tile[data-key]")].map((tile) => tile.title);
          workers.fill({ name: "d", state: "WORKER_STATE_LOST", stats: { rows_per_s: 321, rss_bytes: "1024" } });
          return [...titles, document.querySelector("#worker").textContent.includes("321")];"""),
            ["a: 0 rows/s, nothing is asked of it (CPU)", "b: 500 rows/s, works (CPU)",
             "c: 0 rows/s, nothing is asked of it (CPU)", False])

    def says_what_it_leaves_out(self, browser):
        self.assertEqual(self.told(browser, """
          const { show } = await import_("notes.js");
          show({ at_ms: 0, counts: { workers: 1 }, total: {}, status: { datasets: "66" },
            datasets: [{ state: "ready", dataset: { name: "a" } }] });
          return document.querySelector("#storage .none").textContent;"""),
            "65 more datasets are not shown: leat get datasets")

    def has_no_stream_while_hidden(self, browser):
        self.assertEqual(self.told(browser, """
          const { Live } = await import_("live.js");
          Object.defineProperty(document, "hidden", { value: true, configurable: true });
          const words = [];
          const live = new Live({ connection: (word) => words.push(word), state() {}, happened() {} });
          delete document.hidden;
          live.look = () => {};
          return words;"""), [])

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
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.common.by import By
        browser.open(page)
        browser.driver.find_element(By.ID, "token").send_keys(OWN)
        browser.driver.find_element(By.TAG_NAME, "button").click()
        # To refresh before the form has an answer would give the sign-in up.
        self.until("it is signed in", lambda: not browser.driver.find_elements(By.ID, "token"))

        def judged():
            try:
                browser.driver.refresh()
                text = browser.driver.find_element(By.TAG_NAME, "main").text
            except WebDriverException:  # the page has refreshed itself meanwhile
                return None
            return text if "decode threads" in text else None

        text = self.until("the job is judged", judged)
        for part in ("Job cats", "Change:", "Findings", "Stages, in the last minute", "node-0001",
                     "100 more are not shown", MARKUP, "Cache and storage", "worker.joined"):
            self.assertTrue(part in text, part)
        self.assertEqual(browser.driver.find_elements(By.CSS_SELECTOR, "main img"), [])
        self.assertEqual([each["httpOnly"] for each in browser.driver.get_cookies()], [True])

if __name__ == "__main__":
    unittest.main()
