#!/usr/bin/env python3
"""Measures the table in the section "The cache" of docs/figures.md: benches/cache.py [EMBODY]

Converts a mailbox of 1000 messages without a cache, twice with a cache, and offline with the cache. Each message refers to
a picture on a server that answers, and to a picture on one of 200 hosts that fail. Half of these hosts refuse the
connection, and half never accept it, so that the attempt times out. All hosts are addresses in 127.0.0.0/8.
"""

import http.server
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

EMBODY = sys.argv[1] if len(sys.argv) > 1 else "target/release/embody"
MAILS, DEAD, TIMEOUT = 1000, 200, "2s"


class Pictures(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0

    def do_GET(self):
        Pictures.asked += 1
        body = b"GIF89a" + self.path.encode() * 100
        self.send_response(200)
        self.send_header("Content-Type", "image/gif")
        self.send_header("Cache-Control", "max-age=86400")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def silent_port(addresses):
    """Opens a port that accepts no connections, because its queue is full, at each of the addresses.

    Returns the number of the port, and the sockets, which must stay open.
    """
    held, port = [], 0
    for address in addresses:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        port = listener.getsockname()[1]
        listener.listen(0)
        held.append(listener)
        for _ in range(4):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex((address, port))
            held.append(client)
    return port, held


def mail(urls):
    parts = "".join(
        f'--b\nContent-Type: message/external-body; access-type=URL;\n URL="{url}"\n\nContent-Type: image/gif\n\n\n'
        for url in urls
    )
    return (
        "From a@example.org Sat Jan  3 01:05:34 1996\nMIME-Version: 1.0\n"
        f"Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n\n"
    )


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pictures)
threading.Thread(target=server.serve_forever, daemon=True).start()
live = server.server_address[1]
hosts = [f"127.1.{number // 100}.{number % 100 + 1}" for number in range(DEAD)]
port, held = silent_port(hosts[1::2])

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "in.mbox").write_text(
        "".join(
            mail(
                [
                    f"http://127.0.0.1:{live}/{number % 300}.gif",
                    f"http://{hosts[number % DEAD]}:{port}/{number}.gif",
                ]
            )
            for number in range(MAILS)
        )
    )
    common = ["--quiet", "--fetch", "http", "--allow-net", "127.0.0.0/8", "--allow-port", str(live)]
    common += ["--allow-port", str(port), "--timeout", TIMEOUT, "--deadline", "1h"]
    outputs = []
    print("| run | seconds | requests that were answered |\n|---|---|---|")
    for name, more in [
        ("without a cache", []),
        ("`--cache`, first run", ["--cache", folder / "c"]),
        ("`--cache`, second run", ["--cache", folder / "c"]),
        ("`--cache --offline`", ["--cache", folder / "c", "--offline"]),
    ]:
        Pictures.asked = 0
        output = folder / f"{len(outputs)}.mbox"
        begun = time.monotonic()
        subprocess.run(
            [EMBODY, "convert", folder / "in.mbox", "--output", output, *common, *more],
            check=True,
        )
        seconds = time.monotonic() - begun
        outputs.append(output.read_bytes())
        print(f"| {name} | {seconds:.1f} | {Pictures.asked} |", flush=True)
    assert all(output == outputs[0] for output in outputs), "the runs wrote different mailboxes"
