"""The scripted web server of the referee: an HTTP proxy on 127.0.0.1 that answers for every host.

The answer to a URL depends only on the URL. Two programs that request the same URLs therefore receive the same answers, in
any order and on any machine. The function `answer` computes an answer, and `Server` sends it. Each answer belongs to a
class, such as "fit" or "slow". If the URL contains the parameter `is=CLASS`, it chooses the class; generated mails contain
such URLs. Otherwise the SHA-256 of the URL chooses the class. Compressed bodies and PNG files contain only DEFLATE blocks
that are not compressed, because different versions of zlib compress the same data to different bytes.
"""

import asyncio
import hashlib
import re
import struct
import threading
import zlib
from urllib.parse import unquote, urlsplit

# The classes of answers, and how often each is chosen, in thousandths. A number is a status code. The other classes are:
# "fit": the content matches the file name extension in the URL
# "tiny": a picture of 1x1 pixel; "large", "huge": pictures of 300 kB and 3 MB
# "page": an HTML document in place of the content
# "redirect": one or more redirects to the content; "loop": a redirect to the same URL; "redirect-private": a redirect to a
#     private address; "redirect-ftp": a redirect to FTP; "redirect-nowhere": a redirect without Location
# "slow", "silent": the answer is sent after SLOW or SILENCE seconds
# "wrong-type", "no-type": Content-Type has an arbitrary value, or is missing
# "gzip": the content is in gzip; "bad-gzip": the gzip data is cut
# "brotli": Content-Encoding is br, but the content is not encoded
# "chunked": a chunked response; "to-the-end": no Content-Length; "cut": only half of the announced bytes
# "empty": no content; "garbage": not an HTTP response; "reset": the connection is reset
CLASSES = [
    ("fit", 560), ("tiny", 40), ("page", 45), ("404", 50), ("410", 15), ("403", 10), ("500", 15), ("503", 5),
    ("429", 5), ("204", 4), ("redirect", 70), ("loop", 4), ("redirect-private", 3), ("redirect-ftp", 3),
    ("redirect-nowhere", 3), ("slow", 10), ("silent", 2), ("large", 10), ("huge", 2), ("wrong-type", 40),
    ("no-type", 15), ("gzip", 35), ("bad-gzip", 3), ("brotli", 3), ("chunked", 25), ("to-the-end", 10), ("cut", 6),
    ("empty", 4), ("garbage", 2), ("reset", 1),
]
assert sum(share for _, share in CLASSES) == 1000
# Delay of "slow" and "silent" answers, in seconds. SILENCE is longer than the time limit in sets.WEB, so the programs never
# receive a "silent" answer.
SLOW, SILENCE = 0.1, 30
# Maximum number of imports in a chain of style sheets.
LEVELS = 4
# Media types by file name extension.
TYPES = {
    "css": "text/css", "png": "image/png", "gif": "image/gif", "jpg": "image/jpeg", "jpeg": "image/jpeg",
    "svg": "image/svg+xml", "woff2": "font/woff2", "woff": "font/woff", "ttf": "font/ttf", "mp3": "audio/mpeg",
    "ogg": "audio/ogg", "mp4": "video/mp4", "webm": "video/webm", "pdf": "application/pdf", "txt": "text/plain",
    "html": "text/html; charset=utf-8", "htm": "text/html", "eml": "message/rfc822", "zip": "application/zip",
    "mht": "text/plain", "pl": "text/plain", "bin": "application/octet-stream", "doc": "application/msword",
}
PICTURES = ("png", "gif", "jpg", "svg")
REASONS = {
    200: "OK", 204: "No Content", 302: "Found", 301: "Moved Permanently", 403: "Forbidden", 404: "Not Found",
    410: "Gone", 429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable",
}


def digest(text):
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


def noise(seed, length):
    """Returns `length` bytes that depend only on the seed (bytes)."""
    return hashlib.shake_128(seed).digest(length)


def stored(data):
    """Returns a DEFLATE stream of blocks that are not compressed."""
    blocks = [data[at:at + 65535] for at in range(0, len(data), 65535)] or [b""]
    heads = [(1 if at + 1 == len(blocks) else 0, len(block)) for at, block in enumerate(blocks)]
    return b"".join(
        struct.pack("<BHH", last, length, length ^ 0xFFFF) + block for (last, length), block in zip(heads, blocks)
    )


def gzip(data):
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + stored(data) + struct.pack("<II", zlib.crc32(data), len(data) & 0xFFFFFFFF)


def png(seed, width, height):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    rows = b"".join(b"\0" + noise(seed + bytes([row % 256]), width) for row in range(height))
    packed = b"\x78\x01" + stored(rows) + struct.pack(">I", zlib.adler32(rows))
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def gif(seed, width, height, length=60):
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\x80\0\0\0\0\0\xff\xff\xff" + noise(seed, length) + b";"


def jpeg(seed, width, height):
    frame = struct.pack(">BHHB", 8, height, width, 1) + b"\x01\x11\0"
    return (
        b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0" + struct.pack(">H", len(frame) + 2) + frame
        + b"\xff\xda\0\x08\x01\x01\0\0\x3f\0" + noise(seed, 80).replace(b"\xff", b"\xfe") + b"\xff\xd9"
    )


def svg(seed):
    inner = [
        '<circle r="9"/>', '<script>alert(1)</script>', '<image href="http://elsewhere.example.org/a.png"/>',
        '<style>a{fill:url(#b)}</style>', '<a href="http://www.example.org/"><text>x</text></a>', '<rect onclick="x()"/>',
    ][0 if seed[1] < 160 else seed[1] % 6]
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="{seed[0] + 4}" height="20">{inner}</svg>\n'.encode()


def css(seed, level, depth):
    """Returns a style sheet that uses pictures, and in some cases fonts.

    If `level` is less than `depth`, the style sheet imports another one of the next level. One style sheet in 16 also
    imports one of its own level.
    """
    name = seed.hex()[:12]
    lines = [f"/* {name} */"]
    if level < depth:
        address = f"/_/css/{level + 1}/{depth}/{name}.css"
        lines.append([f'@import "{address}";', f"@import url({address}) screen;"][seed[2] % 2])
    if seed[3] % 16 == 0:
        lines.append(f'@import "/_/css/{level}/{depth}/{name}.css";')
    lines.append(f"body {{ background: url('/_/{seed[4] % 3}/{name}-{level}.{PICTURES[seed[5] % 4]}') }}")
    lines.append(f"li {{ list-style: url(../{name}.gif) }}")
    if seed[6] % 3 == 0:
        lines.append(f"@font-face {{ font-family: x; src: url(/_/{name}.woff2) format('woff2'), url(/_/{name}.ttf) }}")
    if seed[7] % 4 == 0:
        lines.append("p { background: image-set(url(data:image/gif;base64,R0lGODlhAQABAAAAACw=) 1x, 'a.png' 2x) }")
    return "\n".join(lines).encode() + b"\n"


def chain(number, seed):
    """Returns a message of a chain. It contains only a reference to message `number` - 1; message 0 contains a text."""
    head = f"From: chain@example.org\nSubject: link {number}\nMessage-ID: <{number}.{seed}@chain.example.org>\nMIME-Version: 1.0\n"
    if number == 0:
        return (head + "Content-Type: text/plain\n\nThe end of the chain.\n").encode()
    return (
        f"{head}Content-Type: message/external-body; access-type=URL;\n"
        f' URL="http://chain.example.org/_/chain/{number - 1}/{seed}.eml"\n\nContent-Type: message/rfc822\n\n'
    ).encode()


# HTML documents that servers send in place of a file.
PAGES = [
    "<title>A page</title><p>Nothing to see", "<title>Sign in</title><input type=\"password\">",
    "<title>Google Drive - Virus scan warning</title>", "<p>This link has expired", "<p>The file is no longer available",
]


def content(address, seed):
    """Returns the media type and the content that match a URL. `address` is the parsed URL. `seed` is a SHA-256."""
    path = unquote(address.path)
    made = re.fullmatch(r"/_/css/(\d)/(\d)/(.*)", path)
    if made:
        return "text/css", css(digest(made[3]), int(made[1]), min(int(made[2]), LEVELS))
    made = re.fullmatch(r"/_/chain/(\d+)/(\w*)\.eml", path)
    if made:
        return "message/rfc822", chain(int(made[1]), made[2])
    made = re.fullmatch(r"/_/size/(\d+)/.*", path)
    if made:
        length = int(made[1])
        return "image/gif", gif(seed, 40, 40, max(length - 20, 1))
    ending = path.rsplit("/", 1)[-1].rsplit(".", 1)[-1].lower()
    if ending not in TYPES or ending == "html":
        # A URL without a known extension is a style sheet if its path contains "css" or its host is Google Fonts. Otherwise
        # it is a picture, because most such URLs in mail are pictures.
        ending = "css" if "css" in path.lower() or "fonts.googleapis" in (address.hostname or "") else (
            ending if ending == "html" else PICTURES[seed[8] % 4])
    width, height = 2 + seed[9] % 90, 2 + seed[10] % 90
    makers = {
        "css": lambda: css(seed, 0, seed[11] % (LEVELS + 1)), "png": lambda: png(seed, width, height),
        "gif": lambda: gif(seed, width, height), "jpg": lambda: jpeg(seed, width, height),
        "jpeg": lambda: jpeg(seed, width, height), "svg": lambda: svg(seed),
        "woff2": lambda: b"wOF2\0\1\0\0" + noise(seed, 120), "woff": lambda: b"wOFF\0\1\0\0" + noise(seed, 120),
        "ttf": lambda: b"\0\1\0\0\0\4" + noise(seed, 120), "mp3": lambda: b"ID3\3\0\0" + noise(seed, 200),
        "ogg": lambda: b"OggS" + noise(seed, 200), "mp4": lambda: b"\0\0\0\x18ftypmp42" + noise(seed, 200),
        "webm": lambda: b"\x1a\x45\xdf\xa3" + noise(seed, 200), "pdf": lambda: b"%PDF-1.4\n" + noise(seed, 300),
        "html": lambda: f"<title>page</title><p>{seed.hex()}</p>\n".encode(),
        "htm": lambda: b"<html><p>caf\xe9</p></html>\n", "txt": lambda: [b"A text.\n", b"caf\xc3\xa9\r\n", b"--b\n"][seed[12] % 3],
        "eml": lambda: chain(seed[12] % 3, seed.hex()[:8]), "zip": lambda: b"PK\3\4" + noise(seed, 200),
    }
    return TYPES[ending], makers.get(ending, lambda: noise(seed, 40 + seed[12]))()


class Answer:
    """An answer of the server. `fields` are pairs of header fields, and `wait` is the delay in seconds. `ending` is a class
    that determines how the body is sent ("chunked", "to-the-end", "cut", "garbage" or "reset"), or an empty text.
    """

    def __init__(self, status, fields=(), body=b"", wait=0, ending=""):
        self.status, self.fields, self.body, self.wait, self.ending = status, list(fields), body, wait, ending


def chosen(address, seed):
    """Returns the class of the answer to a URL. Most URLs whose path begins with `/_/` have the class "fit"."""
    made = re.search(r"(?:^|&)is=([\w-]+)", address.query)
    if made:
        return made[1]
    if address.path.startswith("/_/") and seed[0] % 8:
        return "fit"
    number = int.from_bytes(seed[16:20], "big") % 1000
    for name, share in CLASSES:
        number -= share
        if number < 0:
            return name
    raise AssertionError("the shares are less than 1000")


def archived(url):
    """Returns an answer of the web archive archive.example.org: a capture, a redirect to a capture with another date, or
    status 404 if the archive has no capture.
    """
    inner = url.split("id_/", 1)[-1]
    seed = digest("archive " + inner)
    if seed[0] < 90:
        return Answer(404, [("Content-Type", "text/html")], b"<p>no capture")
    if seed[0] < 130 and "id_/" in url:
        return Answer(302, [("Location", "http://archive.example.org/web/20240601000000if_/" + inner)])
    address = urlsplit(inner if "//" in inner else "http://" + inner)
    essence, body = content(address, digest(inner))
    return Answer(200, [("Content-Type", essence), ("Memento-Datetime", "Sat, 01 Jun 2024 00:00:00 GMT")], body)


def answer(url):
    """Returns the answer to a URL. The same URL always has the same answer."""
    address = urlsplit(url)
    seed = digest(url)
    if address.hostname == "archive.example.org":
        return archived(url)
    name = chosen(address, seed)
    base = url.split("?")[0]
    essence, body = content(address, seed)
    typed = [("Content-Type", essence)]
    if name in REASONS_BY_NAME:
        fields = [("Content-Type", "text/html")] + ([("Retry-After", "600")] if name == "429" else [])
        return Answer(int(name), fields, b"" if name == "204" else b"<p>" + name.encode())
    made = re.search(r"(?:^|&)hop=(\d+)", address.query)
    if name == "redirect":
        hops = int(made[1]) if made else 1 + seed[13] % 7
        after = f"is=fit&from={seed.hex()[:6]}" if hops <= 1 else f"is=redirect&hop={hops - 1}&from={seed.hex()[:6]}"
        place = [f"{base}?{after}", f"?{after}", f"{address.path or '/'}?{after}"][seed[14] % 3]
        return Answer([301, 302][seed[15] % 2], [("Location", place)], b"moved")
    endings = {
        "loop": [("Location", url)], "redirect-private": [("Location", "http://10.1.2.3/a.png")],
        "redirect-ftp": [("Location", "ftp://ftp.example.org/a.png")], "redirect-nowhere": [],
    }
    if name in endings:
        return Answer(302, endings[name])
    if name == "tiny":
        return Answer(200, [("Content-Type", "image/gif")], gif(seed, 1, 1, 20))
    if name == "page":
        return Answer(200, [("Content-Type", "text/html; charset=utf-8")], PAGES[seed[13] % len(PAGES)].encode())
    if name in ("slow", "silent"):
        return Answer(200, typed, body, SLOW if name == "slow" else SILENCE)
    if name in ("large", "huge"):
        length = 300_000 if name == "large" else 3_000_000
        return Answer(200, [("Content-Type", "image/gif")], gif(seed, 50, 50, length))
    if name == "wrong-type":
        wrong = ["text/plain", "image/png", "application/octet-stream", "image/x-unknown", "text/html", "image/svg+xml", "/"]
        return Answer(200, [("Content-Type", wrong[seed[13] % len(wrong)])], body)
    if name == "no-type":
        return Answer(200, [], body)
    if name in ("gzip", "bad-gzip"):
        packed = gzip(body)
        return Answer(200, typed + [("Content-Encoding", "gzip")], packed if name == "gzip" else packed[:-6])
    if name == "brotli":
        return Answer(200, typed + [("Content-Encoding", "br")], body)
    if name == "empty":
        return Answer(200, typed)
    return Answer(200, typed, body, ending="" if name == "fit" else name)


# Classes of answers whose names are status codes.
REASONS_BY_NAME = {str(status) for status in REASONS if status not in (200, 301, 302)}


class Server:
    """An HTTP proxy on a port of 127.0.0.1 that runs in its own thread and records each request.

    `delay` is an additional delay of each answer, in seconds. If `fixed` is given, this function replaces `answer`.
    """

    def __init__(self, delay=0, fixed=None):
        self.requests, self.delay, self.answer = [], delay, fixed or answer
        self.loop = asyncio.new_event_loop()
        started = threading.Event()
        threading.Thread(target=self._serve, args=(started,), daemon=True).start()
        started.wait()

    def taken(self):
        """Returns the requests since the last call, as a sorted list of pairs of method and URL. The list contains repeated
        requests. It is sorted, because the order of parallel requests differs between runs.
        """
        requests, self.requests = self.requests, []
        return sorted(requests)

    def _serve(self, started):
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._connected, "127.0.0.1", 0, backlog=256))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()

    async def _connected(self, reader, writer):
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, OSError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader, writer):
        """Reads one request and sends its answer. Returns whether the connection stays open. The method CONNECT is refused,
        because the server does not support TLS.
        """
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        method, url, _ = head.split("\r\n", 1)[0].split(" ", 2)
        if method == "CONNECT":
            self.requests.append((method, url))
            writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
            return False
        if url.startswith("/"):
            host = re.search(r"(?im)^host: *(\S+)", head)
            url = f"http://{host[1] if host else '-'}{url}"
        self.requests.append((method, url))
        reply = self.answer(url)
        if reply.wait or self.delay:
            await asyncio.sleep(reply.wait + self.delay)
        if reply.ending == "reset":
            writer.transport.abort()
            return False
        if reply.ending == "garbage":
            writer.write(b"SMTP ready\r\n\r\n")
            await writer.drain()
            return False
        body, fields = reply.body, list(reply.fields)
        keeps = reply.ending not in ("to-the-end", "cut")
        if reply.ending == "chunked":
            half = len(body) // 2
            pieces = [piece for piece in (body[:half], body[half:]) if piece]
            body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
            fields.append(("Transfer-Encoding", "chunked"))
        elif reply.ending != "to-the-end" and reply.status != 204:
            fields.append(("Content-Length", str(len(body))))
        if reply.ending == "cut":
            body = body[: len(body) // 2]
        if not keeps:
            fields.append(("Connection", "close"))
        lines = [f"HTTP/1.1 {reply.status} {REASONS[reply.status]}"] + [f"{name}: {value}" for name, value in fields]
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
        if method != "HEAD":
            writer.write(body)
        await writer.drain()
        return keeps
