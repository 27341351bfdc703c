"""Generates mails with attachments, and the same mails after Mailman 2.1 has replaced their attachments with notes, as its
module Mailman/Handlers/Scrubber.py does.

scrub.py make DIR COUNT     generates COUNT mails, and writes three mboxes to DIR: original.mbox contains the original mails,
                            delivered.mbox the mails as the list sends them, and monthly.mbox the mails as its archive
                            (Pipermail) stores them
scrub.py compare OLD NEW    compares the contents of all parts in two mboxes, and prints the number of mails, the number of
                            parts, and the number of mails that differ
"""

import base64
import email
import email.utils
import hashlib
import mailbox
import os
import random
import sys

# File name extensions with which Mailman stores attachments.
EXTENSIONS = {
    "application/pdf": ".pdf",
    "image/png": ".png",
}


def multipart(kind, boundary, parts):
    inside = "".join(f"--{boundary}\n{part}\n" for part in parts)
    return f'Content-Type: multipart/{kind}; boundary="{boundary}"\n\n{inside}--{boundary}--\n'


def original(number, chance):
    """Returns the bytes of one mail. `number` determines its structure, and the generator `chance` its random content."""
    octets = chance.randbytes(chance.randrange(10, 3000))
    in_base64 = base64.encodebytes(octets).decode()
    header = (
        f"From: Ann B <ann@example.org>\nTo: dev@lists.example.org\nSubject: mail {number}\n"
        f"Date: Mon, 6 May 2024 {number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d} +0200\n"
        f"Message-ID: <{number}.{chance.randrange(10**9)}@example.org>\nMIME-Version: 1.0\n"
    )
    text = f"Content-Type: text/plain; charset=utf-8\n\nhello {number} \u00e9\n"
    pdf = (
        f'Content-Type: application/pdf; name="a {number}.pdf"\n'
        f'Content-Disposition: attachment;\n filename="a {number}.pdf"\n'
        f"Content-Description: file {number}\nContent-Transfer-Encoding: base64\n\n{in_base64}"
    )
    html = (
        "Content-Type: text/html; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\n"
        f'<p>hello {number} =E9 <img src=3D"cid:p{number}"></p>\n'
    )
    picture = (
        f"Content-Type: image/png\nContent-ID: <p{number}>\n"
        f'Content-Disposition: inline; filename="p{number}.png"\n'
        f"Content-Transfer-Encoding: base64\n\n{in_base64}"
    )
    patch = (
        f'Content-Type: text/plain\nContent-Disposition: attachment; filename="p{number}.txt"\n\n'
        f"a patch\n+line {number}\n"
    )
    inner = (
        f"Content-Type: message/rfc822\n\nFrom: Bob <bob@example.org>\nSubject: inner {number}\n"
        f"Date: Sun, 5 May 2024 09:00:00 +0000\nMessage-ID: <in{number}@example.org>\nMIME-Version: 1.0\n"
        + multipart("mixed", f"I{number}", [text, pdf])
    )
    related = multipart("related", f"R{number}", [html, picture])
    kinds = [
        multipart("mixed", f"B{number}", [text, pdf]),
        multipart("alternative", f"B{number}", [text, html]),
        multipart("mixed", f"B{number}", [multipart("alternative", f"A{number}", [text, related]), pdf]),
        multipart("mixed", f"B{number}", [text, patch]),
        multipart("mixed", f"B{number}", [text, inner]),
        html,
        f"Content-Type: text/plain\nContent-Disposition: inline\n\nall {number}\nof it\n",
        multipart("mixed", f"B{number}", [text, pdf, picture, text]),
    ]
    return (header + kinds[number % len(kinds)]).encode()


class Scrubber:
    """One mail after Mailman has replaced its attachments. `pieces` contains its texts and notes."""

    def __init__(self, octets):
        self.mail = email.message_from_bytes(octets)
        self.pieces = []
        self.names = 0
        self.walk(self.mail)

    def url(self, extension):
        """Returns the line of a note with the address of the next stored attachment."""
        name = f"attachment-{self.names:04d}" if self.names else "attachment"
        self.names += 1
        digits = hashlib.sha1(self.mail["Message-ID"].encode()).hexdigest()
        folder = f"20240506/{digits[:4]}{digits[-4:]}"
        return f"URL: <http://lists.example.org/pipermail/dev/attachments/{folder}/{name}{extension}>\n"

    def walk(self, part):
        """Appends the text of a part, or the note that replaces the part, to `pieces`."""
        kind = part.get_content_type()
        if kind == "message/rfc822":
            inner = part.get_payload(0)
            fields = "".join(f"{name}: {inner[name]}\n" for name in ("From", "Subject", "Date"))
            size = len(inner.as_bytes()) + len("From nobody Mon May  6 10:00:00 2024\n")
            self.pieces.append(f"An embedded message was scrubbed...\n{fields}Size: {size}\n{self.url('.eml')}")
        elif part.is_multipart():
            for inner in part.get_payload():
                self.walk(inner)
        elif kind == "text/html":
            self.pieces.append(f"An HTML attachment was scrubbed...\n{self.url('.html')}")
        elif kind == "text/plain" and part["Content-Disposition"] is None:
            charset = part.get_content_charset() or "ascii"
            self.pieces.append(part.get_payload(decode=True).decode(charset))
        elif kind == "text/plain":
            name = part.get_filename() or "not available"
            self.pieces.append(
                f"An embedded and charset-unspecified text was scrubbed...\nName: {name}\n{self.url('.txt')}"
            )
        else:
            octets = part.get_payload(decode=True)
            description = part["Content-Description"] or "not available"
            self.pieces.append(
                f"A non-text attachment was scrubbed...\nName: {part.get_filename()}\nType: {kind}\n"
                f"Size: {len(octets)} bytes\nDesc: {description}\n{self.url(EXTENSIONS[kind])}"
            )

    def text(self):
        return "-------------- next part --------------\n".join(self.pieces)

    def monthly(self):
        """Returns the mail as the monthly text of the archive contains it."""
        name, address = email.utils.parseaddr(self.mail["From"])
        fields = "".join(f"{it}: {self.mail[it]}\n" for it in ("Date", "Subject", "Message-ID"))
        return f"From: {address.replace('@', ' at ')} ({name})\n{fields}\n{self.text()}".encode()

    def delivered(self):
        """Returns the mail as the mailing list sends it to its members."""
        removed = ("content-type", "content-transfer-encoding", "content-disposition", "mime-version")
        kept = "".join(f"{name}: {value}\n" for name, value in self.mail.items() if name.lower() not in removed)
        of_list = "Precedence: list\nList-Id: <dev.lists.example.org>\nErrors-To: dev-bounces@lists.example.org\n"
        of_text = 'MIME-Version: 1.0\nContent-Type: text/plain; charset="utf-8"\nContent-Transfer-Encoding: 8bit\n'
        return f"{kept}{of_list}{of_text}\n{self.text()}".encode()


def write(mails, path):
    """Writes an mbox."""
    with open(path, "wb") as mbox:
        for mail in mails:
            mbox.write(b"From ann@example.org Mon May  6 10:00:00 2024\n" + mail)
            mbox.write(b"\n" if mail.endswith(b"\n") else b"\n\n")


def contents(mail):
    """Returns a list of the contents of all parts, with the fields that `recover` must restore. In texts, the kind of line
    ending and empty lines at the end are ignored.
    """
    found = []

    def walk(part):
        if part.get_content_type() == "message/rfc822":
            found.append(("message/rfc822", part.get_payload(0).as_bytes()))
        elif part.is_multipart():
            for inner in part.get_payload():
                walk(inner)
        else:
            octets = part.get_payload(decode=True)
            if part.get_content_maintype() == "text":
                octets = octets.replace(b"\r\n", b"\n").rstrip(b"\n")
            found.append(
                (
                    part.get_content_type(),
                    part.get_filename(),
                    part["Content-ID"],
                    part["Content-Description"],
                    part.get_content_charset(),
                    octets,
                )
            )

    walk(mail)
    return found


def compare(old, new):
    known = {mail["Message-ID"]: contents(mail) for mail in mailbox.mbox(new)}
    mails = [(mail["Message-ID"], contents(mail)) for mail in mailbox.mbox(old)]
    different = [name for name, parts in mails if known.get(name) != parts]
    parts = sum(len(parts) for _, parts in mails)
    print(f"{len(mails)} mails, {parts} parts, {len(different)} different")
    for name in different[:5]:
        print(dict(mails)[name], "\n", known.get(name), "\n")


def make(folder, count):
    chance = random.Random(1)
    originals = [original(number, chance) for number in range(count)]
    scrubbed = [Scrubber(mail) for mail in originals]
    write(originals, os.path.join(folder, "original.mbox"))
    write([mail.delivered() for mail in scrubbed], os.path.join(folder, "delivered.mbox"))
    write([mail.monthly() for mail in scrubbed], os.path.join(folder, "monthly.mbox"))


if sys.argv[1] == "make":
    make(sys.argv[2], int(sys.argv[3]))
else:
    compare(sys.argv[2], sys.argv[3])
