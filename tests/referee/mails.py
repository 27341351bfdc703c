"""Generates mails and mailboxes with the forms of references in docs/references.md and docs/schemes.md from a seed.

The same seed gives the same bytes on every machine. Each form has a function that takes a `Maker`. The functions in the
list PARTS return one part of a multipart, or a list of parts. The functions in the list WHOLE return a message. If a form
is added to docs/schemes.md or docs/references.md, add a function for it to this file.
"""

import base64
import hashlib
import quopri
import random
from email.header import Header
from urllib.parse import quote

import web

# Address of the archive of a Mailman list.
LIST = "http://lists.example.org/pipermail/team/"
# Beginning of the boundaries of generated messages.
MINE = "=_referee"


class Maker:
    """Makes random choices and new names for one mail. Seed and number of the mail determine all values."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed} {number}")
        self.number, self.count = number, 0
        self.message_id = f"<{number}.{seed}@mail.example.org>"

    def one_of(self, *choices):
        """Returns one of the arguments."""
        return choices[self.random.getrandbits(32) % len(choices)]

    def below(self, limit):
        """Returns an integer from 0 to `limit` - 1."""
        return self.random.getrandbits(32) % limit

    def fresh(self):
        """Returns a name that no other call in any mail with this seed returns."""
        self.count += 1
        return f"{self.number}-{self.count}"

    def bytes(self, length):
        return web.noise(f"{self.number} {self.fresh()}".encode(), length)

    def url(self, ending="", scheme=None, host=None):
        """Returns a URL that the scripted server answers. About a third of the URLs can occur in several mails.

        `ending` is the file name extension. Extension, scheme and host are random if they are not given.
        """
        name = self.one_of(self.fresh(), self.fresh(), f"shared-{self.below(20)}")
        ending = ending or self.one_of("png", "gif", "jpg", "svg", "pdf", "txt", "bin", "png")
        host = host or self.one_of("web.example.org", "img.example.com", "cdn.example.net", "files.example.org")
        scheme = scheme or self.one_of("http", "http", "https")
        tail = self.one_of("", "", "", "?a=1&b=2", "?is=404", "?is=500", "?is=redirect", "?is=fit")
        return f"{scheme}://{host}/{self.one_of('a', 'b/c', 'a/b/d e'.replace(' ', '%20'))}/{name}.{ending}{tail}"


# Parts

def folded(url, maker):
    """Returns the parameter `URL` in a random notation: as a quoted string, folded (RFC 2017), in sections (RFC 2231),
    percent-encoded (RFC 2231), or with the URL in the brackets `<URL:...>`. A short URL is always a quoted string.
    """
    way = maker.below(5)
    if way == 0 or len(url) < 50:
        return f'URL="{url}"'
    pieces = [url[at:at + 40] for at in range(0, len(url), 40)]
    if way == 1:
        return 'URL="' + "\n      ".join(pieces) + '"'
    if way == 2:
        return ";\n ".join(f'URL*{at}="{piece}"' for at, piece in enumerate(pieces))
    if way == 3:
        return "URL*=us-ascii''" + quote(url, safe="")
    return f'URL="<URL:{url}>"'


def reference(maker, parameters, phantom="", outer=""):
    """Returns a message/external-body. `parameters` are the parameters of its Content-Type, `phantom` is the phantom header,
    and `outer` are other fields of the outer header.
    """
    return f"Content-Type: message/external-body;\n {parameters}\n{outer}\n{phantom}\n"


def phantom(maker, url="", body=None):
    """Returns a phantom header with random fields, some of which do not match the content of `url`. `body` is the text after
    the phantom header, or None.
    """
    lines = []
    essence = web.answer(url).fields[:1] if url.startswith("http:") else []
    essence = essence[0][1] if essence and essence[0][0] == "Content-Type" else "image/png"
    if maker.below(4):
        lines.append(f"Content-Type: {maker.one_of(essence, essence, essence, 'application/octet-stream', 'text/plain')}")
    if maker.below(3) == 0:
        lines.append('Content-Disposition: attachment; filename="a file.bin"')
    if maker.below(3) == 0:
        lines.append(f"Content-ID: <{maker.fresh()}@example.org>")
    if maker.below(6) == 0:
        lines.append("Content-Transfer-Encoding: " + maker.one_of("binary", "base64", "7bit"))
    if url.startswith("http:") and maker.below(4) == 0:
        octets = web.answer(url).body if maker.below(3) else b"other"
        lines.append("Content-MD5: " + base64.b64encode(hashlib.md5(octets).digest()).decode())
    return "".join(line + "\n" for line in lines) + (f"\n{body}\n" if body else "")


def by_url(maker):
    url = maker.url()
    return reference(maker, f"access-type={maker.one_of('URL', 'url')}; {folded(url, maker)}", phantom(maker, url))


def data_url(maker, essence=None):
    """Returns a `data:` URL with random content. Some of the URLs contain malformed base64. `essence` is the media type."""
    essence = essence or maker.one_of("image/png", "text/plain;charset=utf-8", "", "application/x-y;a=b", "text/html")
    octets = maker.one_of(web.png(b"x", 4, 4), "Gr\u00fc\u00dfe, 1 < 2\n".encode(), maker.bytes(300), b"")
    way = maker.below(4)
    if way == 0:
        return f"data:{essence}," + quote(octets)
    text = base64.b64encode(octets).decode()
    return f"data:{essence};base64," + (text if way < 3 else text.rstrip("=") + maker.one_of("", "%3D", "*"))


def by_data(maker):
    return reference(maker, f"access-type=URL; {folded(data_url(maker), maker)}", phantom(maker))


def by_other_scheme(maker):
    url = maker.one_of(
        "ftp://ftp.example.org/pub/a.txt;type=a", "file:///srv/files/a.txt", "mid:other@example.org/1", "gopher://g.example.org/1",
        "http://user:secret@web.example.org/a.png", "http://127.0.0.1/a.png", "http://web.example.org:8080/a.png", "relative/a.png",
        "http://[::1/a", "", "data:no comma", "https://", "http://localhost/x.png", "HTTP://WEB.EXAMPLE.ORG/A.PNG?is=fit",
        "http://web.example.org/%zz?is=fit", "http://b\u00fccher.example.org/a.png?is=fit",
    )
    return reference(maker, f"access-type=URL; {folded(url, maker)}", phantom(maker))


def by_access_type(maker):
    parameters = maker.one_of(
        'access-type=FTP; site="ftp.example.org"; directory="pub"; name="a.txt"; mode=ascii',
        'access-type=ANON-FTP; site="ftp.example.org"; directory="/pub/x"; name="b.bin"; mode="image"',
        'access-type=ANON-FTP; site="ftp.example.org"', 'access-type=LOCAL-FILE; name="/srv/files/a.txt"',
        'access-type=LOCAL-FILE; name="/srv/files/none.txt"; site="here.example.org"',
        'access-type=MAIL-SERVER; server="listserv@example.org"; subject="get"', "access-type=TFTP; site=h; name=n",
        "access-type=AFS; name=/afs/a", 'access-type=X-MUTT-DELETED; expiration="Thu, 1 Jan 2004 00:00:00 GMT"; length=12',
        "access-type=X-NEW; name=a", "name=a", "access-type=URL", 'access-type=URL; size=999999999; URL="http://web.example.org/a.png?is=fit"',
        'access-type=URL; expiration="Thu, 1 Jan 2004 00:00:00 GMT"; permission=read; URL="http://web.example.org/b.png?is=fit"',
    )
    return reference(maker, parameters, phantom(maker, body=maker.one_of(None, "send the file")))


def by_content_id(maker):
    """Returns two parts in random order: a reference to a Content-ID, and a part that usually has this Content-ID. The
    second part is a text, a reference to content, a reference to itself, a multipart, or a text without this Content-ID.
    """
    name = f"{maker.fresh()}@example.org"
    kind = maker.below(6)
    first = maker.one_of(
        reference(maker, "access-type=CONTENT-ID", "Content-Type: text/plain\n", f"Content-ID: <{name}>\n"),
        reference(maker, f'access-type=URL; URL="cid:{quote(name)}"', "Content-Type: text/plain\n"),
        reference(maker, f'access-type=URL; URL="mid:{quote(maker.message_id[1:-1])}/{quote(name)}"', "Content-Type: text/plain\n"),
    )
    second = [
        f"Content-Type: text/plain; charset=utf-8\nContent-ID: <{name}>\n\nThe text that is copied.\n",
        f"Content-Type: text/plain\nContent-ID: <{name}>\nContent-Transfer-Encoding: base64\n\nVGV4dAo=\n",
        reference(maker, 'access-type=URL; URL="data:,copied"', f"Content-ID: <{name}>\nContent-Type: text/plain\n"),
        reference(maker, f'access-type=URL; URL="cid:{quote(name)}"', f"Content-ID: <{name}>\nContent-Type: text/plain\n"),
        f"Content-Type: multipart/mixed; boundary=in-{maker.fresh()}\nContent-ID: <{name}>\n\n",
        "Content-Type: text/plain\n\nNothing with that Content-ID.\n",
    ][kind]
    return [first, second] if maker.below(2) else [second, first]


def chain_and_circle(maker):
    """Returns two to nine references, each of which refers to the Content-ID of the next one. The last one refers to
    content, to a Content-ID that does not exist, or to the first reference.
    """
    length = 2 + maker.below(8)
    names = [f"{maker.fresh()}-{at}@example.org" for at in range(length)]
    parts = []
    for at, name in enumerate(names):
        last = at + 1 == length
        target = maker.one_of("data:,end", "cid:" + names[0], "cid:none@example.org", maker.url("txt")) if last else "cid:" + names[at + 1]
        parts.append(reference(maker, f'access-type=URL; URL="{target}"', f"Content-ID: <{name}>\nContent-Type: text/plain\n"))
    if maker.below(2):
        parts.reverse()
    return parts


def rivals(maker):
    """Returns a multipart/alternative of two to five references to sources of the same content. Most of the references have
    the same Content-ID. Some of the multiparts begin with a text part.
    """
    boundary, name = f"rivals-{maker.fresh()}", f"{maker.fresh()}@example.org"
    sources = []
    for _ in range(2 + maker.below(4)):
        target = maker.one_of(
            'access-type=MAIL-SERVER; server="a@example.org"', 'access-type=URL; URL="data:,kept"',
            f'access-type=URL; URL="{maker.url("txt", "http")}"', f'access-type=URL; URL="{maker.url("txt")}"',
            'access-type=URL; URL="http://web.example.org/gone.txt?is=404"', 'access-type=ANON-FTP; site=ftp.example.org; name=a.txt',
            'access-type=LOCAL-FILE; name="/srv/files/a.txt"',
        )
        mine = name if maker.below(5) else f"{maker.fresh()}@example.org"
        sources.append(reference(maker, target, f"Content-Type: text/plain\nContent-ID: <{mine}>\n"))
    if maker.below(3) == 0:
        sources.insert(0, "Content-Type: text/plain\n\nA text beside them.\n")
    return multipart("alternative", boundary, sources)


def mozilla(maker):
    """Returns a part that Thunderbird writes for a detached, deleted, separately stored or cloud attachment."""
    url = maker.one_of("file:///C:/Users/me/Mail/coast.png", maker.url(), "file:////fileserver/mail/coast.png", maker.url("ogg"))
    original = "Content-Type: image/png; name=\"coast.png\"\nContent-Transfer-Encoding: base64\nContent-Disposition: inline; filename=\"coast.png\"\n"
    return maker.one_of(
        'Content-Type: image/png; name="coast.png"\nContent-Disposition: attachment; filename="coast.png"\n'
        f'X-Mozilla-External-Attachment-URL: {url}\nX-Mozilla-Altered: AttachmentDetached; date="Sun Aug 09 18:04:11 2020"\n\n'
        "You deleted an attachment from this message. The original MIME headers for the attachment were:\n" + original + "\n",
        'Content-Type: text/plain; name="a.png"\nX-Mozilla-Altered: AttachmentDeleted; date="Sun Aug 09 18:04:11 2020"\n\n'
        "You deleted an attachment from this message. The original MIME headers for the attachment were:\n" + original + "\n",
        f'Content-Type: audio/ogg; name="Episode 1"; size=70\nX-Mozilla-External-Attachment-URL: {url}\n'
        'Content-Disposition: attachment; filename="episode.ogg"\n\nThis MIME attachment is stored separately from the message.\n',
        f'Content-Type: application/octet-stream; name="a.bin"\nContent-Disposition: attachment; filename="a.bin"\n'
        f"X-Mozilla-Cloud-Part: cloudFile; url={url}\n\n\n",
        f'Content-Type: text/html; name="a.html"\nX-Mozilla-Cloud-Part: cloudFile; url={url};\n provider=account2; data="eyJpZCI6MX0="\n\n<p>A page.\n',
    )


def shortcut(maker):
    """Returns an attachment that is a Windows shortcut (`.url`) to a file."""
    text = base64.b64encode(f"[InternetShortcut]\r\nURL={maker.url()}\r\n".encode()).decode()
    essence = maker.one_of("message/external-body", "application/internet-shortcut", "application/octet-stream")
    return (
        f'Content-Type: {essence}; name="report.pdf.url"\nContent-Disposition: attachment; filename="report.pdf.url"\n'
        f"Content-Transfer-Encoding: base64\n\n{text}\n"
    )


def sympa(maker):
    """Returns the text part with which the mailing list server Sympa replaces an attachment."""
    return (
        "Content-Type: text/plain; format=flowed\nContent-Disposition: inline\n\nThe coast.mp4 file that was initially attached to "
        f"this message has been stored on the mailing lists server:\nhttps://lists.example.org/sympa/attach/team/{maker.fresh()}/msg.0.bin\n"
    )


def attachment(maker):
    """Returns an attachment. A quarter of the attachments have the same content."""
    length = maker.one_of(10, 3_000, 150_000)
    octets = maker.bytes(length)
    if maker.below(4) == 0:
        octets = web.noise(b"the same attachment", 120_000)
    text = base64.encodebytes(octets).decode()
    return f'Content-Type: application/pdf; name="{maker.fresh()}.pdf"\nContent-Disposition: attachment\nContent-Transfer-Encoding: base64\n\n{text}'


# Links to files in cloud storage, as mail programs and web sites write them.
CLOUDS = [
    '<div class="gmail_chip gmail_drive_chip" style="width:396px"><a href="https://drive.google.com/file/d/{id}/view?usp=drive_web" target="_blank" aria-label="coast.webm"><img src="https://ssl.gstatic.com/icon.png">&nbsp;<span dir="ltr">coast.webm</span></a></div>',
    '<div class="gmail_chip gmail_drive_chip"><a href="https://docs.google.com/document/d/{id}/edit?usp=drive_web"><span dir="ltr">Plan</span></a></div>',
    '<div id="OwaReferenceAttachments" contenteditable="false"><table><tbody><tr><td><div id="OwaReferenceAttachmentDescription">Ann has shared a file. <a href="https://support.example/">Help</a></div></td></tr><tr><td><a href="https://1drv.ms/u/s!{id}"><div id="OwaReferenceAttachmentFileName2"><a href="https://1drv.ms/u/s!{id}">coast.edf</a></div></a></td></tr></tbody></table></div><div id="OwaReferenceAttachmentsEnd"></div>',
    '<blockquote><div id="x_OwaReferenceAttachments"><a href="https://1drv.ms/u/s!{id}">coast.edf</a></div></blockquote>',
    '<div class="x-apple-maildrop" data-url="https://cvws.icloud-content.com/B/{id}/${{f}}?o=Ax" data-filename="coast film.mp4" data-size="0"><a href="https://www.icloud.com/attachment/?u=https%3A%2F%2Fcvws.icloud-content.com%2FB%2F{id}%2F%24%7Bf%7D%3Fo%3DAx%26v%3D1%26e%3D1763787120%26k%3D%24%7Buk%7D%26s%3Dsig&amp;uk=KEY&amp;f=coast%20film.mp4&amp;sz=26">coast film.mp4</a></div>',
    '<ul><li class="cloudAttachmentItem" data-content-location="https://cloud.example.org/s/{id}" data-service-name="Nextcloud"><a href="https://cloud.example.org/s/{id}" class="cloudfile-name">coast.png</a><span>Size: <span class="cloudfile-size">20 bytes</span></span></li></ul>',
    '<a href="https://www.dropbox.com/scl/fi/{id}/coast.png?rlkey=01&amp;dl=0">the coast</a>',
    '<a href="https://app.box.com/s/{id}">coast.png</a>',
    '<a href="https://tenant-my.sharepoint.com/:x:/p/ann/{id}?e=4">sheet.xlsx</a>',
]


def element(maker):
    """Returns a piece of HTML that contains links, or shows or hides pictures and other files."""
    picture, sheet = maker.url("png"), maker.url("css")
    quoted = picture.replace("&", "&amp;")
    return maker.one_of(
        f'<img src="{quoted}">', f"<IMG SRC='{picture}' alt=x>", f"<img src={picture.split('?')[0]}>", f'<img src="{quoted}" width=1 height=1>',
        f'<img src="{quoted}" style="display:none">', f'<img srcset="{picture} 1x, {maker.url("jpg")} 2x" src="{maker.url("gif")}">',
        f'<img src="{data_url(maker, "image/png")}">', f'<img src="data:image/gif;base64,\nR0lGODlhAQABAAAAACw=">', '<img src="cid:none@example.org">',
        f'<table background="{quoted}"><td style="background:url({picture})">', f'<p style="background-image: url(&quot;{quoted}&quot;)">',
        f'<link rel="stylesheet" href="{sheet}">', f'<style>@import "{sheet}"; p {{ background: url({picture}) }}</style>',
        f"<style>@font-face {{ src: url({maker.url('woff2')}) }} @media print {{ a {{ content: url('{picture}') }} }}</style>",
        f'<video src="{maker.url("mp4")}" poster="{quoted}"></video><audio><source src="{maker.url("mp3")}"></audio>',
        f'<!--[if gte vml 1]><v:fill src="{quoted}"/><v:imagedata src="{quoted}"/><![endif]-->', f'<input type=image src="{quoted}">',
        f'<svg><image href="{quoted}"/><image xlink:href="{quoted}"/></svg>', f'<picture><source srcset="{picture}"><img src=a.png></picture>',
        '<a href="next.html">next</a> <a href="/up">up</a> <a href="//other.example.org/x">x</a> <a href="#top">top</a> <a href="mailto:a@example.org">',
        f'<base href="http://base.example.org/d/"><img src="rel/{maker.fresh()}.png">', f'<img src="rel/{maker.fresh()}.gif"><a href="?q=1">q</a>',
        '<img src="//web.example.org/no-scheme.png?is=fit">', f'<object data="{quoted}"><embed src="{maker.url("svg")}"></object>',
        '<img src="http://10.0.0.1/private.png"><img src="ftp://ftp.example.org/a.png"><img src="file:///srv/files/a.txt">',
        f'<noscript><img src="{quoted}"></noscript><template><img src="{quoted}"></template><script>x="<img src=y>"</script>',
        f'<body background="{quoted}" link=red><img lowsrc="{quoted}" src="a b.png">', f'<img src="{quoted}"><img src="{quoted}">',
        f'<style>.a{{background:image-set("{picture}" 1x, url({maker.url("png")}) 2x)}} .b{{background:url({data_url(maker, "image/svg+xml")})}}</style>',
        maker.one_of(*CLOUDS).format(id=f"{maker.fresh()}AbC"), maker.one_of(*CLOUDS).format(id="shared"),
    )


def html(maker):
    """Returns a text/html part with random encoding and charset. Half of the parts have Content-Base or Content-Location."""
    text = "<html><head><title>gr\u00fc\u00df</title></head><body>\n" + "\n".join(
        element(maker) for _ in range(1 + maker.below(9))) + "\n<p>gr\u00fc\u00dfe</p></body></html>\n"
    charset = maker.one_of("utf-8", "utf-8", "iso-8859-1", "windows-1252")
    octets = text.encode(charset)
    encoding = maker.one_of("8bit", "quoted-printable", "base64")
    body = {"8bit": lambda: octets, "quoted-printable": lambda: quopri.encodestring(octets), "base64": lambda: base64.encodebytes(octets)}[encoding]()
    base = maker.one_of("", "", "Content-Base: http://www.example.org/letters/\n", "Content-Location: http://www.example.org/a/b.html\n")
    return f"Content-Type: text/html; charset={charset}\n{base}Content-Transfer-Encoding: {encoding}\n\n".encode() + body


def related(maker):
    """Returns a multipart/related of an HTML part and pictures that it shows by Content-ID and by Content-Location."""
    name = f"{maker.fresh()}@example.org"
    location = maker.one_of("http://www.example.org/a.png", "a.png", "images/a.png")
    body = f'<p><img src="cid:{name}"><img src="{location}"><img src="{maker.url("png")}">' + element(maker)
    picture = base64.encodebytes(web.png(name.encode(), 5, 5)).decode()
    root = f"Content-Type: text/html\nContent-Base: http://www.example.org/\n\n{body}\n"
    inner = f"Content-Type: image/png\nContent-ID: <{name}>\nContent-Transfer-Encoding: base64\n\n{picture}"
    other = f"Content-Type: image/png\nContent-Location: {location}\nContent-Transfer-Encoding: base64\n\n{picture}"
    third = maker.one_of(by_url(maker), f"Content-Type: text/css\nContent-Location: s.css\n\na {{ background: url({location}) }}\n")
    return multipart("related", f"related-{maker.fresh()}", [root, inner, other, third], '; type="text/html"')


def signed(maker):
    """Returns a signed or encrypted part, or a report. By default, embody does not change the content of these parts."""
    inner = maker.one_of(by_url, html, by_data, mozilla)(maker)
    kind = maker.below(4)
    if kind == 0:
        proof = "Content-Type: application/pgp-signature\n\n-----BEGIN PGP SIGNATURE-----\n"
        return multipart("signed", f"signed-{maker.fresh()}", [inner, proof], "; protocol=\"application/pgp-signature\"; micalg=pgp-sha256")
    if kind == 1:
        return multipart("encrypted", f"secret-{maker.fresh()}", ["Content-Type: application/pgp-encrypted\n\nVersion: 1\n", inner])
    if kind == 2:
        status = "Content-Type: message/delivery-status\n\nReporting-MTA: dns; a\n"
        return multipart("report", f"report-{maker.fresh()}", ["\nA report.\n", status, message_part(maker, [inner])], "; report-type=delivery-status")
    return "Content-Type: application/pkcs7-mime; smime-type=signed-data\nContent-Transfer-Encoding: base64\n\nMIIB\n"


def bytes_of(part):
    return part if isinstance(part, bytes) else part.encode("utf-8")


def multipart(kind, boundary, parts, more=""):
    """Returns a multipart with its header. `more` is added to the Content-Type.

    A line ending is added after each part, because the line ending before a boundary line belongs to the boundary.
    """
    head = f'Content-Type: multipart/{kind}; boundary="{boundary}"{more}\n\n'.encode()
    lines = b"".join(b"--" + boundary.encode() + b"\n" + bytes_of(part) + b"\n" for part in parts)
    return head + lines + b"--" + boundary.encode() + b"--\n"


def message_part(maker, parts):
    return b"Content-Type: message/rfc822\n\n" + message(maker, parts)


def message(maker, parts, more=""):
    """Returns a message. One part is the message itself; several parts are put in a multipart. `more` are header fields."""
    subject = maker.one_of("a mail", "gr\u00fc\u00dfe", "Re: [team] a mail")
    subject = subject if subject.isascii() else Header(subject, "utf-8").encode()
    head = (
        f"From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: {subject}\nDate: Tue, 14 May 2024 12:00:{maker.below(60):02} +0200\n"
        f"Message-ID: {maker.message_id}\nMIME-Version: 1.0\n{more}"
    ).encode()
    if len(parts) == 1:
        return head + bytes_of(parts[0])
    return head + multipart(maker.one_of("mixed", "mixed", "mixed", "alternative", "parallel"), f"{MINE}-{maker.fresh()}", parts)


PARTS = [
    by_url, by_url, by_data, by_other_scheme, by_access_type, by_content_id, chain_and_circle, rivals, mozilla, shortcut, sympa,
    attachment, html, html, html, related, signed,
]


def flat(parts):
    """Returns a list of parts. Items of `parts` that are lists of parts are replaced by their items."""
    return [piece for part in parts for piece in (part if isinstance(part, list) else [part])]


def mixed_mail(maker):
    """Returns a message with one to eight random forms. In a quarter of the messages, another message is attached."""
    parts = flat(maker.one_of(*PARTS)(maker) for _ in range(1 + maker.below(8)))
    if maker.below(4) == 0:
        parts.append(message_part(maker, flat([maker.one_of(*PARTS)(maker)])))
    more = maker.one_of("", "", "", "DKIM-Signature: v=1; a=rsa-sha256; bh=x; b=y\n", "Content-Base: http://www.example.org/m/\n", "X-Embody: expanded=1\n")
    return message(maker, parts, more)


# Whole messages

def one_form(maker):
    """Returns a message with one form of PARTS. The number of the mail chooses the form, so every form occurs."""
    return message(maker, flat([PARTS[maker.number % len(PARTS)](maker)]))


def nested(maker, levels=None):
    """Returns a message inside other messages. The innermost message contains a reference or HTML.

    `levels` is the number of outer messages. If it is None, it is random (1 to 31).
    """
    levels = levels or 1 + maker.below(31)
    inner = message(maker, [maker.one_of(by_url, by_data, html)(maker)])
    for _ in range(levels):
        inner = message(maker, [b"Content-Type: message/rfc822\n\n" + inner] + [by_data(maker)] * maker.below(2))
    return inner


def nested_data(maker):
    """Returns a message with a reference to a `data:` URL that contains such a message again, up to seven levels deep."""
    inner = "Subject: the innermost\n\nThe end.\n"
    for _ in range(1 + maker.below(7)):
        url = "data:message/rfc822;base64," + base64.b64encode(inner.encode()).decode()
        inner = "MIME-Version: 1.0\n" + reference(maker, f'access-type=URL;\n URL="{url}"', "Content-Type: message/rfc822\n")
    return message(maker, [inner.split("\n", 1)[1]])


def chained(maker, length=None):
    """Returns a message with a reference to a chain of messages on the scripted server, each of which refers to the next.

    The chain consists of `length` + 1 messages. If `length` is None, it is random (1 to 12).
    """
    length = length or 1 + maker.below(12)
    url = f"http://chain.example.org/_/chain/{length}/n{maker.number}.eml?is=fit"
    return message(maker, ["\nA chain.\n", reference(maker, f'access-type=URL; URL="{url}"', "Content-Type: message/rfc822\n")])


def mailman_place(maker):
    """Returns the directory in which a Mailman archive stores the attachments of this mail. It depends on the Message-ID."""
    hexadecimal = hashlib.sha1(maker.message_id.encode()).hexdigest()
    return f"attachments/20240514/{hexadecimal[:4]}{hexadecimal[-4:]}/"


def mailman(maker):
    """Returns a mail from the archive of a Mailman list, which contains notes in place of attachments.

    The attachments are on the scripted server. `write_attachments` also writes some of them to a directory.
    """
    place, pieces = LIST + mailman_place(maker), []
    german = maker.below(6) == 0
    for at in range(1 + maker.below(3)):
        kind = maker.below(6)
        name = f"attachment-000{at}"
        if kind < 3:
            url = f"{place}{name}.{maker.one_of('png', 'pdf', 'bin')}?is={maker.one_of('fit', 'fit', 'fit', '404', 'page')}"
            if maker.below(4):
                url = url.split("?")[0]
            size = len(web.answer(url).body) + (0 if maker.below(5) else 1)
            if german:
                pieces.append(
                    "Ein Dateianhang mit Bin\u00e4rdaten wurde abgetrennt...\nDateiname   : k\u00fcste.png\nDateityp    : image/png\n"
                    f"Dateigr\u00f6\u00dfe  : {size} bytes\nBeschreibung: nicht verf\u00fcgbar\nURL         : <{url}>\n")
            else:
                line = maker.one_of(f"URL: <{url}>", f"Url : {url}", f"Url : {url} ")
                pieces.append(
                    f"A non-text attachment was scrubbed...\nName: coast {at}.png\nType: {maker.one_of('image/png', 'application/pdf', 'text')}\n"
                    f"Size: {size} bytes\nDesc: not available\n{line}\n")
        elif kind == 3:
            pieces.append(f"An HTML attachment was scrubbed...\nURL: <{place}{name}.html>\n")
        elif kind == 4:
            pieces.append(f"An embedded and charset-unspecified text was scrubbed...\nName: not available\nURL: <{place}{name}.pl>\n")
        else:
            pieces.append(
                "An embedded message was scrubbed...\nFrom: bob at example.org\nSubject: inner, with\n\ta folded subject\n"
                f"Date: Mon, 13 May 2024 08:00:00 +0000\nSize: 147\nURL: <{place}{name}.mht>\n")
    separator = "-------------- n\u00e4chster Teil --------------\n" if german else "-------------- next part --------------\n"
    body = maker.one_of("The files.\n" + separator, "") + separator.join(pieces) + maker.one_of("", separator + "A footer\n")
    if maker.below(6) == 0:
        body = "".join("> " + line + "\n" for line in body.splitlines())
    if maker.below(8) == 0:
        body = f"Message: 1\nDate: Tue, 14 May 2024 12:00:01 +0200\nMessage-ID: <other@example.org>\nSubject: in a digest\n\n{body}"
    head = (
        f"From: ann at example.org (Ann Example)\nDate: Tue, 14 May 2024 12:00:01 +0200\nSubject: [team] a mail\nMessage-ID: {maker.message_id}\n\n"
    )
    return (head + body).encode("latin-1" if german else "utf-8")


def damaged(maker):
    """Returns the beginning of a mail, which ends at a random byte."""
    whole = mixed_mail(maker)
    return whole[: maker.below(len(whole))]


def plain(maker):
    """Returns a message without references. Its text contains only a link."""
    return message(maker, [f"Content-Type: text/plain\n\nNothing to do here. http://web.example.org/{maker.fresh()}\n"])


WHOLE = [mixed_mail, mixed_mail, mixed_mail, mixed_mail, one_form, one_form, nested, nested_data, chained, mailman, mailman, damaged, plain]


def mail(seed, number):
    """Returns the mail with this number. The number determines its form, and seed and number determine its content. One mail
    in five has CRLF line endings.
    """
    maker = Maker(seed, number)
    octets = WHOLE[number % len(WHOLE)](maker)
    return octets.replace(b"\n", b"\r\n") if number % 5 == 3 else octets


def many_references(references, length):
    """Returns a mail with `references` references to `data:` URLs, and to a chain of `length` + 1 messages."""
    maker = Maker("many", 0)
    parts = [reference(maker, f'access-type=URL; URL="data:,{at}"', "Content-Type: text/plain\n") for at in range(references)]
    url = f"http://chain.example.org/_/chain/{length}/many.eml?is=fit"
    parts.append(reference(maker, f'access-type=URL; URL="{url}"', "Content-Type: message/rfc822\n"))
    head = "From: a@example.org\nMessage-ID: <many@example.org>\nMIME-Version: 1.0\n"
    return head.encode() + multipart("mixed", MINE, parts)


def chain_mail(length, attached=0):
    """Returns a mail with a reference to a chain of `length` + 1 messages, and an attachment of about `attached` bytes."""
    maker = Maker("chain", 0)
    url = f"http://chain.example.org/_/chain/{length}/one.eml?is=fit"
    parts = ["\nA chain.\n", reference(maker, f'access-type=URL; URL="{url}"', "Content-Type: message/rfc822\n")]
    return large_mail(maker, parts, attached)


def large_mail(maker, parts, attached):
    """Returns a multipart message of these parts, and of an attachment with about `attached` bytes of base64."""
    if attached:
        text = base64.encodebytes(web.noise(b"attached", attached * 3 // 4))
        parts.append(b"Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n" + text)
    head = "From: a@example.org\nMessage-ID: <large@example.org>\nMIME-Version: 1.0\n"
    return head.encode() + multipart("mixed", MINE, parts)


def failing_rivals(count, attached):
    """Returns a mail with `count` references to sources of the same content. The server answers each with status 404. The
    mail has an attachment of about `attached` bytes.
    """
    maker = Maker("rivals", 0)
    target = 'access-type=URL; URL="http://web.example.org/{}.txt?is=404"'
    phantoms = "Content-Type: text/plain\nContent-ID: <r@example.org>\n"
    sources = [reference(maker, target.format(at), phantoms) for at in range(count)]
    return large_mail(maker, [multipart("alternative", "rivals", sources)], attached)


# Mailboxes

def write_mails(directory, seed, numbers):
    """Writes the mails with these numbers to a new directory, one file for each mail."""
    directory.mkdir(parents=True)
    for number in numbers:
        (directory / f"{number:05}.eml").write_bytes(mail(seed, number))


def mbox(seed, numbers):
    """Returns an mbox in the format mboxrd, with LF line endings."""
    lines = []
    for number in numbers:
        octets = mail(seed, number).replace(b"\r\n", b"\n")
        lines.append(b"From ann@example.org Tue May 14 10:00:01 2024\n")
        for line in octets.split(b"\n"):
            lines.append((b">" if line.lstrip(b">").startswith(b"From ") else b"") + line + b"\n")
        lines.append(b"\n")
    return b"".join(lines)


def write_maildir(directory, seed, numbers):
    """Writes a Maildir. A third of the mails are in `new`, the others in `cur`."""
    for name in ("cur", "new", "tmp"):
        (directory / name).mkdir(parents=True)
    for number in numbers:
        place = directory / ("new" if number % 3 == 0 else "cur")
        (place / f"{1715680800 + number}.M{number}.host{'' if number % 3 == 0 else ':2,S'}").write_bytes(mail(seed, number))


# The property list after the message in an .emlx file of Apple Mail.
PLIST = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0">\n<dict>\n\t<key>date-received</key>\n\t<integer>1715680800</integer>\n'
    "\t<key>flags</key>\n\t<integer>8623689857</integer>\n</dict>\n</plist>\n"
)


def write_apple(directory, seed):
    """Writes a mailbox of Apple Mail: messages without the content of their attachments, and the directory `Attachments`, in
    which some of the files are missing or have another name.
    """
    data = directory / "INBOX.mbox/0A0A/Data"
    (data / "Messages").mkdir(parents=True)
    for number in range(100, 112):
        maker = Maker(f"apple {seed}", number)
        parts = ["Content-Type: text/plain; charset=us-ascii\n\nFiles.\n"]
        for at in range(2, 3 + maker.below(3)):
            octets = maker.bytes(40 + maker.below(900))
            length = len(base64.encodebytes(octets)) + maker.one_of(0, 0, 0, 5)
            name = f"file {at}.pdf"
            parts.append(
                f'Content-Transfer-Encoding: base64\nContent-Disposition: attachment;\n\tfilename="{name}"\nContent-Type: application/pdf;\n'
                f'\tname="{name}"\nX-Apple-Content-Length: {length}\n\n')
            stored = data / "Attachments" / str(number) / str(at)
            state = maker.below(6)
            if state:
                stored.mkdir(parents=True)
                (stored / (name if state > 1 else "Mail Attachment.pdf")).write_bytes(octets)
            if state == 2:
                (stored / "another.pdf").write_bytes(b"another")
        if number % 4 == 1:
            parts.append(by_url(maker))
        octets = message(maker, parts)
        text = f"{len(octets):<10}\n".encode() + octets + PLIST.encode()
        (data / "Messages" / f"{number}{'.partial' if number % 5 else ''}.emlx").write_bytes(text)


def karp_rabin(text):
    """Returns the hash of a Content-ID (Karp-Rabin) that Eudora writes after the name of an embedded picture."""
    total = 0
    for octet in text.encode():
        for bit in range(7, -1, -1):
            total = (2 * total + (octet >> bit & 1)) % 2147483629
    return total + 1


def write_eudora(directory, seed):
    """Writes a mailbox of Eudora for Windows with its directories of attachments and of embedded pictures."""
    for name in ("attach", "Embedded"):
        (directory / name).mkdir(parents=True)
    (directory / "attach/coast.png").write_bytes(web.png(b"coast", 6, 6))
    (directory / "attach/report.doc").write_bytes(web.noise(b"report", 500))
    (directory / "attach/a.txt").write_bytes(b"one\r\ntwo\r\n")
    (directory / "Embedded/inline.png").write_bytes(web.png(b"inline", 6, 6))
    name = "part1.01020304@example.org"
    bodies = [
        'multipart/mixed; boundary="gone"\n\n<x-flowed>\nSee the files.\n</x-flowed>\n\nAttachment Converted: "C:\\Eudora\\attach\\coast.png"\n',
        f'multipart/related; boundary="gone"\n\n<x-html>\n<p>Hi <img src="cid:{name}"><img src="http://web.example.org/e.png?is=fit"></p>\n</x-html>\n\n\n'
        f"Embedded Content: inline.png: 00000001,{karp_rabin(name):08x},00000000,00000000\n",
        "text/plain\n\nold\nAttachment Converted: C:\\EUDORA\\ATTACH\\REPORT.DOC\nAttachment Converted: C:\\EUDORA\\ATTACH\\NONE.DOC\n",
        'text/plain\n\n>Attachment Converted: "C:\\Eudora\\attach\\coast.png"\n#Attachment Converted: "C:\\secret.txt"\n',
        'multipart/mixed; boundary="gone"\n\nAgain.\n\nAttachment Converted: "C:\\Eudora\\attach\\coast.png"\n\nAttachment Converted: "C:\\Eudora\\attach\\a.txt"\n',
    ]
    lines = []
    for at, body in enumerate(bodies):
        head = f"From ???@??? Tue May 14 12:00:{at:02} 2024\nFrom: ann@example.org\nSubject: eudora {at} {seed}\nMessage-ID: <e{at}@example.org>\nMIME-Version: 1.0\n"
        lines.append(head + "Content-Type: " + body)
    (directory / "In.mbx").write_bytes("".join(lines).replace("\n", "\r\n").encode())


def escaped_page(text):
    """Returns the HTML document that Mailman stores for an HTML part: the escaped source of the part."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    lines = [line.replace(" ", "&nbsp;").replace("\t", "&nbsp" * 8) for line in text.split("\n")]
    return "<tt>\n" + "<br>\n".join(lines) + "\n</tt>\n"


def write_attachments(directory, seed, numbers):
    """Writes a directory for --attachments: the attachments that Mailman removed from half of the mails of the form
    `mailman`, and a picture that Thunderbird detached.
    """
    (directory / "Mail").mkdir(parents=True)
    (directory / "Mail/coast.png").write_bytes(web.png(b"coast", 6, 6))
    for number in numbers:
        if WHOLE[number % len(WHOLE)] is not mailman or number % 2:
            continue
        place = directory / mailman_place(Maker(seed, number))
        place.mkdir(parents=True, exist_ok=True)
        for at in range(3):
            for ending in ("png", "pdf", "bin"):
                url = f"{LIST}{mailman_place(Maker(seed, number))}attachment-000{at}.{ending}"
                (place / f"attachment-000{at}.{ending}").write_bytes(web.answer(url).body)
            (place / f"attachment-000{at}.html").write_text(escaped_page('<p class="a">1 &amp; 2</p>\n\tx'))
            (place / f"attachment-000{at}.pl").write_bytes(b"x <- 1\n")
            (place / f"attachment-000{at}.mht").write_bytes(b"From nobody Tue May 14 09:00:00 2024\nFrom: bob@example.org\n\n1 &lt; 2\n")
