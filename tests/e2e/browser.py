# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium, for tests of the page; and a proxy that puts a server behind a path prefix."""

import http.client
import http.server
import os
import shutil
import threading
import unittest

PATIENCE_S = 60


class Browser:
    """A browser window. `scripts`: whether it runs scripts."""

    def __init__(self, folder, scripts=True):
        chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
        if chromium is None or driver is None:
            raise unittest.SkipTest("no chromium or chromedriver here: install Debian's chromium and chromium-driver")
        try:
            from selenium import webdriver
            from selenium.common.exceptions import WebDriverException
        except ImportError:
            raise unittest.SkipTest("no selenium here: deploy/install-dependencies --python tests VENV") from None
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        # root has no sandbox, and a container has little of /dev/shm.
        for flag in ("--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run",
                     "--disable-background-networking", "--disable-component-update", "--window-size=1400,1000",
                     f"--user-data-dir={folder / ('profile' if scripts else 'profile-without-scripts')}",
                     *(["--no-sandbox"] if os.geteuid() == 0 else [])):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        if not scripts:
            options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
        try:
            self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
        except WebDriverException as error:
            raise unittest.SkipTest(f"Chromium does not start here: {str(error).splitlines()[0]}") from None
        self.driver.set_page_load_timeout(PATIENCE_S)
        self.driver.set_script_timeout(PATIENCE_S)

    def set_clock(self, ahead_s):
        """Pages that are opened from now on see a clock that is ahead of the true one by so much."""
        self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {
            "source": f"const now = Date.now; Date.now = () => now() + {1000 * ahead_s};"})

    def open(self, address):
        self.driver.get(address)

    def ask(self, expression):
        """Returns the value of an expression in JavaScript."""
        return self.driver.execute_script(f"return {expression};")

    def texts(self, selector):
        return self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.textContent);", selector)

    def values(self, selector):
        """Returns the numbers in <data> elements below the selector."""
        return [float(value) for value in self.driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].map((each) => each.value);", f"{selector} data")]

    def complaints(self):
        """Returns the console's messages since the last call, warnings and worse."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def look(self, dark=False, width=1400, height=1000):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def close(self):
        self.driver.quit()


class PrefixProxy:
    """Passes /leat/… on to an HTTP server as /…, byte by byte, as a reverse proxy does."""

    def __init__(self, address):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if not self.path.startswith("/leat/"):
                    return self.send_error(404)
                upstream = http.client.HTTPConnection(address, timeout=PATIENCE_S)
                try:
                    upstream.request("GET", self.path[len("/leat"):], headers={
                        name: value for name, value in self.headers.items()
                        if name.lower() not in ("host", "connection")})
                    answer = upstream.getresponse()
                    self.send_response_only(answer.status)
                    for name, value in answer.getheaders():
                        self.send_header(name, value)
                    self.end_headers()
                    while piece := answer.read1(65536):
                        self.wfile.write(piece)
                        self.wfile.flush()
                except OSError:
                    pass  # the browser has left
                finally:
                    upstream.close()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}/leat/"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
