// Processes one mail with the engine of embody in WebAssembly. src/lib.rs describes how to build the module and how to run
// this program.
//
//     node run.mjs MAIL             prints the references and the first needs of the mail as JSON
//     node run.mjs MAIL DOWNLOADS   writes the filled mail, and its rows to standard error
//
// The content of https://www.example.org/notes/a.txt is read from the file DOWNLOADS/www.example.org/a.txt. A program that
// sends requests to servers instead must check the addresses of the servers, because a mail can name a server of the local
// network. The environment variable EMBODY_WASM names the module, if it is not in the target directory of cargo.

import { readFile } from "node:fs/promises";
import { join } from "node:path";

const built = new URL("target/wasm32-unknown-unknown/release/embody_wasm.wasm", import.meta.url);
const module = await readFile(process.env.EMBODY_WASM ?? built);
const { instance } = await WebAssembly.instantiate(module);
const engine = instance.exports;

// Returns a buffer in the memory of the module that contains the bytes. The function that receives the buffer frees it.
function given(bytes) {
  const buffer = engine.buffer_new(bytes.length);
  // A view of the memory becomes invalid when the memory grows, so each access creates a new view.
  new Uint8Array(engine.memory.buffer, engine.buffer_data(buffer), bytes.length).set(bytes);
  return buffer;
}

// Returns a copy of the bytes in a buffer that the module returned, and frees the buffer.
function taken(buffer) {
  const length = engine.buffer_length(buffer);
  const bytes = new Uint8Array(engine.memory.buffer, engine.buffer_data(buffer), length).slice();
  engine.buffer_free(buffer);
  return bytes;
}

const text = (string) => given(new TextEncoder().encode(string));
const json = (buffer) => JSON.parse(new TextDecoder().decode(taken(buffer)));

// Media types of files, by suffix.
const types = { gif: "image/gif", html: "text/html", jpg: "image/jpeg", png: "image/png", txt: "text/plain" };

// Reads the file for a URL. The URL comes from untrusted mail. The expression accepts only a host and a file name that do
// not start with a dot and contain no slash, so that the path cannot leave the directory.
async function retrieved(url, folder) {
  const match = /^https:\/\/([A-Za-z0-9_-][A-Za-z0-9._-]*)\/(?:.*\/)?([A-Za-z0-9_-][A-Za-z0-9._-]*)$/.exec(url);
  if (!match) throw new Error("the URL contains no valid file name");
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
    // The needs of one round do not depend on each other, so their content is read in parallel.
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
