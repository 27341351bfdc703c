#!/usr/bin/env python3
"""Measures the table in the section "The milter" of docs/figures.md: benches/milter.py EMBODY

The script must run as root. It starts Postfix in a temporary directory, and sends the same messages through it in several
ways: without a milter; through embody as a milter, over a Unix socket and over TCP; through OpenDKIM, which verifies and
signs, and through rspamd, if they are installed; and through embody in a pipe, as in docs/recipes.md. rspamd runs without
modules and rules, because these send requests to the network. So its times only show how long rspamd takes to read a message
and to answer.

Two minimal milters, each in a process of its own, show the lower limit of the time. One receives each body and changes
nothing. The other also returns each body as a new one. A milter that reads or replaces bodies cannot be much faster.

The script measures two times for each message: the whole SMTP transaction, from MAIL to the response after the final dot,
and the time from MAIL until the message is in the Maildir. The ways take turns in an order that changes for each message, so
that other load of the machine affects all of them, and no way always runs after the same other way. After that, embody alone
processes 10,000 messages over 64 connections, and the script reads how much memory embody needs.

The environment variable COUNT sets the number of small messages, and MANY sets the number of messages without Postfix. If
MANY is 0, the part without Postfix is skipped.
"""
import ctypes, os, pathlib, random, select, shutil, signal, socket, statistics, subprocess, sys, tempfile, threading, time


def packet(kind, data=b''):
    return b''.join(((len(data) + 1).to_bytes(4, 'big'), kind, data))


def least(path, gives_back):
    """Runs a minimal milter on the Unix socket `path`, and does not return.

    The milter receives each body and changes nothing. If `gives_back` is true, it returns each body as a new one instead. This
    script starts itself with --least PATH or --give-back PATH to run the two milters in processes of their own.
    """
    def serve(connection):
        octets = memoryview(bytearray(1 << 20))
        filled, body = 0, bytearray()
        while count := connection.recv_into(octets[filled:]):
            at, filled = 0, filled + count
            while filled - at >= 5 and (end := at + 4 + int.from_bytes(octets[at:at + 4], 'big')) <= filled:
                kind = octets[at + 4]
                if kind == ord('O'):
                    # Selects these options, if Postfix offers them: Postfix sends no events before the header, expects no
                    # replies to header fields, to the end of the header and to the body, and keeps leading blanks.
                    numbers = (6, 0x13, 0x1c038f & int.from_bytes(octets[at + 13:at + 17], 'big'))
                    connection.sendall(packet(b'O', b''.join(number.to_bytes(4, 'big') for number in numbers)))
                elif kind == ord('B') and gives_back:
                    body += packet(b'b', octets[at + 5:end])
                elif kind == ord('E'):
                    connection.sendall(body + packet(b'c'))
                    body.clear()
                at = end
            octets[:filled - at] = octets[at:filled]
            filled -= at

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        os.chmod(path, 0o666)
        listener.listen()
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()


if sys.argv[1] in ('--least', '--give-back'):
    least(sys.argv[2], sys.argv[1] == '--give-back')
# On SIGTERM, Python exits normally, so that the last lines of this script end all processes that it has started.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
EMBODY = os.path.abspath(sys.argv[1])
COUNT = int(os.environ.get('COUNT', 200))
MANY = int(os.environ.get('MANY', 10000))
UNTIL = ('answer', 'delivery')
here = pathlib.Path(tempfile.mkdtemp())
here.chmod(0o755)
children = []


def port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def start(*command):
    log = open(here / 'log.programs', 'ab')
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    children.append(child)
    return child


def listens(at, child=None):
    for _ in range(1200):
        try:
            socket.create_connection(('127.0.0.1', at), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f'no program listens on port {at}; the logs end with:\n' + (here / 'log.programs').read_text()[-2000:])


def letter(number, size, access='URL'):
    reference = 'URL="data:text/plain,hello%0A"'
    text = ('A line of a text, as long as lines are.\r\n' * 400000)[:size]
    return (f'From: a@example.org\r\nTo: b@example.org\r\nSubject: {number}\r\nDate: Sat, 21 Nov 2026 00:00:00 +0000\r\n'
            f'Message-ID: <{number}@example.org>\r\nMIME-Version: 1.0\r\n'
            'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\n'
            f'{text}\r\n--b\r\nContent-Type: message/external-body; access-type={access};\r\n {reference}\r\n\r\n'
            'Content-Type: text/plain\r\n\r\n\r\n--b--\r\n').encode()


class Smtp:
    def __init__(self, at):
        self.socket = socket.create_connection(('127.0.0.1', at))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile('rb')
        self.expect()
        self.say(b'EHLO c.example.test\r\n')

    def expect(self):
        while True:
            line = self.file.readline()
            if line[:1] not in b'23' or not line:
                sys.exit(f'Postfix answered {line!r}; its log ends with:\n' + (here / 'postfix/log').read_text()[-2000:])
            if line[3:4] == b' ':
                return

    def say(self, text):
        self.socket.sendall(text)
        self.expect()

    def send(self, mail):
        begun = time.perf_counter()
        self.say(b'MAIL FROM:<a@example.org>\r\n')
        self.say(b'RCPT TO:<b@example.org>\r\n')
        self.say(b'DATA\r\n')
        self.say(mail + b'.\r\n')
        return time.perf_counter() - begun


def postfix(ways):
    """Starts a Postfix with one smtpd for each way. Returns the Maildir into which Postfix delivers all mail.

    Each way is a tuple of its name, its port and its smtpd_milters.
    """
    folder = here / 'postfix'
    queue = folder / 'queue'
    for name in ('bin', 'data'):
        (folder / name).mkdir(parents=True)
    shutil.chown(folder / 'data', 'postfix')
    (queue / 'pid').mkdir(parents=True)
    for name in 'active bounce corrupt defer deferred flush hold incoming private saved trace maildrop public'.split():
        (queue / name).mkdir()
        shutil.chown(queue / name, 'postfix')
    for name, mode in (('maildrop', 0o733), ('public', 0o711)):
        shutil.chown(queue / name, 'postfix', 'postdrop')
        (queue / name).chmod(mode)
    os.symlink(shutil.which('postlog', path='/usr/sbin:/usr/bin'), folder / 'bin/postlog')
    maildir = here / 'Maildir'
    for name in ('new', 'cur', 'tmp'):
        (maildir / name).mkdir(parents=True)
    subprocess.run(['chown', '-R', 'nobody:nogroup', maildir], check=True)
    (folder / 'main.cf').write_text(f'''compatibility_level = 3.6
queue_directory = {queue}
data_directory = {folder}/data
command_directory = {folder}/bin
maillog_file = {folder}/log
maillog_file_prefixes = {here}
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
myhostname = mail.example.test
mydestination =
alias_maps =
alias_database =
virtual_mailbox_domains = example.org
virtual_mailbox_base = {here}
virtual_mailbox_maps = static:Maildir/
virtual_uid_maps = static:65534
virtual_gid_maps = static:65534
virtual_mailbox_limit = 0
message_size_limit = 20480000
disable_mime_input_processing = yes
milter_default_action = tempfail
smtpd_client_connection_count_limit = 0
smtpd_client_connection_rate_limit = 0
default_process_limit = 200
smtpd_peername_lookup = no
''')
    listeners = ''
    for name, at, milters in ways:
        listeners += f'127.0.0.1:{at} inet n - n - - smtpd\n'
        listeners += f'  -o smtpd_milters={milters}\n' if milters else ''
        if name == 'a pipe':
            listeners += '  -o content_filter=hook:dummy\n'
    (folder / 'master.cf').write_text(listeners + f'''pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
proxymap unix - - n - - proxymap
anvil unix - - n - 1 anvil
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
hook unix - n n - 10 pipe
  flags=Rq user=nobody null_sender= argv=/bin/sh -c {here}/hook
postlog unix-dgram n - n - 1 postlogd
''')
    # A script like embody-then in docs/recipes.md. It writes the message into the Maildir instead of starting sendmail.
    (here / 'hook').write_text(f'''#!/bin/sh
message=$(mktemp) || exit 75
{{
  rm -f -- "$message"
  timeout -k 10 120 {EMBODY} filter --quiet >&3 || exit 75
  cat <&4 >{maildir}/tmp/$$ && mv {maildir}/tmp/$$ {maildir}/new/$$
  exit
}} 3>"$message" 4<"$message"
exit 75
''')
    (here / 'hook').chmod(0o755)
    daemons = subprocess.check_output(['postconf', '-h', 'daemon_directory'], text=True).strip()
    start(f'{daemons}/master', '-c', str(folder))
    for _, at, _ in ways:
        listens(at)
    return maildir


def opendkim():
    subprocess.run(['openssl', 'genrsa', '-out', here / 'key.pem', '2048'], check=True, capture_output=True)
    at = port()
    (here / 'opendkim.conf').write_text(f'Socket inet:{at}@127.0.0.1\nMode sv\nDomain example.org\nSelector s\n'
                                        f'KeyFile {here}/key.pem\nRequireSafeKeys no\nSyslog no\nUserID root\n')
    start('opendkim', '-f', '-x', str(here / 'opendkim.conf'))
    listens(at)
    return f'inet:127.0.0.1:{at}'


def rspamd():
    at = port()
    folder = here / 'rspamd'
    folder.mkdir()
    shutil.chown(folder, '_rspamd')
    # With the complete list of top-level domains, rspamd would take a minute to start.
    (folder / 'tld').write_text('com\norg\n')
    (here / 'rspamd.conf').write_text(f'''options {{
  pidfile = "{folder}/pid"; filters = ""; tempdir = "{folder}"; control_socket = "{folder}/control mode=0600";
  hs_cache_dir = "{folder}"; disable_hyperscan = true; url_tld = "{folder}/tld"; dns {{ nameserver = ["127.0.0.1:9"]; }}
}}
logging {{ type = "file"; filename = "{folder}/log"; level = "warning"; }}
worker "rspamd_proxy" {{
  bind_socket = "127.0.0.1:{at}"; milter = yes; count = 1; timeout = 120s;
  upstream "local" {{ default = yes; self_scan = yes; }}
}}
''')
    start('rspamd', '-f', '-u', '_rspamd', '-g', '_rspamd', '-c', str(here / 'rspamd.conf'))
    listens(at)
    return f'inet:127.0.0.1:{at}'


def resident(pid):
    for line in open(f'/proc/{pid}/status'):
        if line.startswith('VmRSS'):
            return int(line.split()[1]) // 1024


def main():
    at = port()
    path = here / 'milter.sock'
    milter = start(EMBODY, 'milter', '--listen', f'inet:{at}', '--listen', f'unix:{path}', '--socket-mode', '666',
                   '--quiet', '--max-message', '15M')
    listens(at)
    ways = [('no milter', port(), ''), ('embody, a socket', port(), f'unix:{path}'),
            ('embody, TCP', port(), f'inet:127.0.0.1:{at}')]
    for name, option in (('minimal: receives the body', '--least'), ('minimal: also returns the body', '--give-back')):
        start(sys.executable, os.path.abspath(__file__), option, str(here / option))
        ways.append((name, port(), f'unix:{here}/{option}'))
    if shutil.which('opendkim'):
        ways.append(('OpenDKIM', port(), opendkim()))
    if shutil.which('rspamd'):
        ways.append(('rspamd, no rules', port(), rspamd()))
    ways.append(('a pipe', port(), ''))
    maildir = postfix(ways)
    # Columns of the table: name, size in bytes, access type and number of messages. embody replaces references with the access
    # type URL, and leaves references with the access type AFS unchanged.
    large_count = max(5, COUNT // 10)
    columns = (('small', 2000, 'URL', COUNT), ('5 MB', 5_000_000, 'URL', large_count),
               ('5 MB, unchanged', 5_000_000, 'AFS', large_count))
    times = {(name, column[0], until): [] for name, _, _ in ways for column in columns for until in UNTIL}
    # inotify reports when a new file is linked or renamed into new/. 0x180 is IN_CREATE and IN_MOVED_TO.
    system = ctypes.CDLL(None, use_errno=True)
    watch = system.inotify_init()
    if system.inotify_add_watch(watch, bytes(maildir / 'new'), 0x180) < 0:
        sys.exit(f'cannot watch {maildir}/new with inotify: {os.strerror(ctypes.get_errno())}')
    for size, octets, access, count in columns:
        sessions = {name: Smtp(way) for name, way, _ in ways}
        for number in range(count + 3):
            mail = letter(number, octets, access)
            for name in random.Random(number).sample(list(sessions), len(sessions)):
                begun = time.perf_counter()
                taken = sessions[name].send(mail)
                if not select.select([watch], [], [], 20)[0]:
                    sys.exit(f'{name}: the message did not arrive within 20 s; the log of Postfix ends with:\n' + (here / 'postfix/log').read_text()[-2000:])
                delivered = time.perf_counter() - begun
                os.read(watch, 4096)
                for file in os.listdir(maildir / 'new'):
                    os.unlink(maildir / 'new' / file)
                # Waits for the work that Postfix does after a delivery, which would otherwise slow down the next message.
                time.sleep(0.003)
                if number >= 3:
                    for until, seconds in zip(UNTIL, (taken, delivered)):
                        times[name, size, until].append(seconds * 1000)
    print(f'The load average is {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores. The tables show the medians for {COUNT} small'
          f' and {large_count} large messages in ms, and in parentheses their ratios to the row "no milter".')
    for until in UNTIL:
        print(f'\n| until the {until} | ' + ' | '.join(column[0] for column in columns) + ' |\n|---|---|---|---|')
        for name, _, _ in ways:
            cells = []
            for size, *_ in columns:
                median, none = (statistics.median(times[way, size, until]) for way in (name, 'no milter'))
                cells.append(f'{median:.3g} ({median / none:.2f})')
            print(f'| {name} | ' + ' | '.join(cells) + ' |')

    # Sends messages to embody over 64 connections without Postfix, to measure only the work of embody.
    mail = letter(0, 2000)
    header, body = mail.split(b'\r\n\r\n', 1)
    fields = [line.split(b':', 1) for line in header.replace(b'\r\n ', b'\n ').split(b'\r\n')]
    message = b''.join(packet(b'L', name + b'\0' + value + b'\0') for name, value in fields)
    message += packet(b'N') + packet(b'B', body) + packet(b'E')
    wrong = []

    def client(count):
        with socket.create_connection(('127.0.0.1', at)) as s:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            f = s.makefile('rb')
            receive = lambda: f.read(int.from_bytes(f.read(4), 'big'))[:1]
            s.sendall(packet(b'O', (6).to_bytes(4, 'big') + (0x1ff).to_bytes(4, 'big') + (0x1fffff).to_bytes(4, 'big')))
            receive()
            for _ in range(count):
                s.sendall(message)
                answers = []
                while True:
                    answers.append(receive())
                    if len(answers) > 1 and answers[-1] == b'c':
                        break
                if b'b' not in answers:
                    wrong.append(answers)

    if MANY == 0:
        return
    sizes = []
    begun = time.perf_counter()
    for _ in range(10):
        threads = [threading.Thread(target=client, args=(-(-MANY // 640),)) for _ in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sizes.append(resident(milter.pid))
    taken = time.perf_counter() - begun
    assert not wrong, wrong[:3]
    count = -(-MANY // 640) * 640
    print(f'{count} messages over 64 connections: {count / taken:.0f} messages a second; resident memory in MiB after each tenth of'
          f' the messages: {sizes}')


try:
    main()
finally:
    for child in reversed(children):
        child.terminate()
    for child in children:
        child.wait()
    shutil.rmtree(here, ignore_errors=True)
