"""The option sets of the referee.

Each set is a list of `Step`s, which run one after the other in the same directory. A step with `each` runs once for every
mail in a directory of mails, and is skipped for other sources. The arguments can contain these variables:

    @in     the source
    @copy   a new copy of the source, which the step may change
    @run    the absolute path of the directory in which the steps run
    @web    options that send all requests for http and https URLs to the scripted server
    @port   the port of the scripted server
"""

import collections

Step = collections.namedtuple("Step", "arguments each")
# Option sets in which mails exceed a limit on growth. The requests of these sets are not compared, because requests that
# are sent in parallel when a mail reaches the limit may be sent or not.
GROWTH = {"small-growth", "small-message"}
# The value of @web.
WEB = "--fetch http --proxy http://127.0.0.1:@port --map https:=http: --timeout 3s"
PICTURES = "--embed data,remote"
ALL = "--embed data,remote --embed-kinds image,font,media,style"
FILES = "--fetch http,file --file-root @run/srv --map file:///srv/files/=file://@run/srv/ --attachments @run/files --map ftp:=http:"


def step(text, each=False):
    """Returns the step for a command line, which may contain @web."""
    return Step(text.replace("@web", WEB).split(), each)


def convert(options, name="out"):
    """Returns a step that converts the source into `name`, with its report in `rows-NAME.json`."""
    return step(f"convert {options} @in --output {name} --report rows-{name}.json --verbose --progress never")


def each(options, command="filter"):
    """Returns a step that runs `command` once for every mail. All processes append to the same report."""
    return step(f"{command} {options} --report rows.json @in", each=True)


SETS = {
    "convert": [convert("")],
    "filter": [each("")],
    "links-keep": [convert("--links keep")],
    "embed-data": [convert("--embed data")],
    "embed-data-filter": [each("--embed data --embed-kinds image,font,media,style")],
    "embed": [convert(f"{PICTURES} @web")],
    "embed-filter": [each(f"{PICTURES} @web")],
    "embed-links-keep": [convert(f"{PICTURES} --links keep @web")],
    "trackers-blank": [convert(f"{PICTURES} --trackers blank @web")],
    "trackers-fetch": [convert(f"{PICTURES} --trackers fetch @web")],
    "all-kinds": [convert(f"{ALL} --trackers fetch --max-fetches 64 @web")],
    "styles": [convert("--embed remote --embed-kinds style @web")],
    "fonts-media": [convert("--embed remote --embed-kinds font,media @web")],
    "small-growth": [convert(f"{ALL} --max-growth 20k --follow all @web")],
    "small-message": [convert(f"{ALL} --max-message 60k @web")],
    "few-fetches": [convert(f"{ALL} --max-fetches 3 --follow all @web")],
    "small-work": [convert(f"{ALL} --max-work 2 @web")],
    "small-body": [convert(f"{ALL} --max-body 2k @web")],
    "depth": [convert(f"{PICTURES} --max-depth 1 @web")],
    "parts": [convert(f"{PICTURES} --max-parts 4 @web")],
    "defer": [each(f"{PICTURES} --on-failure defer @web")],
    "dry-run": [convert(f"{ALL} --follow all --dry-run @web"), each(f"{PICTURES} @web --fetch https --max-fetches 0")],
    "dry-run-probe": [convert(f"{PICTURES} --follow all --dry-run --probe @web")],
    "inspect": [step("inspect @in"), step(f"inspect {ALL} --follow all --by host,type,year,sender,outcome --larger-than 10k @web @in")],
    "inspect-json": [step(f"inspect --json {PICTURES} --follow all --fetch http,https @in")],
    "inspect-probe": [step(f"inspect --probe --json {PICTURES} --follow all @web @in")],
    "messages": [step("inspect --messages @in")],
    "follow": [convert(f"--follow all @web {FILES}")],
    "follow-filter": [each(f"--follow all @web {FILES} --accept-mismatch")],
    "recover": [step(f"recover @in --output out --report rows.json --progress never @web --attachments @run/files")],
    "mark": [convert("--mark"), each("--mark --embed data")],
    "provenance": [convert(f"{PICTURES} --provenance --mark @web --follow all")],
    "detach": [
        step("detach --store @run/store --base-url http://store.example.org/ --larger-than 1k --note @in --output out --report rows.json --verbose --progress never"),
        step("restore --store @run/store out --output back --report rows-back.json --verbose --progress never"),
    ],
    "detach-thunderbird": [
        step("detach --store @run/store --larger-than 1k --inline --form thunderbird @in --output out --report rows.json --verbose --progress never"),
        step("restore --store @run/store out --output back --report rows-back.json --verbose --progress never"),
    ],
    "signed": [convert(f"{PICTURES} --signed rewrite --follow all @web")],
    "jobs": [convert(f"{PICTURES} --jobs 1 @web", "out-1"), convert(f"{PICTURES} --jobs 4 @web", "out-4")],
    "cache": [
        convert(f"{PICTURES} --cache @run/cache @web", "out-cold"), convert(f"{PICTURES} --cache @run/cache @web", "out-warm"),
        convert(f"{PICTURES} --cache @run/cache --offline @web", "out-offline"),
    ],
    "record": [convert(f"{PICTURES} --record made.warc.gz --jobs 1 --max-in-flight 1 @web")],
    "resolver": [convert("--follow all --resolver @run/resolve @web")],
    "archive": [convert(f"{PICTURES} --archive http://archive.example.org/web/{{date}}id_/{{url}} --archive-any --follow all @web")],
    "archive-first": [convert(f"{PICTURES} --archive http://archive.example.org/web/{{date}}id_/{{url}} --archive-first --max-fetches 6 @web")],
    "policy": [
        convert(f"{PICTURES} @web --deny-host img.example.com --allow-type image/*,text/plain --deny-type image/gif --max-redirects 2", "out-1"),
        convert(f"{PICTURES} @web --allow-host *.example.org --allow-userinfo --accept-mismatch --allow-port 8080", "out-2"),
    ],
    "in-place": [step(f"convert {PICTURES} @web --in-place --backup .old @copy --report rows.json --verbose --progress never")],
    "twice": [convert(f"{PICTURES} @web", "out-1"), step(f"convert {PICTURES} @web out-1 --output out-2 --report rows-2.json --verbose --progress never")],
}


def recover(source, result):
    """Returns a step that retrieves everything to which the mail in `source` refers."""
    return step(
        f"recover {source} --output {result} --report rows-{result}.json --progress never @web --attachments @run/files")


def embed(source, result, options="--embed data,remote --embed-kinds image,font,media,style --follow all"):
    """Returns a step that embeds pictures and other files, and follows references."""
    return step(
        f"convert {options} @web --attachments @run/files {source} --output {result} --report rows-{result}.json --progress never")


def detach(source, result, options="--larger-than 500"):
    """Returns a step that moves attachments to the store of the case."""
    return step(
        f"detach --store @run/store --base-url http://store.example.org/ {options} {source} --output {result} "
        f"--report rows-{result}.json --progress never")


def restore(source, result):
    """Returns a step that puts the attachments in the store of the case back."""
    return step(f"restore --store @run/store {source} --output {result} --report rows-{result}.json --progress never")


def rewrite(source, result, kind):
    """Returns a step that writes the mail in another format."""
    return step(f"convert {source} --output-format {kind} --output {result} --report rows-{result}.json --progress never")


# Runs in a row, for --compare: `compare` must prove each result with the source, and with each result before it.
CHAINS = {
    "recover-detach": [recover("@in", "one"), detach("one", "two")],
    "recover-detach-inline": [recover("@in", "one"), detach("one", "two", "--larger-than 1 --inline --note --form thunderbird")],
    "recover-embed": [recover("@in", "one"), embed("one", "two")],
    "embed-detach": [embed("@in", "one"), detach("one", "two", "--larger-than 500 --inline")],
    "detach-copies": [
        detach("@in", "one"),
        step("recover one --copies @in --offline --output two --report rows-two.json --progress never"),
    ],
    "embed-recover": [embed("@in", "one", PICTURES), recover("one", "two")],
    "embed-embed": [embed("@in", "one", "--embed data"), embed("one", "two")],
    "detach-embed": [detach("@in", "one"), embed("one", "two")],
    "detach-recover": [detach("@in", "one", "--larger-than 500 --note"), recover("one", "two")],
    "recover-detach-restore": [recover("@in", "one"), detach("one", "two"), restore("two", "three")],
    "embed-detach-restore": [embed("@in", "one"), detach("one", "two", "--inline --note"), restore("two", "three")],
    "recover-embed-detach": [recover("@in", "one"), embed("one", "two"), detach("two", "three", "--larger-than 1 --inline")],
    "detach-embed-restore": [detach("@in", "one"), embed("one", "two"), restore("two", "three")],
    "detach-restore-embed": [detach("@in", "one", "--larger-than 1"), restore("one", "two"), embed("two", "three")],
    "embed-recover-detach": [embed("@in", "one", "--embed data"), recover("one", "two"), detach("two", "three", "--note")],
    "maildir-mbox": [rewrite("@in", "one", "maildir"), rewrite("one", "two", "mbox")],
    "mh-mboxrd": [rewrite("@in", "one", "mh"), rewrite("one", "two", "mboxrd")],
    "eml-mboxcl2": [rewrite("@in", "one", "eml"), rewrite("one", "two", "mboxcl2")],
    "thunderbird-mboxo": [rewrite("@in", "one", "thunderbird"), rewrite("one", "two", "mboxo")],
    "mboxrd-maildir-mh": [rewrite("@in", "one", "mboxrd"), rewrite("one", "two", "maildir"), rewrite("two", "three", "mh")],
    "recover-maildir-detach": [recover("@in", "one"), rewrite("one", "two", "maildir"), detach("two", "three")],
}
# The program for --resolver.
RESOLVER = """#!/bin/sh
# Answers a question with a file, with a permanent error or with a temporary error (75), depending on its length.
read -r question
case $((${#question} % 3)) in
  0) printf 'resolved %s' "$question" ;;
  1) echo "no file for this question" >&2; exit 1 ;;
  2) exit 75 ;;
esac
"""
