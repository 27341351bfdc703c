"""Compares the time of two programs: `run --time OLD NEW`.

Both programs run the same commands alternately, so that a change in the speed of the machine affects both. For each case,
the table contains the minimum and the median of the elapsed time and the minimum of the processor time (user and system),
in milliseconds, and the ratios of NEW to OLD. The column MB contains the median of the peak memory, or 0 if the memory is
not measured in this case. The last column contains the limit of the case, and which ratio is compared with the limit:
"wall" (the minimum of the elapsed time), "processor" or "peak". If other programs run on the machine at the same time, only
the processor times are reliable.
"""

import base64
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import corpora
import mails
import web

# Delay of each answer of the scripted server, in seconds.
WAIT = 0.02
# The largest permitted ratio of NEW to OLD for each case, and the measured value to which the limit applies.
LIMITS = {
    "start-up": (1.05, "wall"), "start-up, options": (1.05, "wall"), "scanning": (1.05, "wall"), "links": (1.05, "wall"),
    "data: URL": (1.05, "wall"), "data: pictures": (1.05, "wall"), "convert": (1.05, "wall"), "inspect": (1.05, "wall"),
    "embed 300 mails": (1.05, "wall"), "chain of 31": (1.1, "wall"), "16 rivals": (1.1, "wall"), "9,000 references": (3.0, "processor"),
    "memory": (1.1, "peak"),
}


def scripted(bodies={}):
    """Returns a function like `web.answer` that computes each answer only once, so that the measured time does not include
    the time for computing large bodies.
    """

    def answer(url):
        if url not in bodies:
            bodies[url] = web.answer(url)
        return bodies[url]

    return answer


def document(length):
    """Returns an HTML part of about `length` bytes that consists of relative links."""
    row = '<tr><td style="padding:0 8px"><a href="track/{0:x}?u={0:x}">read more</a> of what is new this week</td></tr>\n'
    rows = "".join(row.format(at) for at in range(length // 100))
    return f'Content-Type: text/html\n\n<html><head><base href="https://news.example.org/"></head><body>\n{rows}</body></html>\n'.encode()


def head(parts):
    """Returns a mail. `parts` contains the rest of its header, and its body."""
    return b"From: a@example.org\nMessage-ID: <t@example.org>\nDate: Tue, 14 May 2024 12:00:00 +0200\nMIME-Version: 1.0\n" + parts


def shown(number, pictures, size):
    """Returns an HTML mail that shows `pictures` pictures of `size` bytes each. `number` makes their URLs unique."""
    tags = "".join(f'<img src="http://img{at % 4}.example.org/_/size/{size}/{number}-{at}.gif?is=fit">\n' for at in range(pictures))
    return head(f"Content-Type: text/html\n\n<p>A letter.</p>\n{tags}".encode())


def files(folder, cache):
    """Runs `write_files` in another process, so that this process does not keep the memory for the mails."""
    code = "import sys, pathlib; sys.dont_write_bytecode = True; sys.path.insert(0, sys.argv[1]); import timing; timing.write_files(pathlib.Path(sys.argv[2]), sys.argv[3])"
    subprocess.run([sys.executable, "-c", code, str(Path(__file__).parent), str(folder), str(cache or "")], check=True)


def write_files(folder, cache):
    """Writes the input files of all cases to `folder`. `cache` is the directory of the public corpora, or an empty text.

    If the cache contains a mailing list archive, archive.mbox contains its messages instead of generated mails.
    """
    plain = head(b"Content-Type: text/plain\n\n" + b"A line of a letter without any reference.\n" * 90)
    (folder / "plain.eml").write_bytes(plain)
    attached = base64.encodebytes(web.noise(b"attached", 60_000))
    mail = head(mails.multipart("mixed", "b", ["\nA letter.\n" * 40, b"Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n" + attached]))
    (folder / "scan.mbox").write_bytes(corpora.mbox_of([mail] * 1_200))
    (folder / "links.eml").write_bytes(head(document(8 << 20)))
    octets = base64.b64encode(web.noise(b"data", 12 << 20)).decode()
    url = "\n ".join(octets[at:at + 76] for at in range(0, len(octets), 76))
    (folder / "data.eml").write_bytes(head(
        f'Content-Type: message/external-body; access-type=URL;\n URL="data:application/pdf;base64,{url}"\n\nContent-Type: application/pdf\n\n'.encode()))
    tags = (f'<p><img src="data:image/gif;base64,{base64.b64encode(web.gif(str(at).encode(), 9, 9, 10_000)).decode()}"></p>\n' for at in range(800))
    (folder / "pictures.eml").write_bytes(head(("Content-Type: text/html\n\n" + "".join(tags)).encode()))
    archive = [mails.mail(7, number).replace(b"\r\n", b"\n") for number in range(2_000)]
    (folder / "archive.mbox").write_bytes(corpora.mbox_of(archive))
    if cache:
        written = corpora.Files(Path(cache), "linux-mailinglist-archives/usrp-users.lists.ettus.com.0")
        if written.git:
            (folder / "archive.mbox").write_bytes(corpora.mbox_of(written.messages(4_000)))
    (folder / "embed").mkdir()
    for number in range(300):
        (folder / f"embed/{number:03}.eml").write_bytes(shown(number, 6, 5_000))
    (folder / "chain.eml").write_bytes(mails.chain_mail(31, 35 << 20))
    (folder / "rivals.eml").write_bytes(mails.failing_rivals(16, 35 << 20))
    (folder / "many.eml").write_bytes(mails.many_references(9_000, 30))
    (folder / "memory.eml").write_bytes(shown(0, 23, 2_000_000))


def commands(port):
    """Returns the commands of all cases. A command has arguments, a file for standard input (or None), and the number of
    times that one measurement runs the command. `port` is the port of the scripted server.
    """
    web_options = f"--fetch http --proxy http://127.0.0.1:{port}".split()
    large = "--max-growth 200M --max-body 100M --max-work 100".split()
    return {
        "start-up": (["filter"], "plain.eml", 50),
        "start-up, options": ("filter --quiet --embed data,remote --fetch http,https --max-growth 20M".split(), "plain.eml", 50),
        "scanning": ("convert --quiet scan.mbox --output out".split(), None, 1),
        "links": (["filter", "--quiet"], "links.eml", 3),
        "data: URL": (["filter", "--quiet", *large], "data.eml", 3),
        "data: pictures": (["filter", "--quiet", "--embed", "data", *large], "pictures.eml", 3),
        "convert": ("convert --quiet archive.mbox --output out".split(), None, 1),
        "inspect": ("inspect archive.mbox".split(), None, 1),
        "embed 300 mails": (["convert", "--quiet", "--embed", "remote", *web_options, "embed", "--output", "out"], None, 1),
        "chain of 31": (["filter", "--quiet", *web_options, "--max-fetches", "40"], "chain.eml", 1),
        "16 rivals": (["filter", "--quiet", *web_options], "rivals.eml", 1),
        "9,000 references": (["filter", "--quiet", *web_options, "--max-fetches", "40"], "many.eml", 1),
        "memory": (["filter", "--quiet", "--embed", "remote", *web_options, "--max-growth", "100M"], "memory.eml", 1),
    }


def one(program, arguments, given, folder):
    """Runs one process, and returns its elapsed time and its processor time in seconds and its peak memory in bytes.

    The file `given` in `folder` is standard input. The peak memory is measured only if the case retrieves content;
    otherwise the value is 0.
    """
    for path in folder.glob("out*"):
        subprocess.run(["rm", "-rf", str(path)], check=True)
    descriptor = os.open(folder / given if given else os.devnull, os.O_RDONLY)
    into = os.open(folder / "stdout", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    begun = time.perf_counter()
    child = subprocess.Popen(["embody", *arguments], executable=program, cwd=folder, stdin=descriptor, stdout=into, stderr=subprocess.DEVNULL)
    peak = 0
    if "remote" in arguments or given in ("chain.eml", "rivals.eml", "many.eml"):
        # /proc is read repeatedly, because the peak memory that wait4 returns includes the memory of this Python process.
        while os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            found = re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{child.pid}/status").read_text())
            peak = max(peak, int(found[1]) << 10 if found else 0)
            time.sleep(0.001)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - begun
    child.returncode = status
    os.close(descriptor)
    os.close(into)
    if status:
        raise SystemExit(f"`{program} {' '.join(arguments)}` failed with wait status {status}")
    return seconds, usage.ru_utime + usage.ru_stime, peak


def measure(options):
    """Measures all cases and prints the table. Returns the exit status: 1 if a limit is exceeded, otherwise 0."""
    programs = [str(Path(program).resolve()) for program in options.programs]
    exceeded = []
    with tempfile.TemporaryDirectory(prefix="referee-") as temporary:
        folder = Path(temporary)
        files(folder, corpora.cache_directory(options.corpora))
        server = web.Server(WAIT, scripted())
        print(f"{'case':18} {'OLD ms':>9} {'NEW ms':>9} {'ratio':>6}  {'medians':>15} {'ratio':>6}  {'processor':>15} {'ratio':>6}  {'MB':>9}   limit")
        for name, (arguments, given, times) in commands(server.port).items():
            if options.sets and not any(word in name for word in options.sets):
                continue
            taken = [[], []]
            for turn in range(options.runs + 1):
                for which in ((0, 1), (1, 0))[turn % 2]:
                    runs = [one(programs[which], arguments, given, folder) for _ in range(times)]
                    # The first turn is not counted: it fills the page cache, and the server computes its answers.
                    if turn:
                        taken[which].append((sum(run[0] for run in runs) / times, sum(run[1] for run in runs) / times, max(run[2] for run in runs)))
            wall, cpu, peak = ([[run[at] for run in side] for side in taken] for at in range(3))
            low, middle = [min(it) * 1000 for it in wall], [statistics.median(it) * 1000 for it in wall]
            work, most = [min(it) * 1000 for it in cpu], [statistics.median(it) / 1e6 for it in peak]
            ratio = lambda pair: pair[1] / pair[0] if pair[0] else 1.0
            limit, counted = LIMITS[name]
            met = ratio({"wall": low, "processor": work, "peak": most}[counted]) <= limit
            if not met:
                exceeded.append(name)
            print(
                f"{name:18} {low[0]:9.1f} {low[1]:9.1f} {ratio(low):6.2f}  {middle[0]:7.1f} {middle[1]:7.1f} {ratio(middle):6.2f}  "
                f"{work[0]:7.1f} {work[1]:7.1f} {ratio(work):6.2f}  {most[0]:4.0f} {most[1]:4.0f}   {counted} {limit}{'' if met else ' EXCEEDED'}",
                flush=True,
            )
    loads = " ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"load averages at the end: {loads}; if the load is above 1, only the processor times are reliable")
    return 1 if exceeded else 0
