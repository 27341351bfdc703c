#!/usr/bin/env python3
"""Measures the first table of docs/figures.md: embody compared with other programs and libraries on the same mail.

    benches/figures.py                     builds embody and its benchmarks, measures them (a few minutes), and prints the table
    benches/figures.py --docs              also writes the table to docs/figures.md, and its plot to docs/figures.svg
    benches/figures.py --all               measures the memory of `convert` with a mailbox of 5 GB instead of 500 MB
    benches/figures.py --beside PROGRAM    only compares embody with PROGRAM, which is another version or build of embody;
                                           with --docs, also writes this second table to docs/figures.md
    benches/figures.py --real MBOX         only compares embody with cat and ripgrep on MBOX, and with embody on one core

The programs of a comparison run alternately, in an order that changes each time, so that other load of the machine affects
all of them. The results for start-up and retrievals are medians. The other times are those of the fastest run, because other
load can only make a run slower. formail, Python's mailbox module and the peak memory are measured once. All files are in
`$TMPDIR`, and the input is in the page cache. The benchmarks of benches/micro.rs measure the library. Their program
also generates the mailboxes, whose content is the same in each run.
"""
import argparse, base64, collections, json, math, os, pathlib, random, re, select, shutil, signal, socket, statistics
import subprocess, sys, tempfile, time

ROOT = pathlib.Path(__file__).resolve().parent.parent
Row = collections.namedtuple('Row', 'what ours peer ratio goal')
# Arguments with which a mail system starts embody: either without options, or with the configuration file of the recipes.
FILTERS = {'filter': ['filter'], 'filter --config': ['filter', '--config', str(ROOT / 'samples' / 'recipes' / 'embody.toml')]}
LARGE = ['--max-body', '100M', '--max-growth', '100M']
# A script that fills in one data: reference with Python's standard library, without the checks that embody makes.
PYTHON = '''
import base64, email, email.generator, sys
message = email.message_from_binary_file(sys.stdin.buffer)
for part in message.walk():
    if part.get_content_type() == 'message/external-body':
        url = ''.join(part.get_param('url').split())
        content = base64.b64decode(url.split(',', 1)[1])
        phantom = part.get_payload(0)
        del part['Content-Type']
        for name, value in phantom.items():
            part[name] = value
        part['Content-Transfer-Encoding'] = 'base64'
        part.set_payload(base64.encodebytes(content).decode('ascii'))
        break
email.generator.BytesGenerator(sys.stdout.buffer, mangle_from_=False, maxheaderlen=0).flatten(message)
'''
MAILBOX = '''
import mailbox
to = mailbox.mbox('out')
for m in mailbox.mbox('small'): to.add(m)
to.flush()
'''
# Pattern for ripgrep. It searches for words of references and of HTML, as `embody convert` does.
LOOKED_FOR = ('external-body|x-mozilla-external-attachment-url|x-mozilla-altered|x-mozilla-cloud-part|x-moz-deleted|'
              'internet-shortcut|content-type: (text/html|text/css|application/xhtml)')
URLS, WAIT = 200, 0.02
ECHO = '/usr/lib/nginx/modules/ngx_http_echo_module.so'


def short(number):
    return f'{number:.0f}' if number >= 100 else f'{number:.1f}' if number >= 10 else f'{number:.2f}'


def met(row):
    number = row.goal and float(row.goal.split()[-1])
    return None if not row.goal else row.ratio >= number if row.goal.startswith('at least') else row.ratio <= number


def run(words, given=os.devnull, out=os.devnull):
    """Runs a process and returns its wall time in seconds.

    `given` is the file for standard input, and `out` is the file for standard output. The output file of an earlier run is
    removed first, so that each run creates a new file.
    """
    written = words[words.index('--output') + 1] if '--output' in words else out
    if os.path.isfile(written):
        os.unlink(written)
    actions = [(os.POSIX_SPAWN_OPEN, 0, given, os.O_RDONLY, 0), (os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT, 0o600),
               (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)]
    begun = time.perf_counter()
    _, status = os.waitpid(os.posix_spawnp(words[0], words, os.environ, file_actions=actions), 0)
    took = time.perf_counter() - begun
    # ripgrep exits with 1 if no line matches, which is not an error here.
    assert status == 0 or words[0] == 'rg', words
    return took


def turns(count, runs, of=min):
    """Runs all commands alternately, `count` + 1 times each. Returns one time in seconds for each command, by its name.

    `runs` contains the arguments of run() by the name of the command. `of` computes the returned time from the times of all
    runs: `min` or the median. The first run of each command is not counted, because it reads the files into the page cache.
    """
    times = {name: [] for name in runs}
    for turn in range(count + 1):
        for name in random.Random(turn).sample(list(runs), len(runs)):
            times[name].append(run(*runs[name]))
    return {name: of(all[1:]) for name, all in times.items()}


def peak(words, given=os.devnull):
    """Runs a process and returns its peak memory in bytes.

    The value comes from /proc while the process runs. Its rusage cannot be used, because it includes the memory that the
    process inherits from this script before it starts the program.
    """
    if '--output' in words and os.path.exists(words[-1]):
        os.unlink(words[-1])
    with open(given) as given, subprocess.Popen(words, stdin=given, stdout=subprocess.PIPE) as child:
        while found := re.search(r'VmHWM:\s*(\d+)', pathlib.Path(f'/proc/{child.pid}/status').read_text()):
            most = int(found[1]) * 1024
            if select.select([child.stdout], [], [], 0.001)[0] and not os.read(child.stdout.fileno(), 1 << 16):
                break
    assert child.returncode == 0, words
    return most


def external_body(reference, phantom=b'Content-Type: image/png'):
    return b'Content-Type: message/external-body; ' + reference + b'\n\n' + phantom + b'\n\n'


def multipart(*parts):
    head = b'From: a@example.org\nSubject: x\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n'
    return head + b''.join(b'--b\n' + part + b'\n' for part in parts) + b'--b--\n'


def data_url(octets):
    """Returns the parameters of a reference whose data: URL contains `octets` random bytes.

    The URL is folded into words of 40 characters (RFC 2017, section 3.1).
    """
    url = b'data:image/png;base64,' + base64.b64encode(random.Random(octets).randbytes(octets))
    return b'access-type=URL;\n URL="' + b'\n '.join(url[at:at + 40] for at in range(0, len(url), 40)) + b'"'


def document(octets):
    """Returns a Content-Type field and an HTML document of about `octets` bytes with relative links and a base."""
    numbers = random.Random(octets)
    row = '<tr><td style="padding:0 8px"><a href="track/%x?u=%x">read more</a> of what is new this week</td></tr>\n'
    rows = (row % (numbers.getrandbits(40), numbers.getrandbits(40)) for _ in range(octets // 105))
    text = '<html><head><base href="https://news.example.org/"></head><body>\n' + ''.join(rows) + '</body></html>\n'
    return b'Content-Type: text/html\n\n' + text.encode()


def mails(folder):
    """Writes the messages that `embody filter` reads into a directory. Returns their paths by name."""
    text = b'Content-Type: text/plain\n\n' + b'An ordinary line of mail text, of the usual length, more or less.\n' * 500_000
    made = {'plain': b'Subject: x\n\n' + b'An ordinary line of mail text.\n' * 132,
            'reference': multipart(b'Content-Type: text/plain\n\nHello', external_body(data_url(1950))),
            'large': multipart(b'Content-Type: text/plain\n\nHello', external_body(data_url(24 << 20))),
            'scanned': multipart(text, external_body(b'access-type=AFS; name=x')),
            'links': document(20_000_000)}
    for name, mail in made.items():
        (folder / name).write_bytes(mail)
    return {name: str(folder / name) for name in made}


class Bench:
    def __init__(self, embody, folder):
        self.embody, self.folder, self.rows, self.skipped = embody, folder, [], []
        self.micro = self.built = None

    def build(self):
        """Builds the benchmarks, and embody itself unless --embody names a program."""
        if not self.embody:
            subprocess.run(['cargo', 'build', '--release', '--quiet'], cwd=ROOT, check=True)
            self.embody = str(ROOT / 'target/release/embody')
        words = ['cargo', 'bench', '--quiet', '--no-run', '--features', 'internals', '--bench', 'micro', '--message-format=json']
        said = map(json.loads, subprocess.check_output(words, cwd=ROOT).splitlines())
        self.micro = next(one['executable'] for one in said if one.get('executable') and one['target']['name'] == 'micro')

    def row(self, what, ours, peer, theirs, ratio, goal='', unit='ms'):
        peer = f'{peer}, {short(theirs)} {unit}' if peer else f'{theirs:g} {unit}'
        self.rows.append(Row(what, f'{short(ours)} {unit}', peer, ratio, goal))
        print(' | '.join(self.rows[-1][:3]), '|', short(ratio), '|', goal, flush=True)

    def fastest(self):
        """Runs all benchmarks. Returns the shortest time or the highest rate of each benchmark, with the keys of divan()."""
        found = {}
        # The complete set runs three times, so that a short load of the machine does not affect only one side of a comparison.
        for _ in range(3):
            said = subprocess.check_output([self.micro, '--bench', '--sort', 'location', '--sample-count', '5', '--sample-size', '1'],
                                           text=True)
            for key, number in divan(said).items():
                found[key] = (max if key[1] else min)(found.get(key, number), number)
        return found

    def library(self):
        found = self.fastest()
        arguments = lambda bench: [name.split('/', 1)[1] for name, is_rate in found if name.startswith(bench + '/') and is_rate]
        rates = {}
        for kind in arguments('scan_mail'):
            rates[kind], theirs = (found[f'{bench}/{kind}', True] / 1e9 for bench in ('scan_mail', 'scan_mail_parser'))
            self.row(f'scanning mail: {kind}', rates[kind], 'mail-parser', theirs, rates[kind] / theirs, 'at least 2', 'GB/s')
        slowest = min(rates.values())
        self.row('scanning mail: the slowest kind, one core', slowest, '', 1, slowest, 'at least 1', 'GB/s')
        times = {name: seconds * 1e3 for (name, is_rate), seconds in found.items() if not is_rate}
        fold = min(('LF TAB', 'CRLF SP'), key=lambda fold: times['data_url_data_url/' + fold] / times['data_url/' + fold])
        ours, theirs = times['data_url/' + fold], times['data_url_data_url/' + fold]
        self.row('decoding a folded 32 MB base64 data: URL', ours, 'data-url', theirs, theirs / ours, 'at least 5')
        for kind in arguments('links'):
            ours, theirs = (found[f'{bench}/{kind}', True] / 1e6 for bench in ('links', 'links_lol_html'))
            self.row(f'rewriting links in HTML: {kind}', ours, 'lol_html', theirs, ours / theirs, 'at least 2', 'MB/s')
        ours, theirs = times['expand'], times['expand_crates']
        self.row('expanding a mail with a 32 MB data: URL, library', ours, 'mail-parser, data-url, mail-builder', theirs, theirs / ours)
        return found['mailbox_mail_parser', True] / 1e6

    def filter(self, mails):
        quiet = [self.embody, 'filter', '--quiet']
        small = {f'embody {how}, 4 kB, {what}': ([self.embody, *words], mails[name]) for how, words in FILTERS.items()
                 for what, name in (('nothing to do', 'plain'), ('one data: URL', 'reference'))}
        times = turns(600, {'cat': (['cat'], mails['plain']), **small}, statistics.median)
        for what in small:
            self.row(what, times[what] * 1e3, 'cat', times['cat'] * 1e3, times[what] / times['cat'], 'at most 1.5')
        large, size = mails['large'], os.path.getsize(mails['large'])
        most = peak(quiet + LARGE, large)
        self.row('embody filter, 35 MB message, peak memory', most / 1e6, 'the message', size / 1e6, most / size, 'at most 4', 'MB')
        out = str(self.folder / 'out')
        times = turns(3, {'ours': (quiet + LARGE, large, out), 'Python': ([sys.executable, '-c', PYTHON], large, out)})
        ratio = times['Python'] / times['ours']
        self.row('embody filter, 35 MB message, whole process', times['ours'] * 1e3, "Python's email", times['Python'] * 1e3, ratio)

    def mailbox(self, megabytes, name='mailbox'):
        subprocess.run([self.micro, '--mailbox', self.folder / name, str(megabytes)], check=True)
        return str(self.folder / name)

    def convert(self, larger, parser):
        mailbox, out = self.mailbox(500), str(self.folder / 'out')
        size, small = os.path.getsize(mailbox) / 1e6, os.path.getsize(self.mailbox(20, 'small')) / 1e6
        convert = [self.embody, 'convert', '--quiet', mailbox, '--output']
        times = turns(9, {'cat': (['cat'], mailbox, out), 'ours': ([*convert, str(self.folder / 'converted')],)})
        same(mailbox, self.folder / 'converted')
        ours, what = size / times['ours'], 'embody convert, 500 MB mbox'
        beside = [('cat', size / times['cat'], 'at least 0.8'), ('mail-parser only reading', parser, '')]
        if shutil.which('formail'):
            beside.append(('formail -s cat', small / run(['formail', '-s', 'cat'], str(self.folder / 'small'), out), 'at least 50'))
        else:
            self.skipped.append(f'{what}, compared with formail (formail not found)')
        os.unlink(out)
        beside.append(("Python's mailbox", small / run(['sh', '-c', f'cd {self.folder} && exec {sys.executable} -c "$0"', MAILBOX]), ''))
        for peer, theirs, goal in beside:
            self.row(what, ours, peer, theirs, ours / theirs, goal, 'MB/s')
        peaks = [peak([self.embody, 'convert', '--quiet', self.mailbox(octets), '--output', out]) / 1e6 for octets in (50, larger)]
        what = f'embody convert, {larger} MB mbox, peak memory'
        self.row(what, peaks[1], 'itself on 50 MB', peaks[0], peaks[1] / peaks[0], 'at most 1.2', 'MB')
        costly = str(self.costly())
        cores = {cores: (['taskset', '-c', cores, self.embody, 'convert', '--quiet', '--jobs', jobs, costly, '--output', out],)
                 for cores, jobs in (('0', '1'), ('0,1', '2'))}
        one, two = turns(3, cores).values()
        self.row('converting 200 MB of HTML with links, two cores', two, 'itself on one core', one, one / two, 'at least 1.7', 's')

    def costly(self):
        """Writes a mailbox of 200 MB in which every message is an HTML document with links to resolve. Returns its path."""
        message = b'From user@example.org Thu Jan  1 00:00:00 1998\nFrom: a@example.org\n' + document(40_000) + b'\n'
        costly = self.folder / 'costly'
        costly.write_bytes(message * (200_000_000 // len(message)))
        return costly

    def fetch(self):
        nginx = next((nginx for nginx in ('/usr/sbin/nginx', '/usr/local/sbin/nginx') if os.path.exists(nginx)), None)
        if not nginx or not os.path.exists(ECHO) or not shutil.which('curl'):
            return self.skipped.append('fetching (nginx with its echo module, or curl, not found)')
        folder = self.folder
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            port = free.getsockname()[1]
        (folder / 'body.gif').write_bytes(b'x' * 4096)
        (folder / 'nginx.conf').write_text(f'''load_module {ECHO};
daemon off; master_process off; pid {folder}/pid; error_log {folder}/log;
events {{ worker_connections 512; }}
http {{
  access_log off; default_type image/gif; keepalive_requests 100000; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location / {{ echo_sleep {WAIT}; echo_exec /body; }}
    location = /body {{ internal; alias {folder}/body.gif; }}
  }}
}}
''')
        urls = [f'http://127.0.0.1:{port}/{number}.gif' for number in range(URLS)]
        mail, asked = str(folder / 'fetched'), str(folder / 'urls')
        references = (external_body(f'access-type=URL;\n URL="{url}"'.encode(), b'Content-Type: image/gif') for url in urls)
        pathlib.Path(mail).write_bytes(multipart(*references))
        pathlib.Path(asked).write_text(''.join(f'url = "{url}"\noutput = /dev/null\n' for url in urls))
        server = subprocess.Popen([nginx, '-c', folder / 'nginx.conf', '-p', folder, '-e', folder / 'log'], stdin=subprocess.DEVNULL)
        try:
            while socket.socket().connect_ex(('127.0.0.1', port)) and server.poll() is None:
                time.sleep(0.01)
            for most in ('1', '4', '8', '16', '32'):
                ours = [self.embody, 'filter', '--quiet', '--fetch', 'http', '--allow-net', '127.0.0.0/8', '--allow-port', str(port),
                        '--max-fetches', str(URLS), '--max-in-flight', most, mail]
                curl = ['curl', '--silent', '--no-progress-meter', '--fail', '--parallel', '--parallel-max', most, '--config', asked]
                out = str(folder / 'out')
                times = turns(1 if most == '1' else 5, {'ours': (ours, os.devnull, out), 'curl': (curl,)}, statistics.median)
                assert pathlib.Path(out).read_bytes().count(b'\nContent-Location: ') == URLS
                ours, theirs = times['ours'] * 1e3, times['curl'] * 1e3
                what = f'fetching {URLS} bodies, {most} at a time'
                self.rows.append(Row(what, f'{short(ours)} ms', f'curl, {short(theirs)} ms, nginx', ours / theirs, 'at most 1.1'))
        finally:
            server.terminate()
            server.wait()

    def all(self, larger):
        self.build()
        parser = self.library()
        self.filter(mails(self.folder))
        self.convert(larger, parser)
        self.fetch()

    def beside(self, other):
        """Compares embody with the program `other`, alternately on the same mail. Returns the table in Markdown."""
        self.build()
        files, mailbox, out = mails(self.folder), self.mailbox(500), str(self.folder / 'out')
        costly, quiet, both = str(self.costly()), ['filter', '--quiet'], (self.embody, other)
        compared = []

        def compare(what, times, unit='ms'):
            compared.append(f'| {what} | {short(times[0])} {unit} | {short(times[1])} {unit} | {times[0] / times[1]:.2f} |')
            print(compared[-1], flush=True)

        for how, words in {**FILTERS, 'filter --quiet': quiet}.items():
            for what, name in (('nothing to do', 'plain'), ('one data: URL', 'reference')):
                runs = {program: ([program, *words], files[name]) for program in both}
                times = turns(600, {'cat': (['cat'], files[name]), **runs}, statistics.median)
                compare(f'start-up: `{how}`, 4 kB, {what}; `cat` {short(times["cat"] * 1e3)} ms', [times[one] * 1e3 for one in both])
        for what, name in (('scanning: `filter`, 34 MB of text, one reference that stays unchanged', 'scanned'),
                           ('links: `filter`, 20 MB of HTML', 'links'), ('`filter`, 35 MB in one data: URL', 'large')):
            times = turns(15, {program: ([program, *quiet, *LARGE], files[name], out + str(at)) for at, program in enumerate(both)})
            same(out + '0', out + '1')
            compare(what, [times[one] * 1e3 for one in both])
        for what, source, count in (('`convert`, 500 MB mbox', mailbox, 9), ('`convert`, 200 MB mbox, links in each mail', costly, 3)):
            runs = {program: ([program, 'convert', '--quiet', source, '--output', out + str(at)],) for at, program in enumerate(both)}
            times = turns(count, runs)
            same(out + '0', out + '1')
            compare(what, [times[one] * 1e3 for one in both])
        compare('memory: `filter`, 35 MB in one data: URL', [peak([one, *quiet, *LARGE], files['large']) / 1e6 for one in both], 'MB')
        words = ['convert', '--quiet', mailbox, '--output', out]
        compare('memory: `convert`, 500 MB mbox', [peak([one, *words]) / 1e6 for one in both], 'MB')
        version = subprocess.check_output([other, '--version'], text=True).split()[-1]
        return f'| measurement | embody | {version} | ratio |\n|---|---|---|---|\n' + '\n'.join(compared) + '\n'

    def real(self, mailbox):
        mailbox, out = os.path.abspath(mailbox), str(self.folder / 'out')
        convert = lambda jobs: [self.embody, 'convert', '--quiet', '--jobs', jobs, mailbox, '--output', out]
        runs = {'cat a > b': (['cat'], mailbox, out), 'embody convert': (convert('2'),),
                'embody, one core': (['taskset', '-c', '0', *convert('1')],)}
        if shutil.which('rg'):
            runs['rg -c'] = (['rg', '-c', '-a', '-i', LOOKED_FOR, mailbox],)
        times, size = turns(11, runs), os.path.getsize(mailbox) / 1e6
        for name, took in times.items():
            print(f'{name:20} {size / took:9.1f} MB/s   {times["cat a > b"] / took:.2f} times the speed of cat')


def divan(said):
    """Returns the column "fastest" of the table that divan prints, because divan has no other output format.

    Each key contains the name of a benchmark (or benchmark/argument), and whether the value is a rate. Rates are in bytes per
    second, and other values are in seconds.
    """
    units = {'ns': 1e-9, 'µs': 1e-6, 'ms': 1e-3, 's': 1, 'B/s': 1, 'KB/s': 1e3, 'MB/s': 1e6, 'GB/s': 1e9, 'TB/s': 1e12}
    found, bench, name = {}, '', ''
    for line in said.splitlines():
        if begins := re.match(r'([│ ]  )?[├╰]─ (.*?)(?:  |$)', line):
            bench = bench if begins[1] else begins[2]
            name = f'{bench}/{begins[2]}' if begins[1] else bench
        if cell := re.match(r'.*?  +([\d.]+) ([KMGT]?B/s|[nµm]?s) +│', line):
            found[name, cell[2].endswith('/s')] = float(cell[1]) * units[cell[2]]
    return found


def same(a, b):
    subprocess.run(['cmp', a, b], check=True)


def table(rows):
    words = {True: 'yes', False: '**no**', None: ''}
    lines = (f'| {row.what} | {row.ours} | {row.peer} | {short(row.ratio)} | {row.goal} | {words[met(row)]} |\n' for row in rows)
    return '| measurement | embody | compared with | ratio | goal | met? |\n|---|---|---|---|---|---|\n' + ''.join(lines)


STYLE = '''text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328 }
.small { font-size: 11px; fill: #59636e }
.heading { font-weight: 600 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.peer { stroke: #59636e; stroke-width: 1.5 }
.goal { stroke: #1f2328; stroke-width: 2.5 }
.met { fill: #1a7f37 }
.missed { fill: #bc4c00 }
.none { fill: #0969da }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.small { fill: #9198a1 }
.grid { stroke: #3d444d }
.peer { stroke: #9198a1 }
.goal { stroke: #f0f6fc }
.met { fill: #2ea043 }
.missed { fill: #f0883e }
.none { fill: #4493f8 }
}
'''
HEADINGS = {'Speed as a multiple of the peer\'s: longer is better': lambda row: not row.goal.startswith('at most'),
            'Time or memory as a multiple of the peer\'s: shorter is better': lambda row: row.goal.startswith('at most')}


def plot(rows):
    """Returns a bar chart in SVG, with a bar for each ratio on a logarithmic scale and a mark for each goal.

    The SVG contains no scripts. Its colours follow the light or dark mode of the reader. The chart also says in words what each
    colour means.
    """
    numbers = [number for row in rows for number in (row.ratio, row.goal and float(row.goal.split()[-1])) if number]
    least, most, out, top = min(0.5, *numbers), max(2, *numbers), [], 0
    x = lambda number: 380 + math.log(number / least) / math.log(most / least) * 350

    def text(at, y, words, style='', anchor=''):
        words = str(words).replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')
        out.append(f'<text class="{style}"{anchor} x="{at:.1f}" y="{y:.1f}">{words}</text>')

    def upright(at, style, above, below):
        out.append(f'<line class="{style}" x1="{at:.1f}" y1="{above:.1f}" x2="{at:.1f}" y2="{below:.1f}"/>')

    for heading, belongs in HEADINGS.items():
        group = list(filter(belongs, rows))
        if not group:
            continue
        text(10, top + 22, heading, 'heading')
        first, top = top + 48, top + 48 + 36 * len(group)
        for number in (step * 10.0 ** decade for decade in range(-3, 5) for step in (1, 2, 5)):
            if least <= number <= most:
                upright(x(number), 'peer' if number == 1 else 'grid', first, top)
                text(x(number), first - 5, f'{number:g}', 'small', ' text-anchor="middle"')
        for place, row in enumerate(group):
            middle = first + 36 * place + 18
            text(10, middle - 3, row.what)
            text(10, middle + 11, f'{row.ours} versus {row.peer}', 'small')
            style, word = {True: ('met', ', met'), False: ('missed', ', missed'), None: ('none', '')}[met(row)]
            left, right = sorted((x(1), x(row.ratio)))
            # A bar for a ratio of 1 has no length, so it is widened to be visible.
            width = max(right - left, 2)
            out.append(f'<rect class="{style}" x="{left:.1f}" y="{middle - 8:.1f}" width="{width:.1f}" height="16"/>')
            if row.goal:
                upright(x(float(row.goal.split()[-1])), 'goal', middle - 12, middle + 12)
                text(744, middle + 11, row.goal + word, 'small')
            text(744, middle - 3 if row.goal else middle + 4, f'{short(row.ratio)}\u00d7')
        top += 8
    caption = 'Logarithmic scale. Bars begin at 1, the value of the peer. The thick vertical mark is the goal. Blue bars have no goal.'
    text(10, top + 24, caption, 'small')
    size = f'width="900" height="{top + 40}" viewBox="0 0 900 {top + 40}"'
    title = '<title>Speed and memory of embody compared with its peers</title>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n{title}\n<style>\n{STYLE}</style>\n' + '\n'.join(out) + '\n</svg>\n'


def main():
    asks = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asks.add_argument('--docs', action='store_true')
    asks.add_argument('--all', action='store_true')
    asks.add_argument('--embody', type=os.path.abspath, help='measure this program instead of building one')
    asks.add_argument('--beside', type=os.path.abspath)
    asks.add_argument('--real')
    asked = asks.parse_args()
    # On SIGTERM, Python exits normally, so that nginx is stopped and the temporary directory is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    load, begun = os.getloadavg()[0], time.time()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(asked.embody, pathlib.Path(folder))
        if asked.real:
            bench.build()
            return bench.real(asked.real)
        if asked.beside:
            marker, text = 'beside', bench.beside(asked.beside)
        else:
            bench.all(5000 if asked.all else 500)
            marker, text = 'figures', table(bench.rows) + ''.join(f'\nNot measured: {what}.\n' for what in bench.skipped)
    measured = 'The two versions of embody' if asked.beside else 'embody and the other programs'
    text += f'\n{measured} were measured in one run of {time.time() - begun:.0f} s on {os.cpu_count()} cores; the load average was {load:.2f} before the run.\n'
    print(text)
    if asked.docs:
        page = ROOT / 'docs/figures.md'
        before, rest = page.read_text().split(f'<!-- {marker} -->\n')
        _, after = rest.split(f'<!-- end of {marker} -->\n')
        page.write_text(f'{before}<!-- {marker} -->\n\n{text}\n<!-- end of {marker} -->\n{after}')
        if bench.rows:
            (ROOT / 'docs/figures.svg').write_text(plot(bench.rows))


if __name__ == '__main__':
    main()
