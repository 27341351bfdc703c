// The entry of the npm package: loads the module next to this file once, and opens files with it.

import { Embody } from "./embody.js";

export { Embody, EmbodyError, Mail, MailFile } from "./embody.js";

let loaded;

async function load() {
  const url = new URL("./embody.wasm", import.meta.url);
  if (url.protocol === "file:" && typeof process !== "undefined") {
    const { readFile } = await import("node:fs/promises");
    return WebAssembly.compile(await readFile(url));
  }
  const response = await fetch(url);
  if (!response.ok) throw new Error(`cannot load ${url}: the server returned ${response.status}`);
  return WebAssembly.compile(await response.arrayBuffer());
}

/** Opens a file with mail. */
export async function openMail(bytes, name = "") {
  loaded ??= load();
  try {
    // Each file gets a memory of its own: a defect in one cannot reach the others, and its memory is freed with it.
    const embody = await Embody.of(await loaded);
    return embody.open(bytes, name);
  } catch (error) {
    if (!(await loaded.then(() => true, () => false))) loaded = undefined;
    throw error;
  }
}
