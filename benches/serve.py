#!/usr/bin/env python3
"""Measures `embody serve`: benches/serve.py EMBODY [MAIL...]

Sends mails through /v1/detach and /v1/restore, from one process with 8 connections, and compares each byte of the restored
mails. MAIL is a message or a directory of messages; without it, the script generates mails with an attachment of 1 to 300 kB.
The same mails then go through a process per mail (`embody detach` and `embody restore`), the usual way without a service. The
two ways take turns, so that other load of the machine affects both. The store is in TMPDIR, so its disk counts unless TMPDIR
is a RAM disk. The last measurement reads a large mbox through /v1/messages, and shows that the memory does not grow with it.

The environment variable COUNT sets the number of mails, ALONE the number of them that also go through a process per mail, and
LARGE the size of the mbox in MiB. MAILBOX names a file that is read instead of the mbox. The test write_a_large_pst
(tests/it/mailbox/outlook_pst.rs) writes an Outlook mailbox of 1 GB.
"""
import base64, http.client, json, os, pathlib, random, signal, statistics, subprocess, sys, tempfile, threading, time

EMBODY = os.path.abspath(sys.argv[1])
COUNT = int(os.environ.get('COUNT', 10000))
ALONE = int(os.environ.get('ALONE', 200))
LARGE = int(os.environ.get('LARGE', 1024))
MAILBOX = os.environ.get('MAILBOX')
CONNECTIONS = 8
here = pathlib.Path(tempfile.mkdtemp(prefix='embody-bench-'))


def generated(number):
    random.seed(number)
    content = random.randbytes(random.choice((1_000, 10_000, 100_000, 300_000)))
    return (b'From: a@example.org\r\nSubject: %d\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n'
            b'--b\r\n\r\nText\r\n--b\r\nContent-Type: application/pdf; name=a.pdf\r\nContent-Disposition: attachment\r\n'
            b'Content-Transfer-Encoding: base64\r\n\r\n%s--b--\r\n'
            % (number, base64.encodebytes(content).replace(b'\n', b'\r\n')))


def mails():
    paths = [path for name in sys.argv[2:] for path in ([pathlib.Path(name), *pathlib.Path(name).rglob('*')]) if path.is_file()]
    for number in range(COUNT):
        yield paths[number % len(paths)].read_bytes() if paths else generated(number)


class Service:
    def __init__(self):
        self.log = here / 'log'
        options = ['--listen', '127.0.0.1:0', '--store', here / 'store', '--spool', here]
        self.process = subprocess.Popen([EMBODY, 'serve', *options], stderr=self.log.open('w'))
        while 'listens on' not in self.log.read_text():
            time.sleep(0.01)
        self.port = int(self.log.read_text().split('127.0.0.1:')[1].split()[0])

    def memory(self, field='VmRSS'):
        lines = pathlib.Path(f'/proc/{self.process.pid}/status').read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def post(connection, path, body):
    connection.request('POST', path, body)
    response = connection.getresponse()
    answer = response.read()
    assert response.status == 200, answer
    return answer


def through_service(service, todo, times, wrong, largest, detached):
    connection = http.client.HTTPConnection('127.0.0.1', service.port)
    while True:
        with todo:
            mail = next(todo.mails, None)
        if mail is None:
            return
        begun = time.perf_counter()
        small = post(connection, '/v1/detach?larger-than=1k', mail)
        middle = time.perf_counter()
        restored = post(connection, '/v1/restore', small)
        times.append((middle - begun, time.perf_counter() - middle))
        largest.append(len(mail))
        detached.append(small != mail)
        if restored != mail:
            wrong.append(mail)


class Todo:
    def __init__(self):
        self.mails, self.lock = mails(), threading.Lock()

    def __enter__(self):
        self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()


def generated_mbox():
    path = here / 'large.mbox'
    with path.open('wb') as mbox:
        number = 0
        while mbox.tell() < LARGE << 20:
            mbox.write(b'From a@example.org Sat Jan  3 01:05:34 1996\n' + generated(number).replace(b'\r\n', b'\n') + b'\n')
            number += 1
    return path


def main():
    service = Service()
    todo, times, wrong, largest, detached = Todo(), [], [], [], []
    before = service.memory()
    begun = time.perf_counter()
    arguments = service, todo, times, wrong, largest, detached
    threads = [threading.Thread(target=through_service, args=arguments) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    peak = service.memory('VmHWM')
    detach, restore = (statistics.median(column) * 1000 for column in zip(*times))
    print(f'the load average is {os.getloadavg()[0]:.2f}, {os.cpu_count()} cores')
    print(f'embody serve: {len(times)} mails, {sum(detached)} with a detached attachment, '
          f'{len(times) - len(wrong)} restored exactly, {len(times) / seconds:.0f} mails/s')
    print(f'  median: detach {detach:.2f} ms, restore {restore:.2f} ms')
    connection, single = http.client.HTTPConnection('127.0.0.1', service.port), []
    for _, mail in zip(range(1000), mails()):
        begun = time.perf_counter()
        assert post(connection, '/v1/restore', post(connection, '/v1/detach?larger-than=1k', mail)) == mail
        single.append(time.perf_counter() - begun)
    print(f'  with one connection: median {statistics.median(single) * 1000:.2f} ms for detach and restore')
    print(f'  memory: {before:.0f} MiB at the start, {peak:.0f} MiB at most; the largest mail has {max(largest) / 2**20:.1f} MiB')
    alone = []
    for number, mail in zip(range(ALONE), mails()):
        begun = time.perf_counter()
        command = [EMBODY, 'detach', '--quiet', '--larger-than=1k', '--store', here / 'store']
        small = subprocess.run(command, input=mail, capture_output=True, check=True).stdout
        command = [EMBODY, 'restore', '--quiet', '--store', here / 'store']
        restored = subprocess.run(command, input=small, capture_output=True, check=True).stdout
        alone.append(time.perf_counter() - begun)
        assert restored == mail
    if alone:
        print(f'a process per mail: median {statistics.median(alone) * 1000:.2f} ms for detach and restore')
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait() == 0
    service = Service()
    before = service.memory()
    mailbox = pathlib.Path(MAILBOX) if MAILBOX else generated_mbox()
    connection = http.client.HTTPConnection('127.0.0.1', service.port)
    begun = time.perf_counter()
    with mailbox.open('rb') as content:
        connection.request('POST', '/v1/messages', content, {'Content-Length': str(mailbox.stat().st_size)})
    response, last = connection.getresponse(), b''
    while piece := response.read(1 << 20):
        last = (last + piece)[-4096:]
    assert response.status == 200, last
    report = json.loads(last[last.index(b'{"kind":"report"'):last.rindex(b'}') + 1])
    assert report['announced'] == report['delivered'] > 0, report
    seconds = time.perf_counter() - begun
    print(f'/v1/messages: {report["delivered"]} mails of {mailbox.stat().st_size / 2**20:.0f} MiB in {seconds:.1f} s; '
          f'{service.memory("VmHWM") - before:.0f} MiB more memory')
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait() == 0


try:
    main()
finally:
    subprocess.run(['rm', '-r', here])
