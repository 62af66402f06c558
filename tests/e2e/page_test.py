# SPDX-License-Identifier: Apache-2.0
"""The coordinator's page, as a script and another site's page see it."""

import http.client
import json
import os
import pathlib
import re
import subprocess
import time
import unittest
import urllib.parse

from cluster import PATIENCE_S, program
from page import OWN, Crowd, PageTest, ask

MANY = 10_000


class DocumentTest(PageTest):
    """Tests that need no browser."""

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
        # The page refers to no other origin, and to no absolute path.
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
        # The crowd's consumers answer no request for a preview, so that there is none to show.
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
        # Values that depend on time are equal at one time.
        told = lambda status: ([job["limited_by"] for job in status["jobs"]],  # noqa: E731
                               [(each["code"], each["summary"]) for each in status.get("findings", [])])
        self.until("both say the same", lambda: told(self.state()["status"]) == told(self.cli("status")))

    def test_events_go_on_where_a_viewer_was(self):
        self.start()
        self.crowd(2, 1, ("cats",))

        def first(**fields):
            """Returns the first events of a stream: their id, and their contents."""
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
        # Numbers of another start, and texts that are no number, have no effect.
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
        # Rows are shown only to callers that may pull them, also on a page.
        for role, answer in (("viewer", 403), ("trainer", 404)):
            status, _, text = ask(self.address, "/api/sheet?job=none", Authorization=f"Bearer {made[role]}")
            self.assertEqual(status, answer, text)
        second = sign_in(made["viewer"])[1]["Set-Cookie"].partition(";")[0]
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/live", headers={"Cookie": second})
        stream = connection.getresponse()
        self.assertEqual(ask(self.address, "/sign-out", "POST", "", Cookie=second)[0], 303)
        self.assertEqual(ask(self.address, "/api/state", Cookie=second)[0], 401)
        self.assertTrue(stream.read().endswith(b"event: denied\ndata: {}\n\n"))
        # A revoked token gives no access, and the streams of its sessions end.
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        self.addCleanup(connection.close)
        connection.request("GET", "/live", headers={"Cookie": cookie})
        stream = connection.getresponse()
        done = subprocess.run([program("CLI"), "--coordinator", self.coordinator.address, "access", "revoke", "viewer"],
                              capture_output=True, timeout=PATIENCE_S, env={**os.environ, "LEAT_ACCESS_TOKEN": OWN})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(stream.read().endswith(b"event: denied\ndata: {}\n\n"))
        self.assertEqual(ask(self.address, "/api/state", Cookie=cookie)[0], 401)
        self.assertEqual(ask(self.address, "/api/state", Authorization=f"Bearer {made['viewer']}")[0], 401)
        status, fields, text = sign_in(made["viewer"])
        self.assertEqual(status, 401)
        self.assertNotIn("Set-Cookie", fields)
        self.assertIn("revoked", text)
        self.assertNotIn(made["viewer"], text)


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
            self.assertLess(time.monotonic() - begin, 2, path)  # 0.06 s on an idle machine
            self.assertLess(len(text), most, path)
        state = self.state()
        self.assertEqual(len(state["status"]["workers"]), 2000)
        self.until("they told their rates", lambda: self.state()["total"]["rows_per_s"] > 400 * MANY)
        # Both in parallel: each takes a core for some seconds.
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

if __name__ == "__main__":
    unittest.main()
