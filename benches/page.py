#!/usr/bin/env python3
"""Measures the time until the page embody.html shows a mail in Chromium.

    web/build
    benches/page.py [PAGE]       PAGE is target/web/embody.html by default

For each size, the script generates a mail with attachments and a mailbox. It chooses the file in the page, and measures the time
from the choice until the mail, or the first entries of the list, are in the document. Each value is the median of TURNS runs (5),
each in a new page.
"""

import base64
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TURNS = int(os.environ.get("TURNS", "5"))
SIZES = (1, 10, 50)
# Resolves with the milliseconds from the choice of a file until `selector` is in the document.
MEASURE = """new Promise((resolve) => {
  let begun;
  document.getElementById("chooser").addEventListener("change", () => { begun = performance.now(); }, { capture: true, once: true });
  new MutationObserver((_, observer) => {
    if (begun === undefined || !document.querySelector(%s)) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begun)));
  }).observe(document.body, { childList: true, subtree: true });
})"""


class Chromium:
    """One page in Chromium, driven over the pipe of the DevTools protocol."""

    def __init__(self, folder):
        self.folder = tempfile.mkdtemp(dir=folder)
        commands, self.commands = os.pipe()
        self.answers, answers = os.pipe()

        def connect():
            # File descriptors 3 and 4 could be those of the pipes, so both are copied out of the way first.
            high = os.dup2(commands, 30), os.dup2(answers, 31)
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND", "--remote-debugging-pipe",
                 f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(words, preexec_fn=connect, close_fds=False, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self.folder})
        os.close(commands)
        os.close(answers)
        self.number, self.session, self.buffer = 0, None, b""
        target = self.command("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.commands, json.dumps(message).encode() + b"\0")
        return self.number

    def result(self, number):
        while True:
            while b"\0" not in self.buffer:
                read = os.read(self.answers, 1 << 20)
                if not read:
                    sys.exit("chromium ended")
                self.buffer += read
            text, _, self.buffer = self.buffer.partition(b"\0")
            message = json.loads(text)
            if message.get("id") == number:
                if "error" in message or "exceptionDetails" in message["result"]:
                    sys.exit(str(message))
                return message["result"]

    def command(self, method, **parameters):
        return self.result(self.send(method, **parameters))

    def evaluate(self, script):
        answer = self.command("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return answer["result"].get("value")

    def close(self):
        self.process.kill()
        self.process.wait()


def measured(folder, page, file, selector):
    browser = Chromium(folder)
    browser.command("Page.navigate", url=page.as_uri())
    while not browser.evaluate("document.readyState === 'complete' && document.documentElement.hasAttribute('data-ready')"):
        pass
    measuring = browser.send("Runtime.evaluate", expression=MEASURE % json.dumps(selector), returnByValue=True, awaitPromise=True)
    root = browser.command("DOM.getDocument")["root"]["nodeId"]
    chooser = browser.command("DOM.querySelector", nodeId=root, selector="#chooser")["nodeId"]
    browser.command("DOM.setFileInputFiles", nodeId=chooser, files=[str(file)])
    time = browser.result(measuring)["result"]["value"]
    browser.close()
    return time


def mail(megabytes, random):
    """Returns a mail with HTML and attachments of about half a megabyte each."""
    text = "From: Ada <ada@example.org>\nSubject: Plans\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n"
    text += "--b\nContent-Type: text/html\n\n" + "<p>The plans are attached. " * 100 + "\n"
    number = 0
    while len(text) < megabytes * 1_000_000:
        number += 1
        content = base64.encodebytes(random.randbytes(min(400_000, megabytes * 100_000))).decode()
        text += f"--b\nContent-Type: application/pdf; name=plan-{number}.pdf\nContent-Disposition: attachment\n"
        text += f"Content-Transfer-Encoding: base64\n\n{content}"
    return text + "--b--\n"


def mailbox(megabytes, random):
    """Returns a mailbox with mails of about 4 KB."""
    pieces, size, number = [], 0, 0
    while size < megabytes * 1_000_000:
        number += 1
        words = " ".join(random.choice(("plan", "engine", "minutes", "lunch", "monday")) for _ in range(600))
        pieces.append(f"From a@example.org Mon Jan  6 10:00:00 2020\nFrom: Ada <ada@example.org>\nTo: b@example.org\n"
                      f"Subject: Mail {number}\nDate: Mon, 6 Jan 2020 10:00:00 +0000\n\n{words}\n\n")
        size += len(pieces[-1])
    return "".join(pieces)


def main():
    page = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "target/web/embody.html").resolve()
    with tempfile.TemporaryDirectory() as folder:
        print("| size | a mail with attachments | list of a mailbox |\n|---|---|---|")
        for size in SIZES:
            cells = []
            for name, make, selector in (("mail.eml", mail, "#mail h1"), ("In.mbox", mailbox, "#mails li")):
                file = Path(folder, name)
                file.write_text(make(size, random.Random(size)))
                times = [measured(folder, page, file, selector) for _ in range(TURNS)]
                cells.append(f"{statistics.median(times) / 1000:.2f} s")
            print(f"| {size} MB | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
