#!/usr/bin/env python3
"""Measures the table in the section "Embedding" of docs/figures.md: how fast embody embeds pictures, compared with others.

    cargo build --release; NODE_PATH=.../node_modules benches/embed.py [--embody FILE]

1. 1,000 pictures of 10 kB in `data:` URLs, compared with attachDataUrls of nodemailer. The time is that of the whole
   process. For nodemailer, the time without the start of node is printed, too.
2. 30 pictures from a server that waits 20 ms before each response, compared with `curl --parallel` with the same number of
   parallel requests.
3. A mailbox of 240 messages of 0.8 MB. Every twentieth message has a picture on a server that accepts connections and never
   answers. This is compared with `curl --parallel` with the same URLs.

The programs run alternately. Each printed time is that of the fastest of seven runs, or of two runs for the mailbox.
"""

import argparse
import base64
import http.server
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RUNS, AT_ONCE, WAIT, REMOTE = 7, 8, 0.02, 30
MESSAGES, EVERY, TIMEOUT = 240, 20, 3
NODE = """
const { readFileSync } = require("fs"); const { createTransport } = require("nodemailer");
const html = readFileSync("page.html", "utf8"); const begun = process.hrtime.bigint();
createTransport({ streamTransport: true, buffer: true })
  .sendMail({ from: "a@example.org", to: "b@example.org", subject: "x", html, attachDataUrls: true })
  .then((sent) => { console.error(Number(process.hrtime.bigint() - begun) / 1e9); process.stdout.write(sent.message); });
"""


def picture(number, size):
    octets = random.Random(number).randbytes(size)
    return b"GIF89a\x20\x00\x20\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff" + octets


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        time.sleep(WAIT)
        body = picture(int(self.path[1:]), 10_000)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Type: image/gif\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    def log_message(self, *_):
        pass


class Many(http.server.ThreadingHTTPServer):
    request_queue_size = 64
    daemon_threads = True


def timed(command, folder, data=None, check=True):
    begun = time.perf_counter()
    done = subprocess.run(command, cwd=folder, input=data, capture_output=True, check=check)
    return time.perf_counter() - begun, done


def silent_server():
    """Starts a server that accepts connections and never answers. Returns its port."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=100)
    kept = []

    def accept():
        while True:
            kept.append(listening.accept())

    threading.Thread(target=accept, daemon=True).start()
    return listening.getsockname()[1]


def stalled(embody, place, hosts):
    """Prints how long embody and curl take if the pictures are on servers that never answer.

    `place` is the directory for the files, and `hosts` is the number of servers.
    """
    ports = [silent_server() for _ in range(hosts)]
    urls = [f"http://127.0.0.1:{ports[number % hosts]}/{number}.png" for number in range(MESSAGES // EVERY)]
    line = "the words of a long message, again and again\n"
    text = line * (800_000 // len(line))
    with (Path(place) / "stall.mbox").open("w") as box:
        for number in range(MESSAGES):
            box.write(f"From a@b Mon Jan  1 10:00:00 2024\nSubject: {number}\nMIME-Version: 1.0\nContent-Type: text/html\n\n")
            if number % EVERY == 0:
                box.write(f'<img src="{urls[number // EVERY]}">\n')
            box.write(text + "\n")
    embedding = [
        embody, "embed", "stall.mbox", "--output", "stall.out.mbox", "--quiet", "--timeout", f"{TIMEOUT}s",
        "--max-in-flight", str(AT_ONCE), "--allow-net", "127.0.0.1",
    ]
    for port in ports:
        embedding += ["--allow-port", str(port)]
    curled = ["curl", "--silent", "--parallel", "--parallel-max", str(AT_ONCE), "--max-time", str(TIMEOUT)]
    for number, url in enumerate(urls):
        curled += ["-o", f"stall-{number}", url]
    ours, theirs = [], []
    for _ in range(2):
        (Path(place) / "stall.out.mbox").unlink(missing_ok=True)
        took, done = timed(embedding, place, check=False)
        # embody writes all messages, and exits with 1 because it could not retrieve the pictures.
        assert done.returncode == 1, done.stderr
        assert (Path(place) / "stall.out.mbox").stat().st_size == (Path(place) / "stall.mbox").stat().st_size
        ours.append(took)
        theirs.append(timed(curled, place, check=False)[0])
    print(
        f"{len(urls)} pictures from {hosts} server{'s' if hosts > 1 else ''} without answers, time-out {TIMEOUT} s,"
        f" {AT_ONCE} at a time: embody embed {min(ours):.1f} s, curl --parallel {min(theirs):.1f} s"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embody", default=str(ROOT / "target/release/embody"))
    options = parser.parse_args()
    embody = str(Path(options.embody).resolve())
    with tempfile.TemporaryDirectory() as place:
        coded = (base64.b64encode(picture(number, 10_000)).decode() for number in range(1_000))
        page = "".join(f'<p><img src="data:image/gif;base64,{text}"></p>\n' for text in coded)
        (Path(place) / "page.html").write_text(page)
        mail = b"MIME-Version: 1.0\nContent-Type: text/html\n\n" + page.encode()
        ours, theirs, inside = [], [], []
        has_peer = shutil.which("node") and subprocess.run(
            ["node", "-e", "require('nodemailer')"], capture_output=True, check=False, env=os.environ
        ).returncode == 0
        for _ in range(RUNS):
            took, done = timed([embody, "filter", "--embed", "data", "--quiet"], place, mail)
            assert done.stdout.count(b"Content-ID: <") == 1_000
            ours.append(took)
            if has_peer:
                took, done = timed(["node", "-e", NODE], place)
                assert done.stdout.lower().count(b"content-id: <") == 1_000
                theirs.append(took)
                inside.append(float(done.stderr))
        size = len(mail) / 1e6
        print(f"1,000 data: URLs, {size:.1f} MB: embody filter {min(ours) * 1000:.0f} ms, {size / min(ours):.0f} MB/s")
        if has_peer:
            print(
                f"nodemailer {min(theirs) * 1000:.0f} ms, {size / min(theirs):.0f} MB/s; without the start of node"
                f" {min(inside) * 1000:.0f} ms, {size / min(inside):.0f} MB/s"
            )
        else:
            print("nodemailer was not measured, because it was not found", file=sys.stderr)

        server = Many(("127.0.0.1", 0), Server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        urls = [f"http://127.0.0.1:{server.server_port}/{number}" for number in range(REMOTE)]
        mail = b"MIME-Version: 1.0\nContent-Type: text/html\n\n"
        mail += "".join(f'<img src="{url}">\n' for url in urls).encode()
        filtered = [
            embody, "filter", "--embed", "remote", "--quiet", "--fetch", "http", "--allow-net", "127.0.0.1",
            "--allow-port", str(server.server_port), "--max-in-flight", str(AT_ONCE),
        ]
        curled = ["curl", "--silent", "--fail", "--parallel", "--parallel-max", str(AT_ONCE)]
        for url in urls:
            curled += ["-o", url.rsplit("/", 1)[1], url]
        ours, theirs = [], []
        for _ in range(RUNS):
            took, done = timed(filtered, place, mail)
            assert done.stdout.count(b"Content-ID: <") == REMOTE
            ours.append(took)
            theirs.append(timed(curled, place)[0])
        print(
            f"{REMOTE} pictures from a server that waits {WAIT * 1000:.0f} ms, {AT_ONCE} at a time: embody filter"
            f" {min(ours) * 1000:.0f} ms, curl --parallel {min(theirs) * 1000:.0f} ms, ratio {min(ours) / min(theirs):.2f}"
        )
        stalled(embody, place, 1)
        stalled(embody, place, len(range(0, MESSAGES, EVERY)))


if __name__ == "__main__":
    main()
