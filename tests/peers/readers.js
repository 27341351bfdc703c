#!/usr/bin/env node
// Compares the npm package embody-mail with other packages that read mail in JavaScript: what each finds in .msg and TNEF files.
// Prints the table of docs/web.md.
//
//     NODE_PATH=.../node_modules tests/peers/readers.js PACKAGE FILE...
//
// PACKAGE is the directory target/web/embody-mail that web/build writes. @kenjiuno/msgreader reads the .msg files. postal-mime
// reads a mail with the TNEF file as winmail.dat. Equal files are counted once, and files that are no .msg and no TNEF are left
// out.
"use strict";

const crypto = require("node:crypto");
const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

const MsgReader = require("@kenjiuno/msgreader").default;

const OLE = "d0cf11e0a1b11ae1";
const TNEF = "789f3e22";
const COLUMNS = ["opened", "files", "pictures", "messages", "html"];

const total = () => Object.fromEntries(COLUMNS.map((column) => [column, 0]));

// The Content-IDs that HTML names.
const named = (html) => new Set([...html.matchAll(/cid:([^"'\s>)]+)/gi)].map(([, id]) => decodeURIComponent(id)));

function count(found, { html, files, messages }) {
  found.opened += 1;
  if (html) found.html += 1;
  const ids = named(html ?? "");
  found.files += files.length;
  found.pictures += files.filter((id) => ids.has(id)).length;
  found.messages += messages;
}

// Counts a mail and the mails in it, at every depth.
function countEmbody(embody, mail, found) {
  const parts = mail.parts.filter((part) => part.inside === null);
  // An appointment as iCalendar is made of the item itself, so it is no file that the sender attached.
  const is_made = ({ media_type }) => media_type === "text/calendar";
  const files = parts.filter((part) => ["attachment", "picture"].includes(part.role) && !is_made(part));
  const inner = mail.parts.map((part, index) => ({ part, index })).filter(({ part }) => part.inside === null && part.role === "message");
  const html = mail.bodies.map((body) => body.html).find((it) => it !== null);
  count(found, { html, files: files.map((part) => part.content_id), messages: inner.length });
  for (const { index } of inner) {
    countEmbody(embody, embody.mail(mail.content(index)), found);
    found.opened -= 1;
  }
}

function countMsg(fields, found) {
  const html = fields.bodyHtml ?? (fields.html ? Buffer.from(fields.html).toString("latin1") : null);
  const attachments = fields.attachments ?? [];
  const inner = attachments.filter((it) => it.innerMsgContent);
  const files = attachments.filter((it) => !it.innerMsgContent).map((it) => it.pidContentId);
  count(found, { html, files, messages: inner.length });
  for (const { innerMsgContentFields } of inner) {
    countMsg(innerMsgContentFields, found);
    found.opened -= 1;
  }
}

async function countPostal(PostalMime, bytes, found) {
  const mail = `MIME-Version: 1.0\r\nContent-Type: application/ms-tnef; name=winmail.dat\r\nContent-Disposition: attachment; filename=winmail.dat\r\nContent-Transfer-Encoding: base64\r\n\r\n${bytes.toString("base64")}\r\n`;
  const { html, attachments } = await PostalMime.parse(mail);
  const files = attachments.filter((it) => it.filename !== "winmail.dat");
  // The winmail.dat itself is not what a person looks for.
  if (html || files.length > 0) count(found, { html, files: files.map((it) => it.contentId), messages: 0 });
}

function version(name) {
  for (let at = path.dirname(require.resolve(name)); ; at = path.dirname(at)) {
    const file = path.join(at, "package.json");
    const described = fs.existsSync(file) ? JSON.parse(fs.readFileSync(file)) : {};
    if (described.name === name) return described.version;
  }
}

async function main([folder, ...names]) {
  const { Embody } = await import(pathToFileURL(path.resolve(folder, "embody.js")));
  const { default: PostalMime } = await import(pathToFileURL(require.resolve("postal-mime")));
  const module = await WebAssembly.compile(fs.readFileSync(path.join(folder, "embody.wasm")));
  const known = new Set();
  const rows = { msg: [total(), total()], tnef: [total(), total()] };
  const files = { msg: 0, tnef: 0 };
  const refused = new Map();
  for (const name of names) {
    const bytes = fs.readFileSync(name);
    const start = bytes.subarray(0, 8).toString("hex");
    const kind = start === OLE ? "msg" : start.startsWith(TNEF) ? "tnef" : null;
    const digest = crypto.createHash("sha256").update(bytes).digest("hex");
    if (!kind || known.has(digest)) continue;
    known.add(digest);
    files[kind] += 1;
    const [ours, theirs] = rows[kind];
    const embody = await Embody.of(module);
    try {
      countEmbody(embody, embody.open(bytes, path.basename(name)).mail(0), ours);
    } catch (error) {
      if (error.name !== "EmbodyError") throw error;
      refused.set(error.message, (refused.get(error.message) ?? 0) + 1);
    }
    try {
      if (kind === "msg") {
        const reader = new MsgReader(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
        const fields = reader.getFileData();
        if (fields.error) throw new Error(fields.error);
        countMsg(fields, theirs);
      } else await countPostal(PostalMime, bytes, theirs);
    } catch (error) {
      console.error(`${name}: ${error.message}`);
    }
  }
  const row = (words, { opened, html, files, pictures, messages }) => console.log(`| ${words} | ${opened} | ${html} | ${files} | ${pictures} | ${messages} |`);
  console.log("| files | package | opened | with HTML | attachments | of these, shown in the text | mails in the mail |\n|---|---|---|---|---|---|---|");
  row(`${files.msg} \`.msg\` | embody-mail`, rows.msg[0]);
  row(`${files.msg} \`.msg\` | @kenjiuno/msgreader ${version("@kenjiuno/msgreader")}`, rows.msg[1]);
  row(`${files.tnef} TNEF | embody-mail`, rows.tnef[0]);
  row(`${files.tnef} TNEF | postal-mime ${version("postal-mime")}`, rows.tnef[1]);
  for (const [why, number] of refused) console.log(`refused by embody-mail: ${number}: ${why}`);
}

main(process.argv.slice(2));
