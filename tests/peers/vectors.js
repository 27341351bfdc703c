#!/usr/bin/env node
// Collects test vectors for HTML cleaners and phishing mails for the test of the page embody.html (docs/web.md).
//
//     tests/peers/vectors.js DOMPURIFY AMMONIA MAILS FOLDER
//
// The first three arguments are checkouts of https://github.com/cure53/DOMPurify, https://github.com/rust-ammonia/ammonia and
// https://github.com/rf-peixoto/phishing_pot. The script writes FOLDER/vectors.json, a list of HTML texts, and 310 mails with
// HTML to FOLDER/mails. EMBODY_VECTORS=FOLDER makes the test read them.
"use strict";

const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

// A few of the mails have no HTML that can be shown, and the test needs 300 that have.
const MOST_MAILS = 310;

// Returns the string literals of the tests of ammonia: "..." with escapes, and r#"..."#.
function literals(source) {
  const tests = source.slice(source.indexOf("mod test"));
  const found = [...tests.matchAll(/r#"([^]*?)"#|"((?:[^"\\]|\\[^])*)"/g)].map(([, raw, escaped]) =>
    raw ?? escaped.replace(/\\\n\s*/g, "").replace(/\\(u\{([0-9a-f]+)\}|.)/gi, (_, one, code) =>
      code ? String.fromCodePoint(parseInt(code, 16)) : { n: "\n", t: "\t", r: "\r", 0: "\0" }[one] ?? one,
    ),
  );
  return found.filter((text) => text.includes("<"));
}

async function main([purify, ammonia, mails, folder]) {
  const { default: expected } = await import(pathToFileURL(path.resolve(purify, "test/fixtures/expect.mjs")));
  const vectors = [
    ...expected.map(({ payload }) => payload),
    ...literals(fs.readFileSync(path.join(ammonia, "src/lib.rs"), "utf8")),
  ];
  fs.mkdirSync(path.join(folder, "mails"), { recursive: true });
  fs.writeFileSync(path.join(folder, "vectors.json"), JSON.stringify([...new Set(vectors)]));
  const place = path.join(mails, "email");
  const names = fs.readdirSync(place).filter((name) => name.endsWith(".eml")).sort();
  const is_html = (name) => /^content-type:\s*text\/html/im.test(fs.readFileSync(path.join(place, name), "latin1"));
  const chosen = [];
  // Mails from the whole corpus, because neighbours often belong to one campaign.
  const step = Math.max(1, Math.floor(names.length / (2 * MOST_MAILS)));
  for (let at = 0; at < names.length && chosen.length < MOST_MAILS; at += step) if (is_html(names[at])) chosen.push(names[at]);
  for (const name of chosen) fs.copyFileSync(path.join(place, name), path.join(folder, "mails", name));
  console.log(`${vectors.length} texts, ${chosen.length} mails`);
}

main(process.argv.slice(2));
