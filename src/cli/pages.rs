//! Text of `--help-all` and of the manual pages, except the options. A line without indentation that ends with a colon
//! starts a section. A line with an indentation of two blanks is a term; the lines after it with six blanks explain it.
//! The first section contains the examples, which `--help` also prints.
//!
//! Each page is a single string and not a table of entries: each entry of a table would be a pointer, which the loader
//! would have to relocate at each start of the filter.

/// Paragraphs that several pages share, each preceded by its name. A page includes a paragraph by its name in braces.
const SHARED: &str = "\
values:
{size}
  DUR
      20s, 500ms, 1m30s
  PAT of a host
      www.example.org, or *.example.org for all hosts below it (.example.org
      is the same). A denied IP address is also denied under its host names
  FROM=TO of --map
      Beginnings of URLs. TO ends after its host (https://new.example/), or
      where FROM ends (http:=https:)
  An option that is given twice
      The last value is used; lists (SCHEME, PAT, CIDR, DIR, FROM=TO and
      the N of --allow-port) are joined

size:
Values:
  SIZE
      25M, 1.5M, 512k, 1e6, 1000: bytes; k, M, G and T are powers of two (1M is
      1,048,576), and so are KiB and MiB; kB and MB are powers of ten

done:
  0
      Everything was done

served:
  0
      Stopped by a signal

source:
  1
      A source could not be read, is damaged or is not a mailbox; the result
      could not be written; or no server responded in the whole run

store:
  1
      With --output or --in-place: a file could not be read or written, the
      store failed, or no server responded

usage:
  2
      The command line is wrong

usage-file:
  2
      With a FILE, --output or --in-place: the command line is wrong

message:
  75
      For one message: no complete message was written to stdout. Without a
      FILE, this includes wrong options

signal:
  128 and the signal's number
      Stopped by a signal

signal-file:
  128 and the signal's number
      With --output or --in-place: stopped by a signal

pipe:
  141
      The reader of stdout closed the pipe, as head does; no error is printed

lock:
  SOURCE.lock
      The lock file of an mbox, while it is replaced

report:
  FILE of --report
      JSON lines are appended, each in one write

cache:
  DIR of --cache
      Responses of servers, and which servers did not respond. docs/cache.md
      explains what is kept, for how long, and who may read it

config:
  FILE of --config
      Options in TOML, under their long names without the leading hyphens";

/// Returns a page with its shared paragraphs inserted.
pub(super) fn whole(page: &str) -> String {
    let paragraphs = SHARED.split("\n\n").filter_map(|it| it.split_once(":\n"));
    paragraphs.fold(page.to_owned(), |page, (name, text)| {
        page.replace(&format!("{{{name}}}"), text)
    })
}

pub(super) const EMBODY: &str = "\
Examples:
  embody inspect --html report.html takeout.zip
      Describes a mailbox, names missing content, and recommends commands
  embody recover takeout.zip --output whole.mbox
      Puts missing attachments back into the mail
  embody embed whole.mbox --output kept.mbox
      Puts the pictures from the web into the mail
  embody filter --config /etc/embody.toml < in.eml > out.eml
      One message, as a mail system passes it

Exit status:
{done}
  1
      A file could not be read or written
{usage}
  75
      The command was a filter, and no complete message was written to stdout.
      This includes wrong options of filter, of commands without a FILE for one
      message on stdin, and an unknown command with a name like that of a filter

Files:
  embody.toml
      Options in TOML; only read if --config names it

See also:
  procmail(1), maildrop(1), mbox(5), maildir(5)
  RFC 2017, RFC 2046 section 5.2.3, RFC 2397, RFC 2557
";

pub(super) const FILTER: &str = "\
Examples:
  embody filter --fetch https < in.eml > out.eml
      Content from https servers is put in
  embody filter --fetch https --allow-host .example.org < in.eml > out.eml
      The same, but only from hosts below example.org
  embody filter --config /etc/embody.toml
      The command that a mail system would run

{values}

Exit status:
  0
      A complete message was written to stdout
  75
      In all other cases: nothing was written to stdout, and the mail system
      should try again later. This includes wrong options and signals; and,
      with --on-failure defer, temporary failures: time-outs, refused
      connections, status 408, 429 and 5xx

Files:
{config}
  FILE of --report
      JSON lines are appended, each in one write, so that several runs may use
      the same file. docs/reasons.md explains fields and reasons
{cache}

See also:
  embody(1), embody-convert(1), embody-inspect(1), procmail(1), maildrop(1)
";

pub(super) const CONVERT: &str = "\
Examples:
  embody convert --in-place --backup .old ~/Mail/archive.mbox
      Replaces the mailbox, and keeps the old one as archive.mbox.old
  embody convert --fetch https --dry-run --probe --in-place ~/Mail
      Asks each server whether it has the content (HEAD, then GET; ftp and
      file are read); nothing is written
  embody convert ~/Maildir --output ~/Maildir.new
      Writes a new Maildir and leaves the old one unchanged
  embody convert 2024-January.txt.gz --output 2024-January.mbox.zst
      Reads gzip, zstd, bzip2 and xz, and writes them if the name of the output
      ends like that. With --in-place a compressed file stays compressed
  embody convert takeout-001.tgz --output mail.mbox
      Joins the mboxes of a zip or tar archive, without unpacking it
  embody convert --range 8388608-16777216 archive.mbox --output part-2
      Messages that begin in these bytes; embody split prints such ranges

{values}

Exit status:
{done}
{source}
{usage}
{signal}

Files:
{lock}
{config}
{report}
{cache}

See also:
  embody(1), embody-filter(1), embody-inspect(1), mbox(5), maildir(5)
";

pub(super) const EMBED: &str = "\
Examples:
  embody embed ~/Mail/archive.mbox --output kept.mbox
      The same as convert with --embed data,remote --fetch http,https
  embody embed --dry-run ~/Maildir --in-place
      Counts the pictures and their servers, without network requests
  embody embed --in-place --backup .old --trackers blank ~/Mail/archive.mbox
      Replaces the mailbox; tracking pictures become blank, without network
      requests
  embody embed < in.eml > out.eml
      One message from stdin to stdout, as embody filter does

{values}

Exit status:
{done}
{source}
{usage}
{message}
{signal}

Files:
{lock}
{config}

See also:
  embody(1), embody-convert(1), embody-filter(1), embody-inspect(1)
";

pub(super) const RECOVER: &str = "\
Examples:
  embody recover ~/Mail/archive.mbox --output whole.mbox
      The same as convert with --fetch http,https and --follow for all kinds of
      references that replace an attachment
  embody recover --attachments ~/list/attachments 2024-May.txt --output may.mbox
      Looks in the list's directory first, and then on its server
  embody recover --offline ~/Library/Mail/V10 --output mail
      Uses only the files that Apple Mail keeps next to its mailboxes
  embody recover --dry-run ~/Maildir --in-place
      Counts the missing attachments and their servers; retrieves nothing
  embody recover < in.eml > out.eml
      One message from stdin to stdout, as embody filter does

{values}

Exit status:
  0
      Everything was done. Attachments that are gone are counted in the summary
  1
      A source could not be read, is damaged or is not a mailbox; the result
      could not be written; no server responded in the whole run; or
      --attachments DIR has no file that is missing
{usage}
{message}
{signal}

Files:
{lock}
{config}

See also:
  embody(1), embody-convert(1), embody-embed(1), embody-inspect(1)
";

pub(super) const SPLIT: &str = "\
Examples:
  embody split --size 128M ~/Mail > ranges.jsonl
      Each line has one range for convert --range
  embody split --count archive.mbox
      Counts the messages of each range, too

{size}

Lines:
  path, from, to
      The file and its bytes; the range has the messages that begin there
  messages
      Number of these messages, with --count
  message_id
      Message-ID of the first message
  length, mtime
      Length and modification time of the file, for convert --expect
  kind
      mbox or message
  quoting
      How the mbox quotes From lines: mboxo, mboxrd or mboxcl2
  whole
      Why the file has only one range: it is a single message, compressed, an
      archive, an MMDF mailbox, or an mbox in which each message has a
      correct Content-Length

Maildirs and MH folders have no ranges. They, and files without mail, are
named on stderr.

Exit status:
  0
      All sources were split
  1
      A source could not be read, or is not a mailbox
  2
      The command line is wrong, or a source cannot be split
{pipe}

Files:
  SOURCE
      Only read, never written

See also:
  embody(1), embody-convert(1), mbox(5), parallel(1)
";

pub(super) const DETACH: &str = "\
Examples:
  embody detach --store /srv/store < in.eml > out.eml
      One message; attachments of at least 100k are moved into the store
  embody detach --store /srv/store --base-url https://files.example.org/ --in-place ~/Maildir
      Replaces the messages of a Maildir; the URLs of the attachments are those
      of a web server that serves the store
  embody detach --store /srv/store --dry-run ~/Mail/archive.mbox
      Counts the attachments that would be moved, and their size

{size}
  PAT of a media type
      application/pdf, or video/* for all of them
  FORM
      external-body is message/external-body with a URL (RFC 2017); thunderbird
      is the form that Thunderbird writes and shows as a link

Exit status:
{done}
{store}
{usage-file}
{message}, and with --on-failure defer temporary failures of the store
{signal-file}

Files:
  DIR/ab/cd/SHA256
      An attachment in the store, named by the SHA-256 of its bytes
{config}
{report}

See also:
  embody(1), embody-restore(1), mbox(5), maildir(5), RFC 2017
";

pub(super) const RESTORE: &str = "\
Examples:
  embody restore --store /srv/store < in.eml > out.eml
      Restores one message as it was before detach
  embody restore --store /srv/store --in-place ~/Maildir
      Replaces the messages of a Maildir
  embody restore --fetch https --allow-host files.example.org < in.eml
      Retrieves the attachments from a web server
  embody restore --store /srv/store --dry-run ~/Mail/archive.mbox
      Reads all attachments and verifies their hashes; writes nothing

{size}
  DUR
      20s, 500ms, 1m30s
  FROM=TO of --map
      Beginnings of URLs: for a store that has moved to another server

Exit status:
  0
      Everything was done. If an attachment is missing, its reference is kept,
      and the summary counts it
{store}
{usage-file}
{message}, and with --on-failure defer temporary failures of a store or server
{signal-file}

Files:
{config}
{report}

See also:
  embody(1), embody-detach(1), mbox(5), maildir(5), RFC 2017
";

pub(super) const INSPECT: &str = "\
Examples:
  embody inspect --html report.html takeout.zip
      Describes mail in numbers, tables and plots, with commands to run next
  embody inspect --probe ~/Mail/archive.mbox
      Asks each server whether it still has the pictures and attachments
  embody inspect --fetch https message.eml
      Shows the parts of a message, and what embody filter would do with it
  embody inspect --fetch https --probe --json ~/Mail/archive.mbox
      Prints one JSON object per reference, with the answer of its server
  embody inspect --duplicates takeout.zip ~/Mail old.mbox
      How many mails are in several of these mailboxes, and what embody merge
      would save

The survey of mailboxes:
  The survey counts dates, attachments by size and type, duplicates, the
  bytes that detach would save, pictures by host, trackers, data: URLs, links
  and references. With --probe it also counts the servers that respond. It is
  printed as text; --json prints it as the last line, and --html writes a page.
  docs/survey.md explains each field.

{values}

Exit status:
  0
      Everything was read
  1
      A source could not be read, or with --probe no server responded
{usage}
{pipe}

Files:
{config}

See also:
  embody(1), embody-filter(1), embody-convert(1)
";

pub(super) const COMPARE: &str = "\
Examples:
  embody compare archive.mbox kept.mbox
      After embody embed archive.mbox --output kept.mbox: every message of
      archive.mbox is in kept.mbox, identical or with its pictures embedded
  embody compare ~/Maildir /backup/Maildir
      Before you delete the first mailbox
  embody compare takeout.zip imaps://user@mail.example.org/
      Whether a server has all the mail of an archive

How messages are compared:
  Each message of OLD is one of these: identical to a message of NEW; changed
  by embody (pictures embedded, attachments detached with their digest or
  restored, links made absolute, references filled in); altered in another
  way; or missing. Line endings, quoting of From lines, flags, fields that
  mailboxes write, the order of messages and their folders do not count.

  Flags (read, replied, forwarded, flagged, draft, deleted) that a message of
  OLD has and that of NEW lacks are named, if both mailboxes can have flags.

{size}

Exit status:
  0
      All messages of OLD are in NEW, identical or changed by embody
  1
      A message is missing, altered or lost flags; or some mail could not be
      read
{usage}

Files:
  TMPDIR
      Directory for temporary files: descriptions of messages that are not
      identical, and copies of mail from servers

See also:
  embody-convert(1), embody-embed(1), embody-detach(1)
";

pub(super) const MERGE: &str = "\
Examples:
  embody merge takeout.zip ~/.thunderbird/p/Mail backup.mbox --output all.mbox
      One mailbox with each mail once, ordered by date
  embody merge list-scrubbed.mbox own-copy.mbox --output list.mbox
      Mails whose attachments the list removed are replaced by whole copies
  embody merge ~/Maildir /backup/Maildir --output ~/Merged
      Two Maildirs with the same folders. Each mail is in every folder in which
      one of them has it
  embody merge --dry-run old/*.mbox --output all.mbox
      Counts the mails that are in several of the mailboxes

Which mails are the same:
  Mails with one Message-ID are copies of one mail if the fields of the author
  and all parts are the same. Fields of servers, lists and mailboxes, tags of
  lists in the subject, footers of lists, line endings and encodings do not
  count. A part can be missing if a note says what it was: embody detach,
  Mailman, Thunderbird, mutt and Apple Mail leave such notes. The end of a
  copy can be missing if the copy shows this. All other mails with one Message-ID
  are kept: anyone can write a mail with the Message-ID of another one.

  The copy that has all parts is kept, then the one with a complete structure,
  then the one without the footer of a list, then the one from the first
  SOURCE.
  Its header and body are not mixed with those of other copies. Flags,
  keywords and labels of all copies are united. A mail is marked as deleted
  only if all copies are.

{size}

Exit status:
  0
      The result is complete
  1
      Some mail could not be read, or the result could not be written
{usage}

Files:
  .embody-*
      Temporary files in the directory of DEST. They need as much room as the
      different mails of all sources
  .embody-merge-*
      The mail that a stopped run has read, in the directory of DEST. The same
      command continues with it. It is removed when the result is complete

See also:
  embody-compare(1), embody-convert(1), embody-recover(1)
";

#[cfg(all(unix, feature = "milter"))]
pub(super) const MILTER: &str = "\
Examples:
  embody milter --listen unix:/run/embody/milter.sock --fetch https
      Puts content from https servers into the mail that Postfix or Sendmail
      sends to this socket
  embody milter --listen inet:8891 --config /etc/embody.toml --max-message 9M
      The same, on a port of 127.0.0.1

{values}
  ADDRESS
      unix:/path, inet:host:port, or inet:port for 127.0.0.1. Every program that
      can connect can have its mail changed

Signals:
  HUP
      Reads the options and the configuration file again, and opens the report
      again; sockets and connections stay open
  TERM, INT
      Completes the messages that are under way, and ends with status 0

Exit status:
{served}
  1
      The sockets could not be opened
{usage}

Files:
{config}
  FILE of --report
      JSON lines are appended, each in one write. source is the queue id

See also:
  embody(1), embody-filter(1), postconf(5), systemd.socket(5)
";

#[cfg(all(unix, feature = "serve"))]
pub(super) const SERVE: &str = "\
Examples:
  embody serve --store /srv/store
      Accepts requests of programs on this machine, at http://127.0.0.1:9997
  embody serve --listen unix:/run/embody.sock --fetch https
      The same on a socket, and content from https servers may be put in
  curl --data-binary @in.eml http://127.0.0.1:9997/v1/detach > out.eml
      A request of another program

{values}
  ADDRESS
      host:port, or unix:/path. With the port 0, the system chooses a port

Requests:
  POST /v1/filter, /v1/embed, /v1/recover, /v1/detach, /v1/restore
      A message; the response is the message, changed or not
  POST /v1/inspect
      A message; the response is what inspect --json prints
  POST /v1/messages
      A mailbox; the response is a tar archive of its messages
  GET /v1/objects/SHA256
      A detached attachment
  GET /healthz, /metrics, /v1/openapi.json
      The state, metrics for Prometheus, and the contract of the service

Signals:
  TERM, INT
      Completes the requests that are under way, and ends with status 0

Exit status:
{served}
  1
      The address could not be opened
{usage}

Files:
{config}
{report}

See also:
  embody(1), embody-detach(1), embody-milter(1)
";

pub(super) const STORE: &str = "\
Examples:
  embody store check /var/store ~/Maildir ~/Mail
      Verifies all objects, and that the object of each reference exists
  embody store check /var/store
      Verifies all objects
  embody store gc /var/store ~/Maildir ~/Mail
      Lists unreferenced objects with their sizes
  embody store gc --delete /var/store ~/Maildir ~/Mail
      Removes unreferenced objects that are older than a day

Exit status:
  0
      check: all objects are intact; gc: all mailboxes were read
  1
      An object is damaged or missing, a mailbox could not be read completely,
      or a mailbox that uses the store was not named. gc then removes nothing
{usage}
{signal}
{pipe}

Files:
  DIR/ab/cd/SHA256
      An object, named by the SHA-256 of its bytes
  DIR/.lock
      A shared lock for programs that add objects, and an exclusive one for gc
  DIR/.users
      The mailboxes that use the store; gc removes nothing until it has read all
  DIR/.tmp
      Files that are being written

See also:
  embody(1), embody-inspect(1), RFC 2017
";

pub(super) const SCHEMES: &str = "\
Examples:
  embody schemes > schemes.md
      Writes the tables, in Markdown

Exit status:
  0
      The tables were written to stdout
  1
      The tables could not be written
{pipe}

Files:
  No files are read or written

See also:
  embody(1), embody-filter(1), RFC 2718
";

pub(super) const MAN: &str = "\
Examples:
  embody man /usr/local/share/man/man1
      Writes all pages to a directory in which man(1) finds them
  embody man | man -l -
      Shows the page embody(1) without installing it

Exit status:
  0
      The pages were written
  1
      The pages could not be written
{pipe}

Files:
  DIR/embody.1, DIR/embody-filter.1, and one for each other command
      The pages; DIR is created if it does not exist

See also:
  embody(1), man(1)
";

pub(super) const COMPLETIONS: &str = "\
Examples:
  embody completions bash > ~/.local/share/bash-completion/completions/embody
      Installs the completions for bash
  embody completions zsh > ~/.zfunc/_embody
      Installs them for zsh, if fpath contains ~/.zfunc

Exit status:
  0
      The script was written to stdout
  1
      The script could not be written
{pipe}

Files:
  No files are read or written

See also:
  embody(1), bash(1), zsh(1), fish(1)
";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::super::args::Cli;
    use super::*;

    #[test]
    fn paragraphs_that_pages_share_are_in_pages_and_each_name_has_a_paragraph() {
        let names = SHARED
            .split("\n\n")
            .map(|it| it.split_once(":\n").unwrap().0);
        let source = include_str!("pages.rs");
        for name in names {
            let uses = source.matches(&format!("{{{name}}}")).count();
            assert!(uses > 1, "{name}: {uses}");
        }
        let mut pages = 0;
        for command in Cli::command().get_subcommands() {
            let Some(page) = command.get_after_long_help() else {
                continue;
            };
            let page = page.to_string();
            pages += 1;
            assert!(!page.contains('{'), "{page}");
            assert!(page.contains("\nExit status:\n  0\n"), "{page}");
        }
        assert!(pages > 10, "{pages}");
    }
}
