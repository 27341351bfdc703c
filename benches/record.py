#!/usr/bin/env python3
"""Measures the table in the section "The record" of docs/figures.md, the cost of `--record`: benches/record.py EMBODY MBOX...

The script needs a release build and at least two cores. It adds 400 messages to the messages of the mboxes. The added
messages show 1,000 pictures of 20 to 60 kB, which an nginx on the second core serves. nginx answers at once, or waits before
each response (Debian's libnginx-mod-http-echo). embody converts all messages alternately with and without the record, on one
core or on two, and the script prints the medians of TURNS runs (an environment variable).
"""
import os
import random
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import zlib

TURNS = int(os.environ.get("TURNS", "15"))
URLS, HOSTS, MAILS, PICTURES = 1000, 50, 400, 1000
ECHO = "/usr/lib/nginx/modules/ngx_http_echo_module.so"


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def picture(number):
    """Returns a PNG picture with random pixels, so that it cannot be compressed further, like a photo."""
    some = random.Random(number)
    height = some.randrange(66, 200)
    rows = b"".join(b"\0" + some.randbytes(300) for _ in range(height))
    header = struct.pack(">IIBBBBB", 100, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def serve(folder, port, cores):
    os.mkdir(f"{folder}/files")
    for number in range(PICTURES):
        with open(f"{folder}/files/{number}.png", "wb") as file:
            file.write(picture(number))
    with open(f"{folder}/nginx.conf", "w") as file:
        file.write(f"""load_module {ECHO};
daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;
events {{ worker_connections 512; }}
http {{
  access_log off; default_type image/png; keepalive_requests 100000; client_body_temp_path {folder}/b;
  proxy_temp_path {folder}/p; fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 0.0.0.0:{port};
    location /0/ {{ alias {folder}/files/; }}
    location ~ ^/([1-9]\\d*)/(.*)$ {{ set $name $2; echo_sleep 0.0$1; echo_exec /0/$name; }}
  }}
}}
""")
    words = ["taskset", "-c", cores, "nginx", "-c", f"{folder}/nginx.conf", "-p", folder, "-e", f"{folder}/log"]
    server = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    while socket.socket().connect_ex(("127.0.0.1", port)) and server.poll() is None:
        time.sleep(0.01)
    return server


def mails(port, wait):
    numbers = iter(range(URLS))
    for mail in range(MAILS):
        tags = "".join(
            f'<p>text</p><img width=100 src="http://127.0.0.{1 + number % HOSTS}:{port}/{wait}/{number}.png">\n'
            for number in (next(numbers) for _ in range(2 + (mail % 2)))
        )
        yield (
            f"From a@example.org Fri May  2 10:11:12 2003\nFrom: a@example.org\nSubject: Mail {mail}\n"
            f"Date: Fri, 02 May 2003 10:11:12 +0000\nMessage-ID: <{mail}@example.org>\nMIME-Version: 1.0\n"
            f"Content-Type: text/html\n\n<html><body>{tags}</body></html>\n\n"
        ).encode()


def run(words):
    """Runs a command. Returns its elapsed time and its processor time, in seconds."""
    begun = time.perf_counter()
    child = os.posix_spawnp(words[0], words, os.environ)
    _, status, used = os.wait4(child, 0)
    assert status == 0, words
    return time.perf_counter() - begun, used.ru_utime + used.ru_stime


def main():
    embody, *archives = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        server = serve(folder, port, "1")
        try:
            heading = "| nginx waits | cores | time without `--record` | with `--record` | ratio"
            print(heading + " | processor time without `--record` | with `--record` | ratio |")
            print("|---|---|---|---|---|---|---|---|")
            for wait, cores in ((0, "0"), (0, "0,1"), (1, "0,1"), (3, "0,1")):
                source, out, record = (f"{folder}/{name}" for name in ("in.mbox", "out.mbox", "record.warc.gz"))
                with open(source, "wb") as file:
                    for archive in archives:
                        with open(archive, "rb") as mbox:
                            shutil.copyfileobj(mbox, file)
                    file.write(b"".join(mails(port, wait)))
                words = ["taskset", "-c", cores, embody, "convert", "--quiet", "--embed", "remote", "--fetch", "http"]
                words += ["--allow-net", "127.0.0.0/8", "--allow-port", str(port), source, "--output", out]
                took = {name: [] for name in ("plain", "record")}
                for turn in range(TURNS + 1):
                    for name in random.Random(turn).sample(list(took), 2):
                        for file in (out, record):
                            if os.path.exists(file):
                                os.unlink(file)
                        took[name].append(run(words + (["--record", record] if name == "record" else [])))
                row = [f"{wait * 10} ms", str(len(cores.split(",")))]
                for which in (0, 1):
                    plain, recorded = (statistics.median(one[which] for one in all[1:]) for all in took.values())
                    row += [f"{plain:.2f}", f"{recorded:.2f}", f"{recorded / plain:.3f}"]
                print("|", " | ".join(row), "|", flush=True)
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
