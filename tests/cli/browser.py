"""A headless Chromium, driven by its own protocol over two pipes: nothing else is needed, and no port is opened."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"]


def find():
    return next((p for p in map(shutil.which, NAMES) if p), None)


class Browser:
    """One page. Everything it says on its console, and every request it makes, is kept."""

    def __init__(self, program):
        self.home = tempfile.mkdtemp(prefix="varve-browser-")
        to_us, from_it = os.pipe()
        to_it, from_us = os.pipe()
        words = ["--headless", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage", "--remote-debugging-pipe",
                 "--disable-background-networking", f"--user-data-dir={self.home}", "about:blank"]
        if os.geteuid() == 0:
            words.insert(0, "--no-sandbox")  # root cannot have it, and the browser would not start
        # it reads descriptor 3 and writes 4; the shell puts ours there
        shell = f'exec "$0" "$@" 3<&{to_it} 4>&{from_it}'
        self.process = subprocess.Popen(["sh", "-c", shell, program, *words], pass_fds=(to_it, from_it),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "TMPDIR": self.home})
        os.close(to_it), os.close(from_it)
        self.into, self.out, self.rest, self.number = from_us, to_us, b"", 0
        self.console, self.requests = [], []
        self.session = None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Network", "Log":
            self.call(domain + ".enable")

    def close(self):
        os.close(self.into)
        self.process.terminate()
        self.process.wait(20)
        os.close(self.out)
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self, limit):
        end = time.monotonic() + limit
        while b"\0" not in self.rest:
            if not select.select([self.out], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser says nothing")
            data = os.read(self.out, 1 << 20)
            if not data:
                raise EOFError("the browser is gone")
            self.rest += data
        text, self.rest = self.rest.split(b"\0", 1)
        return self.note(json.loads(text))

    def note(self, m):
        p = m.get("params", {})
        if m.get("method") == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(a.get("value", a.get("description"))) for a in p["args"]))
        elif m.get("method") == "Runtime.exceptionThrown":
            self.console.append(p["exceptionDetails"].get("exception", {}).get("description", str(p)))
        elif m.get("method") == "Log.entryAdded":
            self.console.append(p["entry"]["text"])
        elif m.get("method") == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])
        return m

    def call(self, method, **params):
        self.number += 1
        m = {"id": self.number, "method": method, "params": params}
        if self.session:
            m["sessionId"] = self.session
        os.write(self.into, json.dumps(m).encode() + b"\0")
        while True:
            answer = self.message(60)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def run(self, script):
        """The value of an expression; of a promise, what it becomes."""
        r = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise RuntimeError(r["exceptionDetails"].get("exception", {}).get("description", str(r)))
        return r["result"].get("value")

    def open(self, url, width=1200, height=900, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.console.clear(), self.requests.clear()
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        while self.message(60).get("method") != "Page.loadEventFired":
            pass
        self.settle()

    def settle(self):
        """Two frames: what was asked for is drawn."""
        self.run("new Promise(d => requestAnimationFrame(() => requestAnimationFrame(() => d(0))))")

    def picture(self, path, width=1200):
        height = self.run("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, 16000), "scale": 1}
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
