// Detaches and restores the mails of a directory with embody serve, and compares each byte. Reads a mailbox of Outlook.
//
//     node client.mjs http://127.0.0.1:9997 DIRECTORY [MAILBOX.pst]
//
// The token of --token-file is in the variable EMBODY_TOKEN, if the service needs one. It needs no package.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const [url, directory, mailbox] = process.argv.slice(2);

async function post(path, body, fields = {}) {
  if (process.env.EMBODY_TOKEN) fields.Authorization = `Bearer ${process.env.EMBODY_TOKEN}`;
  const response = await fetch(url + path, { method: "POST", body, headers: fields });
  if (!response.ok) {
    // The service explains each error in a sentence (RFC 9457).
    throw new Error((await response.json()).detail);
  }
  return response;
}

const bytes = async (response) => Buffer.from(await (await response).arrayBuffer());
const detach = (mail) => bytes(post("/v1/detach?larger-than=1k", mail));
const restore = (mail) => bytes(post("/v1/restore", mail));

// Passes each message to `take` while the mailbox is read, and returns the report.
async function messages(mailbox, take) {
  const response = await post("/v1/messages", mailbox, { Accept: "application/x-ndjson" });
  const decoder = new TextDecoder();
  let rest = "", report;
  for await (const piece of response.body) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines.map((line) => JSON.parse(line))) {
      if (line.kind === "report") report = line;
      else take(line, Buffer.from(line.content, "base64"));
    }
  }
  if (!report) throw new Error("the answer is incomplete");
  return report;
}

let count = 0;
for (const name of await readdir(directory)) {
  const mail = await readFile(join(directory, name));
  const small = await detach(mail);
  if (!(await restore(small)).equals(mail)) throw new Error(`${name} was not restored`);
  count += 1;
}
console.log(`${count} mails restored`);
if (mailbox) {
  let read = 0;
  const report = await messages(await readFile(mailbox), () => (read += 1));
  if (report.announced !== read) console.error("not read:", report.unreadable);
  console.log(`${read} messages read`);
}
