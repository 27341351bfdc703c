#!/usr/bin/env node
// Opens mutated files with the npm package embody-mail. The exit status is 1 if a file causes a trap, or takes longer than five
// seconds of processor time.
//
//     tests/peers/mutants.js PACKAGE FIRST COUNT FILE...
//
// PACKAGE is the directory embody-mail that web/build writes. Each mutant has a number, and depends only on its number and on the
// list of files, so FIRST and COUNT can repeat one of them. A mutant that fails is written to the directory for temporary files.
"use strict";

const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { pathToFileURL } = require("node:url");
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads");

// Processor time, in seconds. It does not depend on what else the machine does.
const MOST_SECONDS = 5;
// Time on the clock after which a mutant counts as a hang, in milliseconds.
const PATIENCE = 120_000;
// Number of mails in a file, and of mails inside a mail, that are opened.
const MOST_MAILS = 20;

// Text that changes the structure of a mail.
const TOKENS = [
  "\n\n", "\r", "\0", "--b\n", "--b--\n", "=\n", "&#x0;", "<div>", "<![CDATA[", "=?utf-8?q?=C3?=", "\nFrom a@b Mon Jan  6 10:00:00 2020\n", "(", "\"",
  "Content-Type: message/rfc822\n\n", "Content-Type: multipart/mixed; boundary=b\n\n--b\n", "Content-Transfer-Encoding: base64\n",
  "Content-Type: application/ms-tnef; name=winmail.dat\n", "Content-Type: message/external-body; access-type=URL; URL=\"http://a.example/\"\n\n",
  "begin 644 a.txt\n", "src=\"cid:a\"", "data:image/png;base64,", "charset=utf-7\n", "Content-Length: 99999999999\n",
];
const NUMBERS = [0, 1, 2, 3, 4, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffff8, 0xffffffff];

/** A generator of numbers that is the same for the same seed (mulberry32). Returns an integer below `limit`. */
function generator(seed) {
  let state = seed >>> 0;
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), state | 1);
    value ^= value + Math.imul(value ^ (value >>> 7), value | 61);
    return ((value ^ (value >>> 14)) >>> 0) % Math.max(1, limit);
  };
}

/** Returns a copy of the bytes with one change. `other` is another file of the same format. */
function changed(bytes, below, other, kind) {
  const at = below(bytes.length);
  const length = below(Math.min(bytes.length - at, below(4) === 0 ? bytes.length : 64)) + 1;
  const before = bytes.subarray(0, at);
  const range = bytes.subarray(at, at + length);
  const after = bytes.subarray(at + length);
  const copy = Buffer.from(bytes);
  // Most changes of a .pst and an .msg keep the positions of all other bytes, which the tables in the file contain.
  const is_indexed = [".pst", ".msg"].includes(kind);
  switch (below(is_indexed && below(8) > 0 ? 4 : 9)) {
    case 0:
      for (let count = below(8); count >= 0; count -= 1) copy[below(copy.length)] ^= 1 << below(8);
      return copy;
    case 1:
      for (let index = at; index < Math.min(at + 64, copy.length); index += 1) copy[index] = below(256);
      return copy;
    case 2:
    case 3: {
      const width = [1, 2, 4][below(3)];
      const number = NUMBERS[below(NUMBERS.length)];
      if (at + width <= copy.length) copy.writeUIntLE(number % 2 ** (8 * width), at, width);
      return copy;
    }
    case 4:
      return Buffer.from(before);
    case 5:
      return Buffer.concat([before, after]);
    case 6:
      return Buffer.concat([before, ...Array(1 + below(50)).fill(range), after]);
    case 7: {
      const from = below(other.length);
      return Buffer.concat([before, other.subarray(from, from + length), after]);
    }
    default: {
      const token = Buffer.from(TOKENS[below(TOKENS.length)]);
      return Buffer.concat([before, ...Array(below(3) === 0 ? 1 + below(2000) : 1).fill(token), after]);
    }
  }
}

/** Corrects the checksums of the attributes in a winmail.dat, which embody would otherwise refuse. */
function correctTnef(bytes) {
  for (let at = 6; at + 11 <= bytes.length; ) {
    const length = bytes.readUInt32LE(at + 5);
    const end = at + 9 + length;
    if (end + 2 > bytes.length) return;
    let sum = 0;
    for (let index = at + 9; index < end; index += 1) sum = (sum + bytes[index]) & 0xffff;
    bytes.writeUInt16LE(sum, end);
    at = end + 2;
  }
}

const kindOf = (name) => (path.basename(name).startsWith("winmail") ? "winmail.dat" : path.extname(name));

/** Returns the mutant with this number, and the name of its file. */
function mutant(number, groups) {
  const below = generator(Math.imul(number + 1, 0x9e3779b1));
  const group = groups[number % groups.length];
  const { name, bytes } = group[below(group.length)];
  let mutated = bytes;
  for (let count = below(4); count >= 0 && mutated.length > 0; count -= 1) {
    mutated = changed(mutated, below, group[below(group.length)].bytes, kindOf(name));
  }
  if (kindOf(name) === "winmail.dat" && below(4) > 0) correctTnef(mutated);
  return { name, bytes: mutated };
}

/** Does what the page does with a file. Returns the number of mails that were opened. */
function read(embody, EmbodyError, bytes, name) {
  let opened = 0;
  const given = (work) => {
    try {
      return work();
    } catch (error) {
      // An EmbodyError is about the file. Anything else is a trap of the module.
      if (!(error instanceof EmbodyError)) throw error;
      return null;
    }
  };
  const view = (mail, depth) => {
    opened += 1;
    mail.parts.forEach((part, index) => {
      const content = mail.content(index);
      if (part.role !== "message" || depth > 2 || opened > MOST_MAILS) return;
      const inner = given(() => embody.mail(content));
      if (inner) view(inner, depth + 1);
    });
    mail.repaired();
    for (let index = 0; index < Math.min(3, mail.references.length); index += 1) given(() => mail.fill(index, Buffer.from("text\n"), "text/plain"));
    mail.repaired();
    mail.close();
  };
  const file = given(() => embody.open(bytes, path.basename(name)));
  if (!file) return 0;
  file.summaries();
  for (let index = 0; index < Math.min(MOST_MAILS, file.length); index += 1) {
    const mail = given(() => file.mail(index));
    if (mail) view(mail, 0);
  }
  return opened;
}

const keep = (number, { name, bytes }) => {
  const place = path.join(os.tmpdir(), `mutant-${number}-${path.basename(name)}`);
  fs.writeFileSync(place, bytes);
  return place;
};

async function work([folder, first, count, ...names]) {
  const { Embody, EmbodyError } = await import(pathToFileURL(path.resolve(folder, "embody.js")));
  const module = await WebAssembly.compile(fs.readFileSync(path.join(folder, "embody.wasm")));
  const groups = groupsOf(names);
  const failed = [];
  const slowest = { time: 0 };
  // Numbers of mutants that were opened, and of mutants, by format.
  const kinds = {};
  let mails = 0;
  for (let number = Number(first); number < Number(first) + Number(count); number += 1) {
    parentPort.postMessage({ number });
    const made = mutant(number, groups);
    const begun = process.cpuUsage();
    let problem = null;
    try {
      const found = read(await Embody.of(module), EmbodyError, made.bytes, made.name);
      const kind = (kinds[kindOf(made.name)] ??= { opened: 0, all: 0 });
      kind.all += 1;
      if (found > 0) kind.opened += 1;
      mails += found;
    } catch (error) {
      problem = `trap: ${error.stack}`;
    }
    const { user, system } = process.cpuUsage(begun);
    const time = (user + system) / 1e6;
    if (time > slowest.time) Object.assign(slowest, { time, number, name: made.name });
    if (time > MOST_SECONDS) problem = `took ${time.toFixed(1)} s`;
    if (problem) failed.push(`mutant ${number} of ${made.name}: ${problem}\n  ${keep(number, made)}`);
  }
  parentPort.postMessage({ done: { failed, kinds, mails, slowest } });
}

function groupsOf(names) {
  const groups = new Map();
  for (const name of names) {
    const kind = kindOf(name);
    if (!groups.has(kind)) groups.set(kind, []);
    groups.get(kind).push({ name, bytes: fs.readFileSync(name) });
  }
  return [...groups.values()];
}

function main(words) {
  const [, , count, ...names] = words;
  const worker = new Worker(__filename, { workerData: words });
  let timer;
  let current;
  const give_up = () => {
    console.log(`mutant ${current} hangs: ${keep(current, mutant(current, groupsOf(names)))}`);
    process.exit(1);
  };
  worker.on("message", ({ number, done }) => {
    clearTimeout(timer);
    current = number;
    if (!done) {
      timer = setTimeout(give_up, PATIENCE);
      return;
    }
    const { failed, kinds, mails, slowest } = done;
    const opened = Object.values(kinds).reduce((sum, kind) => sum + kind.opened, 0);
    console.log(`${count} mutants of ${names.length} files: ${opened} opened with ${mails} mails, ${failed.length} failed`);
    for (const [kind, it] of Object.entries(kinds)) console.log(`${kind}: ${it.opened} of ${it.all} opened`);
    console.log(`the slowest one took ${slowest.time.toFixed(2)} s: mutant ${slowest.number} of ${slowest.name}`);
    for (const text of failed) console.log(text);
    process.exitCode = failed.length > 0 ? 1 : 0;
  });
  worker.on("error", (error) => {
    console.log(`mutant ${current}: ${error.stack}`);
    process.exit(1);
  });
}

if (isMainThread) main(process.argv.slice(2));
else work(workerData);
