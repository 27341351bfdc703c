#!/usr/bin/env python3
"""Measures the table in the section "Mail on a server" of docs/figures.md: benches/imap.py EMBODY MBOX...

The script must run as root, on Linux. It starts Dovecot on 127.0.0.1 with MAILS messages of the mboxes. `embody convert` and
mbsync (Debian's isync) alternately download these messages into Maildirs, TURNS times each. After that, `embody inspect` and
dry runs of `detach`, `restore` and `embed` read SMALL small messages through a proxy that counts the transferred bytes, and
`embody convert` and mbsync alternately update Maildirs that already contain the SMALL messages, first without a change and then
after the flags of CHANGED messages changed. If MAILS or SMALL is 0, its part is skipped. MAILS, TURNS and SMALL are environment
variables.
"""
import contextlib
import imaplib
import mailbox
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MAILS = int(os.environ.get("MAILS", "10000"))
SMALL = int(os.environ.get("SMALL", "100000"))
TURNS = int(os.environ.get("TURNS", "5"))
# Number of messages whose flags change before an update.
CHANGED = 100
NOBODY = 65534


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def dovecot(folder, port):
    """Runs Dovecot until the block of `with` ends. Exits if Dovecot does not open the port within a minute."""
    conf = f"""protocols = imap
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
ssl = no
disable_plaintext_auth = no
first_valid_uid = 1
default_internal_user = nobody
default_internal_group = nogroup
default_login_user = nobody
mail_location = maildir:{folder}/%u/Maildir
passdb {{
  driver = static
  args = password=secret
}}
userdb {{
  driver = static
  args = uid={NOBODY} gid={NOBODY} home={folder}/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    address = 127.0.0.1
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
"""
    path = f"{folder}/conf"
    with open(path, "w") as file:
        file.write(conf)
    server = subprocess.Popen(["dovecot", "-F", "-c", path], stdin=subprocess.DEVNULL)
    try:
        wait_for(server, port, f"{folder}/log")
        yield
    finally:
        server.terminate()
        server.wait()


def wait_for(server, port, log):
    """Waits until Dovecot accepts connections. If Dovecot does not open the port, the error message contains the log, because
    the file is removed at the end.
    """
    for _ in range(600):
        if server.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            time.sleep(0.1)
    said = ""
    if os.path.exists(log):
        with open(log, errors="replace") as file:
            said = file.read()
    how = "within a minute" if server.poll() is None else f"and exited with {server.returncode}"
    raise SystemExit(f"Dovecot did not open port {port} {how}; its log is:\n{said}")


def account(folder, user, mails):
    """Creates the Maildir of a user with these messages, and with LF as line endings, as Dovecot stores messages.

    Returns the number of messages and their size in bytes.
    """
    base = f"{folder}/{user}/Maildir"
    for part in ("cur", "new", "tmp"):
        os.makedirs(f"{base}/{part}")
    count = total = 0
    for mail in mails:
        mail = mail.replace(b"\r\n", b"\n")
        name = f"{base}/cur/{1577872800 + count}.M{count}.host:2,S"
        with open(name, "wb") as file:
            file.write(mail)
        os.utime(name, (1577872800 + count,) * 2)
        count += 1
        total += len(mail)
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", f"{folder}/{user}"], check=True)
    return count, total


def archived(paths):
    count = 0
    boxes = [iter(mailbox.mbox(path, create=False)) for path in paths]
    while boxes and count < MAILS:
        for box in list(boxes):
            try:
                mail = next(box).as_bytes(unixfrom=False)
            except StopIteration:
                boxes.remove(box)
                continue
            except Exception:  # as_bytes() fails for some messages, which are left out.
                continue
            if count < MAILS:
                count += 1
                yield mail


def embody(program, port, user, out):
    url = f"imap://{user}@127.0.0.1:{port}/INBOX"
    ask = ["--allow-plaintext", "--password-command", "echo secret"]
    return [program, "convert", url, *ask, "--quiet", "--output", out]


def mbsync(port, user, out, syncs):
    os.makedirs(out)
    sync = "" if syncs else "FSync no\n\n"
    conf = f"""{sync}IMAPAccount a
Host 127.0.0.1
Port {port}
User {user}
Pass secret
SSLType None
AuthMechs LOGIN

IMAPStore far
Account a

MaildirStore near
Path {out}/
Inbox {out}/INBOX

Channel c
Far :far:
Near :near:
Patterns INBOX
Create Near
Sync Pull
CopyArrivalDate yes
SyncState *
"""
    path = f"{out}/conf"
    with open(path, "w") as file:
        file.write(conf)
    return ["mbsync", "-q", "-c", path, "c"]


class Proxy:
    """Passes connections on to a port of 127.0.0.1, and counts the bytes of both directions."""

    def __init__(self, port):
        self.bytes = 0
        self.server = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.server))
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.move, args=pair, daemon=True).start()

    def move(self, source, target):
        while data := source.recv(1 << 16):
            self.bytes += len(data)
            target.sendall(data)
        try:
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def timed(command):
    begun = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return time.monotonic() - begun


def written(folder, flag=""):
    """Returns the number of messages below a folder that have this flag in their names."""
    found = 0
    for base, _, names in os.walk(folder):
        if os.path.basename(base) in ("cur", "new"):
            found += sum(flag in name.partition(":2,")[2] for name in names)
    return found


def set_flag(port, is_set):
    """Sets or removes the flag `\\Flagged` of messages in the middle of the folder of the user `small`."""
    with imaplib.IMAP4("127.0.0.1", port) as connection:
        connection.login("small", "secret")
        connection.select("INBOX")
        first = SMALL // 2
        verb = "+FLAGS.SILENT" if is_set else "-FLAGS.SILENT"
        connection.uid("STORE", f"{first}:{first + CHANGED - 1}", verb, r"(\Flagged)")


def updates(program, port, folder):
    """Prints the rows for Maildirs that already contain all messages of the user `small`."""
    commands = {
        "embody": embody(program, port, "small", f"{folder}/update-embody"),
        "mbsync": mbsync(port, "small", f"{folder}/update-mbsync", True),
    }
    # The first turn downloads the messages, and the second one is not counted.
    for turn in range(2):
        for command in commands.values():
            timed(command)
    for what, is_changed in (("unchanged mails", False), (f"mails, {CHANGED} with a changed flag", True)):
        times = {name: [] for name in commands}
        for turn in range(TURNS):
            flagged = min(CHANGED, SMALL) if is_changed and turn % 2 == 0 else 0
            if is_changed:
                set_flag(port, flagged > 0)
            for name, command in commands.items():
                times[name].append(timed(command))
                there = written(f"{folder}/update-{name}")
                assert there == SMALL, f"{name} wrote {there} of {SMALL} messages"
                marked = written(f"{folder}/update-{name}", "F")
                assert marked == flagged, f"{name} marked {marked} messages"
        ours, theirs = (statistics.median(times[name]) for name in ("embody", "mbsync"))
        print(f"| update of {SMALL} {what} | {ours:.2f} s | mbsync, {theirs:.2f} s | {ours / theirs:.2f} | at most 1.1 |")


def measure(program, port, folder, count, total):
    """Prints the rows of the table. `count` and `total` are the number and the bytes of the messages of the user `mails`."""
    times = {"embody": [], "mbsync": [], "mbsync, FSync no": []}
    for turn in range(TURNS + 1 if MAILS else 0):
        for name in times:
            out = f"{folder}/out-{turn}-{name}"
            out = out.replace(", ", "-").replace(" ", "-")
            if name == "embody":
                command = embody(program, port, "mails", out)
            else:
                command = mbsync(port, "mails", out, name == "mbsync")
            took = timed(command)
            there = written(out)
            assert there == count, f"{name} wrote {there} of {count} messages"
            shutil.rmtree(out)
            # The first turn is not counted, because it fills the caches and the indexes of Dovecot.
            if turn > 0:
                times[name].append(took)
    for name in list(times)[1:] if MAILS else []:
        ours, theirs = statistics.median(times["embody"]), statistics.median(times[name])
        print(f"| {count} mails of {total / 1e6:.0f} MB into a Maildir | {ours:.2f} s | {name}, {theirs:.2f} s | {ours / theirs:.2f} | at most 1.1 |")
    if SMALL:
        text = b"From: a@example.org\nTo: b@example.org\nSubject: %d\nDate: Wed, 01 Jan 2020 10:00:00 +0000\nMessage-ID: <%d@example.org>\n\n" + b"A line of a small mail.\n" * 20
        account(folder, "small", (text % (n, n) for n in range(SMALL)))
        proxy = Proxy(port)
        url = f"imap://small@127.0.0.1:{proxy.port}/"
        ask = ["--allow-plaintext", "--password-command", "echo secret", "--timeout", "600s"]
        took = timed([program, "inspect", url, *ask])
        print(f"| inspect of {SMALL} small mails | {proxy.bytes / 1e6:.1f} MB, {took:.1f} s | 30 MB | {proxy.bytes / 30e6:.2f} | at most 1 |")
        os.makedirs(f"{folder}/store")
        for verb in ("detach", "restore", "embed"):
            proxy = Proxy(port)
            url = f"imap://small@127.0.0.1:{proxy.port}/"
            command = [program, verb, "--in-place", "--dry-run", url, *ask]
            if verb != "embed":
                command += ["--store", f"{folder}/store"]
            took = timed(command)
            print(f"| {verb} --dry-run of {SMALL} small mails | {proxy.bytes / 1e6:.3f} MB, {took:.1f} s | 30 MB | {proxy.bytes / 30e6:.2f} | at most 1 |")
        updates(program, port, folder)


def main():
    program, *paths = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        port = free_port()
        count, total = account(folder, "mails", archived(paths))
        with dovecot(folder, port):
            measure(program, port, folder, count, total)


if __name__ == "__main__":
    main()
