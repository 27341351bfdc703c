#!/usr/bin/env node
// Checks that the npm package embody-mail repairs each file with the same bytes as `embody filter --follow all` (docs/web.md).
//
//     tests/peers/bytes.js PROGRAM PACKAGE FILE...
//
// PROGRAM is the program embody, and PACKAGE is the directory target/web/embody-mail that web/build writes. A mailbox and a file
// that the package refuses are left out.
"use strict";

const { spawnSync } = require("node:child_process");
const fs = require("node:fs");
const path = require("node:path");
const { pathToFileURL } = require("node:url");

async function main([program, folder, ...names]) {
  const { Embody } = await import(pathToFileURL(path.resolve(folder, "embody.js")));
  const module = await WebAssembly.compile(fs.readFileSync(path.join(folder, "embody.wasm")));
  const counts = { same: 0, "left out": 0, different: 0 };
  const slow = { time: 0, name: "" };
  for (const name of names) {
    let ours = null;
    let why = "";
    const begun = performance.now();
    try {
      const embody = await Embody.of(module);
      const file = embody.open(fs.readFileSync(name), path.basename(name));
      // A mail in a mailbox has no separator in the page.
      if (file.length === 1 && file.format !== "mbox") ours = Buffer.from(file.mail(0).repaired());
      else why = `${file.length} mails`;
    } catch (error) {
      // Anything else is a trap of the module.
      if (error.name !== "EmbodyError") throw new Error(`${name}: ${error}`);
      why = error.message;
    }
    const time = performance.now() - begun;
    if (time > slow.time) Object.assign(slow, { time, name });
    const { status, stdout } = spawnSync(program, ["filter", "--follow", "all", "--quiet", name], { maxBuffer: 1 << 30 });
    if (ours === null) counts["left out"] += 1;
    else if (status === 0 && stdout.equals(ours)) counts.same += 1;
    else {
      counts.different += 1;
      console.log(`${name}: different (status ${status})`);
    }
    if (process.env.VERBOSE && ours === null) console.log(`${name}: ${why} (status ${status})`);
  }
  console.log(`${counts.same} files with the same bytes, ${counts.different} different, ${counts["left out"]} left out`);
  console.log(`the slowest file took ${Math.round(slow.time)} ms: ${slow.name}`);
  process.exit(counts.different > 0 ? 1 : 0);
}

main(process.argv.slice(2));
