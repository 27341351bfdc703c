// The page: its files and its lists of mails. Each file has a Worker of its own, which reads it.

// Time limit for one task of a Worker, in milliseconds, and for each byte of the file.
const PATIENCE = 30_000;
const PATIENCE_PER_BYTE = 0.001;
// Number of mails of a list that are shown at first, and that each press of "more" adds.
const STEP = 200;
// Number of summaries that are read at a time, so that the list appears before the whole mailbox was read.
const BATCH = 500;

for (const place of document.querySelectorAll("[data-word]")) place.textContent = WORDS[place.dataset.word];
document.title = WORDS.title;
byId("search").placeholder = WORDS.search;
const about = JSON.parse(byId("about-version").textContent);
byId("version").textContent = WORDS.version(about.version, about.date);
byId("notices").textContent = byId("licences").textContent;

// The module is compiled once, and each Worker gets it.
let compiled;
async function compile() {
  const packed = new Blob([bytesOfBase64(byId("module").textContent)]);
  const plain = packed.stream().pipeThrough(new DecompressionStream("gzip"));
  return WebAssembly.compile(await new Response(plain).arrayBuffer());
}
const compiledModule = () => (compiled ??= compile());

const workerUrl = URL.createObjectURL(new Blob([byId("worker").textContent], { type: "text/javascript" }));

/** A file, its Worker, and its list of mails. */
class OpenFile {
  constructor(source) {
    this.name = source.name || WORDS.unnamed;
    this.size = source.size;
    this.summaries = [];
    this.length = 0;
    this.notes = [];
    this.chosen = -1;
    this.query = "";
    this.limit = STEP;
    this.waiting = new Map();
    this.number = 0;
    this.mails = 0;
    this.worker = new Worker(workerUrl);
    this.worker.onmessage = ({ data }) => this.answered(data);
    this.worker.onerror = () => this.end(WORDS.crashed(this.name));
  }

  /** Asks the Worker, and ends it if it takes too long. */
  ask(task, values = {}, moved = []) {
    if (!this.worker) return Promise.reject(new FileError(WORDS.crashed(this.name)));
    const number = (this.number += 1);
    return new Promise((resolve, reject) => {
      const patience = PATIENCE + this.size * PATIENCE_PER_BYTE;
      const timer = setTimeout(() => this.end(WORDS.tooLong(this.name)), patience);
      this.waiting.set(number, { resolve, reject, timer });
      this.worker.postMessage({ number, task, ...values }, moved);
    });
  }

  answered({ number, result, error, is_trap }) {
    const waiting = this.waiting.get(number);
    if (!waiting) return;
    this.waiting.delete(number);
    clearTimeout(waiting.timer);
    if (error === undefined) waiting.resolve(result);
    else if (is_trap) {
      this.waiting.set(number, waiting);
      this.end(WORDS.crashed(this.name));
    } else waiting.reject(new FileError(error));
  }

  end(why) {
    this.worker?.terminate();
    this.worker = null;
    for (const { reject, timer } of this.waiting.values()) {
      clearTimeout(timer);
      reject(new FileError(why));
    }
    this.waiting.clear();
  }
}

const files = [];
let current = null;
let shownMail = null;

async function openFiles(list) {
  for (const source of list) {
    say(WORDS.loading(source.name));
    let file = null;
    try {
      file = new OpenFile(source);
      const [module, bytes] = await Promise.all([compiledModule(), source.arrayBuffer()]);
      Object.assign(file, await file.ask("open", { module, bytes, name: file.name }, [bytes]));
      files.push(file);
      await select(file);
      readSummaries(file);
    } catch (error) {
      file?.end("");
      const is_ours = error instanceof FileError;
      complain(is_ours && error.message.includes(file.name) ? error.message : WORDS.cannotOpen(source.name, error.message));
    }
  }
  say("");
}

async function readSummaries(file) {
  while (file.summaries.length < file.length && file.worker) {
    let batch;
    try {
      batch = await file.ask("summaries", { from: file.summaries.length, count: BATCH });
    } catch (error) {
      complain(error.message);
      return;
    }
    if (batch.length === 0) return;
    const first = file.summaries.length === 0;
    file.summaries.push(...batch);
    if (file !== current) continue;
    // A long list is drawn for the first batch and at the end, and not for each batch.
    if (first || file.summaries.length >= file.length) drawMails();
    else drawCount();
  }
}

async function select(file) {
  current = file;
  byId("start").hidden = true;
  byId("lists").hidden = false;
  byId("open").hidden = false;
  byId("search").value = file.query;
  app.toggleAttribute("data-many", files.length > 1 || file.length > 1);
  drawFiles();
  drawMails();
  if (file.length === 0) {
    show(backButton(), element("p", { className: "box", textContent: file.size === 0 ? WORDS.emptyFile(file.name) : WORDS.noMail }), ...file.notes.map((note) => element("p", { className: "box warn", textContent: sentence(note) })));
  } else if (file.chosen >= 0) await openMail(file, file.chosen);
  else if (file.length === 1) await openMail(file, 0);
  else {
    byId("mail").hidden = true;
    app.dataset.view = "list";
  }
}

function close(file) {
  file.end("");
  files.splice(files.indexOf(file), 1);
  if (files.length > 0) {
    if (file === current) select(files[0]);
    else drawFiles();
    return;
  }
  current = null;
  byId("start").hidden = false;
  for (const id of ["lists", "open", "mail"]) byId(id).hidden = true;
  byId("opened").textContent = "";
  app.dataset.view = "start";
  byId("choose").focus();
}

function drawFiles() {
  const rows = files.map((file) => {
    const info = file.length === 1 ? WORDS.size(file.size) : WORDS.found(file.length);
    const row = element(
      "button",
      { type: "button", className: "row", onclick: () => select(file) },
      element("span", { className: "top" }, nameElement(file.name, "who file"), element("span", { className: "when", textContent: info })),
    );
    if (file === current) row.setAttribute("aria-current", "true");
    return element("li", {}, row, button("×", () => close(file), { className: "shut", "aria-label": WORDS.close(file.name) }));
  });
  byId("files").replaceChildren(...rows);
  // One mail alone has no list, so its name is in the bar.
  byId("opened").replaceChildren(...(app.hasAttribute("data-many") || !current ? [] : [nameElement(current.name, "file")]));
}

const shortDate = (seconds) => (seconds === null ? "" : new Date(seconds * 1000).toLocaleDateString(undefined, { year: "numeric", month: "short", day: "numeric" }));
const longDate = (seconds) => new Date(seconds * 1000).toLocaleString(undefined, { dateStyle: "full", timeStyle: "short" });

// Returns the path of a folder. In a narrow list, the folder itself stays whole, and the folders above it are cut.
function folderElement(path) {
  if (path.length === 0) return null;
  const above = path.slice(0, -1).join(" / ");
  return element(
    "span",
    { className: "what soft folder", title: path.join(" / ") },
    element("span", { textContent: above }),
    element("span", { textContent: `${above && " / "}${path.at(-1)}` }),
  );
}

function matching(file) {
  const words = file.query.toLowerCase().split(/\s+/).filter(Boolean);
  const indexes = file.summaries.map((_, index) => index);
  if (words.length === 0) return indexes;
  return indexes.filter((index) => {
    const { from, to, subject, folder } = file.summaries[index];
    const text = `${from}\n${to}\n${subject}\n${folder.join("/")}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

function drawCount(found = matching(current)) {
  const all = current.length;
  byId("count").textContent = current.query ? WORDS.foundOf(found.length, all) : WORDS.found(all);
}

function drawMails() {
  const file = current;
  byId("mailbox").hidden = file.length < 2;
  byId("damage").hidden = file.notes.length === 0;
  byId("damage").replaceChildren(...file.notes.slice(0, STEP).map((note) => element("p", { textContent: sentence(note) })));
  if (file.length < 2) return;
  const found = matching(file);
  drawCount(found);
  const rows = found.slice(0, file.limit).map((index) => {
    const mail = file.summaries[index];
    const row = element(
      "button",
      { type: "button", className: "row", "data-index": index, onclick: () => openMail(file, index) },
      element("span", { className: "top" }, element("span", { className: "who", textContent: nameOf(mail.from) || (mail.problem && mail.subject) || WORDS.noSender }), element("span", { className: "when", textContent: shortDate(mail.date) })),
      element("span", { className: mail.problem ? "what whole" : "what", textContent: mail.problem ? sentence(mail.problem) : mail.subject || WORDS.noSubject }),
      folderElement(mail.folder),
    );
    if (index === file.chosen) row.setAttribute("aria-current", "true");
    return element("li", {}, row);
  });
  byId("mails").replaceChildren(...rows);
  const left = found.length - file.limit;
  byId("more").hidden = left <= 0;
  byId("more").textContent = WORDS.more(Math.min(left, STEP));
}

for (const id of ["open", "choose"]) byId(id).onclick = () => byId("chooser").click();
byId("chooser").onchange = async () => {
  const chosen = [...byId("chooser").files];
  byId("chooser").value = "";
  await openFiles(chosen);
};
byId("search").oninput = () => {
  current.query = byId("search").value;
  current.limit = STEP;
  drawMails();
};
byId("more").onclick = () => {
  current.limit += STEP;
  drawMails();
};

// The arrow keys move in a list.
byId("lists").addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !(event.target.matches(".row") || event.target.id === "search")) return;
  const rows = [...byId("lists").querySelectorAll(".mails .row, .files .row")].filter((row) => row.offsetParent);
  const mails = rows.filter((row) => row.closest(".mails"));
  const list = event.target.closest(".files") ? rows.filter((row) => row.closest(".files")) : mails;
  const next = event.target.id === "search" ? mails[0] : list[list.indexOf(event.target) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
});

let depth = 0;
const has_files = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
addEventListener("dragenter", (event) => {
  if (!has_files(event)) return;
  depth += 1;
  app.classList.add("dragging");
});
addEventListener("dragleave", (event) => {
  if (!has_files(event)) return;
  depth -= 1;
  if (depth <= 0) app.classList.remove("dragging");
});
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  depth = 0;
  app.classList.remove("dragging");
  openFiles([...(event.dataTransfer?.files ?? [])]);
});

// A copy of the page can contain mails, in script elements of the class "mail" that are not run (docs/web.md).
const enclosed = [...document.querySelectorAll("script.mail")].map((script) => new File([bytesOfBase64(script.textContent)], script.dataset.name ?? "mail.eml"));
if (typeof WebAssembly === "undefined" || typeof Worker === "undefined" || typeof DecompressionStream === "undefined") complain(WORDS.noWorker);
else openFiles(enclosed).then(() => document.documentElement.setAttribute("data-ready", ""));
