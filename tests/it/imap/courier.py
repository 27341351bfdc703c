"""Replaces Courier's program imaplogin: checks the password of the user `me`, and then executes imapd, which serves a
Maildir.

courier.py IMAPD MAILDIR PORT

The test cannot use imaplogin, because imaplogin needs an authentication daemon whose paths are compiled in.
"""
import os
import re
import signal
import socket
import sys

imapd, maildir, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
capability = (
    "IMAP4rev1 UIDPLUS CHILDREN NAMESPACE THREAD=ORDEREDSUBJECT THREAD=REFERENCES SORT QUOTA IDLE ACL ACL2=UNION"
)
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
server = socket.create_server(("127.0.0.1", port), backlog=64)


def line(connection):
    """Reads one line, and returns it without its line ending. Ends the process if the client has closed the connection."""
    got = b""
    while not got.endswith(b"\n"):
        # Reads single bytes, because imapd must receive all bytes after the login.
        octet = connection.recv(1)
        if not octet:
            sys.exit()
        got += octet
    return got.decode("latin-1").strip()


def serve(connection):
    """Answers commands until the user has logged in, and then replaces this process with imapd."""
    say = lambda text: connection.sendall(text.encode() + b"\r\n")
    say(f"* OK [CAPABILITY {capability}] Courier-IMAP ready.")
    while True:
        tag, _, command = line(connection).partition(" ")
        verb = command.upper()
        if verb == "CAPABILITY":
            say(f"* CAPABILITY {capability}")
            say(f"{tag} OK CAPABILITY completed")
        elif re.fullmatch(r'LOGIN "?me"? "?secret"?', command, re.I):
            break
        elif verb == "LOGOUT":
            say("* BYE")
            say(f"{tag} OK LOGOUT completed")
            sys.exit()
        else:
            say(f"{tag} NO Login failed.")
    os.dup2(connection.fileno(), 0)
    os.dup2(connection.fileno(), 1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    environment = dict(
        os.environ,
        AUTHENTICATED="me",
        AUTHADDR="me",
        AUTHENTICATED_UID=str(os.geteuid()),
        IMAPLOGINTAG=tag,
        IMAP_CAPABILITY=capability,
        IMAP_KEYWORDS="1",
        IMAP_ACL="1",
        IMAP_CHECK_ALL_FOLDERS="0",
        IMAP_USELOCKS="1",
        IMAP_ENHANCEDIDLE="0",
        IMAP_EMPTYTRASH="",
        IMAP_MOVE_EXPUNGE_TO_TRASH="0",
        PROTOCOL="IMAP",
        TCPREMOTEIP="127.0.0.1",
        TCPREMOTEPORT="1",
        HOME=os.path.dirname(maildir),
        MAILDIR=os.path.basename(maildir),
    )
    os.chdir(os.path.dirname(maildir))
    os.execve(imapd, [imapd, os.path.basename(maildir)], environment)


while True:
    connection, _ = server.accept()
    if os.fork() == 0:
        server.close()
        if os.geteuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        serve(connection)
    connection.close()
