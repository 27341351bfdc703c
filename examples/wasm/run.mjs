// Drives the engine of embody on one mail: src/lib.rs says how to build the module and how to run this.
//
//     node run.mjs MAIL             prints the references and the first needs of the mail as JSON
//     node run.mjs MAIL DOWNLOADS   writes the filled mail, and its rows to standard error
//
// The content of https://www.example.org/notes/a.txt is the file DOWNLOADS/www.example.org/a.txt. A program that asks
// servers instead must look at their addresses itself, since a mail can name a server of the local network.
// EMBODY_WASM names the module, if it is not where cargo puts it.

import { readFile } from "node:fs/promises";
import { join } from "node:path";

const built = new URL("target/wasm32-unknown-unknown/release/embody_wasm.wasm", import.meta.url);
const module = await readFile(process.env.EMBODY_WASM ?? built);
const { instance } = await WebAssembly.instantiate(module);
const engine = instance.exports;

// A buffer with these bytes. The function that gets the buffer frees it.
function given(bytes) {
  const buffer = engine.buffer_new(bytes.length);
  // Growing the memory detaches earlier views, so each use creates one.
  new Uint8Array(engine.memory.buffer, engine.buffer_data(buffer), bytes.length).set(bytes);
  return buffer;
}

// The bytes of a buffer that a function returned, which is freed.
function taken(buffer) {
  const length = engine.buffer_length(buffer);
  const bytes = new Uint8Array(engine.memory.buffer, engine.buffer_data(buffer), length).slice();
  engine.buffer_free(buffer);
  return bytes;
}

const text = (string) => given(new TextEncoder().encode(string));
const json = (buffer) => JSON.parse(new TextDecoder().decode(taken(buffer)));

// Types of the files, by their suffixes.
const types = { gif: "image/gif", html: "text/html", jpg: "image/jpeg", png: "image/png", txt: "text/plain" };

// The file of a URL. A URL comes from untrusted mail: a host and one name, neither of which leads elsewhere.
async function retrieved(url, folder) {
  const match = /^https:\/\/([A-Za-z0-9_-][A-Za-z0-9._-]*)\/(?:.*\/)?([A-Za-z0-9_-][A-Za-z0-9._-]*)$/.exec(url);
  if (!match) throw new Error("the URL names no file");
  const [, host, name] = match;
  const body = await readFile(join(folder, host, name));
  return { body, type: types[name.split(".").pop()] ?? "" };
}

const [mail, folder] = process.argv.slice(2);
if (mail === undefined) {
  console.error("usage: node run.mjs MAIL [DOWNLOADS]");
  process.exit(2);
}
const session = engine.session_new(given(await readFile(mail)), Date.now(), 1);
if (folder === undefined) {
  const references = json(engine.session_forecast(session)).rows;
  const { needs, room } = json(engine.session_run(session));
  console.log(JSON.stringify({ references, needs, room }, null, 2));
} else {
  let report = json(engine.session_run(session));
  while (report.needs.length > 0) {
    // The needs of one round do not depend on each other.
    const answers = await Promise.allSettled(report.needs.map((need) => retrieved(need.url, folder)));
    answers.forEach(({ value, reason }, number) => {
      if (value) engine.session_answer(session, number, text(value.type), given(value.body));
      else engine.session_refuse(session, number, text(`not in ${folder}: ${reason.code ?? reason.message}`));
    });
    report = json(engine.session_run(session));
  }
  for (const row of report.rows) console.error(JSON.stringify(row));
  process.stdout.write(taken(engine.session_output(session)));
}
engine.session_free(session);
