// The mail: its fields, its text, its attachments, and what is missing in it.

// Total size of the pictures that are put into the HTML of one mail.
const MOST_PICTURES = 64 << 20;

function show(...children) {
  const place = byId("mail");
  place.replaceChildren(...children.filter((child) => child !== null));
  place.hidden = false;
  app.dataset.view = "mail";
}

async function openMail(file, index) {
  file.chosen = index;
  if (file === current) {
    for (const row of byId("mails").querySelectorAll("[data-index]")) {
      if (Number(row.dataset.index) === index) row.setAttribute("aria-current", "true");
      else row.removeAttribute("aria-current");
    }
  }
  say(WORDS.opening);
  const id = (file.mails += 1);
  try {
    const mail = await file.ask("mail", { id, index });
    // Another mail may have been chosen while this one was read.
    if (file !== current || file.chosen !== index) return file.ask("close", { id });
    await present({ file, id, mail, trail: [] });
  } catch (error) {
    if (file === current && file.chosen === index) {
      const subject = file.summaries[index]?.subject || WORDS.noSubject;
      show(backButton(), element("h1", { textContent: subject }), element("p", { className: "box", textContent: WORDS.cannotShow(error.message) }));
    }
  } finally {
    say("");
  }
}

const backButton = () => button(WORDS.back, () => { app.dataset.view = "list"; byId("mails").querySelector("[aria-current]")?.focus(); }, { className: "back" });

const field = (mail, name) => mail.header.find((it) => it.name.toLowerCase() === name)?.value ?? "";

// A winmail.dat is an attachment. The sender, and most often the recipients, are only in the mail that it was attached to.
const isAttachmentAlone = ({ mail, file, trail }) => file.format === "tnef" && trail.length === 0 && !field(mail, "from");

// Draws a mail. `trail` contains the mails around it, if it is a mail inside another mail.
async function present(opened) {
  const before = shownMail;
  shownMail = opened;
  const kept = [opened, ...opened.trail];
  for (const old of before ? [before, ...before.trail] : []) {
    if (!kept.includes(old)) old.file.ask("close", { id: old.id }).catch(() => {});
  }
  const { mail, trail } = opened;
  const subject = field(mail, "subject") || WORDS.noSubject;
  const fields = element("dl", { className: "fields" });
  for (const [word, name] of [[WORDS.from, "from"], [WORDS.to, "to"], [WORDS.cc, "cc"]]) {
    const value = field(mail, name);
    if (value) fields.append(element("dt", { textContent: word }), element("dd", {}, ...peopleElements(value)));
    else if (name === "from") fields.append(element("dt", { textContent: word }), element("dd", { className: "soft", textContent: isAttachmentAlone(opened) ? WORDS.noSenderHere : WORDS.noSender }));
  }
  const date = mail.date === null ? field(mail, "date") : longDate(mail.date);
  if (date) fields.append(element("dt", { textContent: WORDS.date }), element("dd", { textContent: date }));
  const all = element("dl", { className: "fields" });
  for (const { name, value } of mail.header) all.append(element("dt", { textContent: name }), element("dd", { textContent: value }));
  const files = mail.parts.map((part, index) => ({ part, index })).filter(({ part }) => part.inside === null && !["body", "note"].includes(part.role));
  const body = await bodyOf(opened);
  const pictures = files.filter(({ part }) => part.role === "picture");
  const richText = files.filter(({ part }) => part.role === "rich-text");
  const attachments = files.filter((file) => !pictures.includes(file) && !richText.includes(file));
  // Another mail may have been chosen while the pictures of this one were read.
  if (shownMail !== opened) return;
  show(
    backButton(),
    ...trail.slice(-1).map((outer) => button(WORDS.inMail(field(outer.mail, "subject") || WORDS.noSubject), () => present(outer))),
    element("h1", { textContent: subject }),
    fields.childElementCount > 0 ? fields : null,
    element("details", { className: "all" }, element("summary", { textContent: WORDS.allFields }), all),
    element(
      "div",
      { className: "tools" },
      button(WORDS.saveMail, () => saveMail(opened), { className: "primary", title: WORDS.saveMailHelp }),
      files.length > richText.length ? button(WORDS.saveZip, () => saveAll(opened, files)) : null,
      button(WORDS.print, () => printMail(opened)),
    ),
    missingBox(opened),
    notesOf(opened),
    body,
    attachments.length > 0 ? element("section", {}, element("h2", { textContent: WORDS.attachments(attachments.length) }), partsOf(opened, attachments)) : null,
    richText.length > 0 ? element("section", {}, element("h2", { textContent: WORDS.richText }), partsOf(opened, richText)) : null,
    pictures.length > 0 ? element("details", {}, element("summary", { textContent: WORDS.pictures(pictures.length) }), partsOf(opened, pictures)) : null,
  );
  byId("mail").focus({ preventScroll: true });
  document.documentElement.scrollTop = 0;
}

function missingBox(opened) {
  const references = opened.mail.references.map((reference, index) => ({ reference, index }));
  const missing = references.filter(({ reference }) => reference.state === "missing");
  if (missing.length === 0) {
    // RFC 2046 section 5.2.2: a mail that was too large for a server was sent in several mails.
    if (opened.mail.parts.some((part) => part.media_type === "message/partial")) {
      return element("p", { className: "box warn", textContent: WORDS.oneOfSeveral });
    }
    const empty = emptyFiles(opened.mail);
    if (empty.length > 0) {
      const why = /\.partial\.emlx$/i.test(opened.file.name) ? WORDS.keptByApple(empty.length) : WORDS.emptyHelp(empty.length);
      return element("section", { className: "box warn" }, element("h2", { textContent: WORDS.empty(empty.length) }), element("p", { textContent: why }));
    }
    const is_whole = opened.mail.header.length > 0 && opened.mail.notes.length + notesOfFile(opened.file).length === 0 && !opened.mail.protection && !isAttachmentAlone(opened) && references.every(({ reference }) => ["included", "filled"].includes(reference.state));
    return is_whole ? element("p", { className: "box good", textContent: WORDS.nothingMissing }) : null;
  }
  const rows = missing.map(({ reference, index }) => {
    const name = reference.name ?? WORDS.unnamed;
    const size = reference.size ? ` (${WORDS.size(reference.size)})` : "";
    return element(
      "li",
      { className: "reference" },
      element("div", {}, nameElement(name, "name"), size, element("div", { className: "url", textContent: reference.url ?? "" })),
      reference.can_fill ? button(WORDS.chooseFile, () => chooseFor(opened, index, name), { "aria-label": WORDS.chooseFor(name) }) : null,
      element("p", { className: "why", textContent: reference.explanation }),
    );
  });
  const fetchable = missing.map(({ reference }) => /^(https?|ftp):/i.exec(reference.url ?? "")?.[1].toLowerCase()).filter(Boolean);
  const schemes = new Set(fetchable);
  const command = `embody filter --follow all --fetch ${[...schemes].sort().join(",")} mail.eml > whole.eml`;
  return element(
    "section",
    { className: "box warn", id: "missing" },
    element("h2", { textContent: WORDS.missing(missing.length) }),
    element("p", { textContent: WORDS.missingHelp(missing.length) }),
    element("ul", {}, ...rows),
    schemes.size > 0 ? element("details", {}, element("summary", { textContent: WORDS.byProgram(fetchable.length) }), WORDS.command, element("code", { className: "command", textContent: command })) : null,
  );
}

// What could not be read of the file of a mail. The notes of a mailbox are in its list.
const notesOfFile = (file) => (file.length > 1 ? [] : file.notes);

// Parts that have a name but no content. The full copy of such a mail is often elsewhere.
const emptyFiles = (mail) => mail.parts.filter((part) => part.inside === null && part.size === 0 && ["attachment", "picture"].includes(part.role));

const serviceOf = ({ service }) => WORDS.services[service] ?? service;

// What a person may want to know, but need not do anything about.
function notesOf({ mail, file }) {
  const groups = [
    ["filled", WORDS.chosen],
    ["included", WORDS.hidden],
    ["remote", WORDS.remote],
    ["tracker", WORDS.trackers],
    ["kept", WORDS.kept],
  ];
  const boxes = groups.flatMap(([state, words]) => {
    const found = mail.references.filter((reference) => reference.state === state);
    if (found.length === 0) return [];
    const rows = found.slice(0, STEP).map(({ explanation, name, url }) => element("li", {}, explanation, ...(name || url ? [element("div", { className: "soft", textContent: name && !url?.startsWith("http") ? name : (url ?? name) })] : [])));
    // The mail may lack something that the person looks for. In a report, such as a bounce, it lacks nothing.
    const open = state === "kept" && !/^multipart\/report\b/i.test(field(mail, "content-type"));
    return [element("details", { open }, element("summary", { textContent: words(found.length) }), element("ul", {}, ...rows))];
  });
  const links = mail.wrapped_links;
  if (links.length > 0) {
    const rows = links.slice(0, STEP).map((link) => element("li", {}, element("span", { className: "target", textContent: link.target }), element("div", { className: "soft", textContent: WORDS.through(serviceOf(link)) })));
    boxes.push(element("details", {}, element("summary", { textContent: WORDS.wrapped(links.length) }), element("ul", {}, ...rows)));
  }
  const notes = [...mail.notes, ...notesOfFile(file)];
  if (notes.length > 0) boxes.push(element("details", { open: true }, element("summary", { textContent: WORDS.notes }), element("ul", {}, ...notes.slice(0, STEP).map((note) => element("li", { textContent: sentence(note) })))));
  return boxes.length > 0 ? element("div", { className: "notes" }, ...boxes) : null;
}

function base64Of(bytes) {
  let binary = "";
  for (let at = 0; at < bytes.length; at += 0x8000) binary += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(binary);
}

const SHOWN_PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/avif"]);

const decoded = (text) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

// Returns a function that returns the data: URL of a picture in the mail, by the URL in its HTML.
async function picturesOf({ file, id, mail }) {
  const wanted = mail.bodies.some((body) => body.html !== null);
  const known = new Map();
  let total = 0;
  for (const [index, part] of mail.parts.entries()) {
    if (!wanted || part.inside !== null || !SHOWN_PICTURES.has(part.media_type) || part.size === 0 || !(part.content_id || part.location)) continue;
    total += part.size;
    if (total > MOST_PICTURES) break;
    const url = `data:${part.media_type};base64,${base64Of(await file.ask("content", { id, part: index }))}`;
    if (part.location) known.set(part.location, url);
    if (part.content_id) known.set(`cid:${part.content_id}`, url);
  }
  return (url) => known.get(url) ?? known.get(/^cid:/i.test(url) ? `cid:${decoded(url.slice(4))}` : url) ?? "";
}

const FRAME_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'";
// Long URLs may break anywhere. Other words must not, because the columns of a table would otherwise shrink to one letter.
const FRAME_STYLE = "html{color-scheme:light}body{margin:1rem;font:16px/1.5 system-ui,sans-serif;overflow-wrap:break-word;color:#111;background:#fff}a{overflow-wrap:anywhere}img{max-width:100%;height:auto}table{max-width:100%}pre{white-space:pre-wrap}";

// Returns the text of a frame: cleaned HTML under a policy of its own.
const frameText = (html, title = "") =>
  `<!doctype html><html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${FRAME_POLICY}"><meta http-equiv="x-dns-prefetch-control" content="off"><meta name="referrer" content="no-referrer"><title>${escaped(title)}</title><style>${FRAME_STYLE}</style></head><body>${html}</body></html>`;

const escaped = (text) => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);

// Returns the bodies as { html, text }, cleaned. Either can be null.
async function cleanBodies(opened) {
  const picture = await picturesOf(opened);
  const wrapped = new Map(opened.mail.wrapped_links.map((link) => [link.url, link]));
  const titleOf = (url) => {
    const link = wrapped.get(url);
    return link ? WORDS.leadsTo(link.target, serviceOf(link)) : url;
  };
  return opened.mail.bodies.map(({ html, text }) => {
    const clean = html === null ? null : cleanHtml(html, picture, titleOf);
    const is_deep = html !== null && clean === null;
    return { html: clean, text: text ?? (html === null ? null : textOfHtml(clean ?? html)), is_deep };
  });
}

// Largest height of a frame, in pixels. Beyond it, the frame scrolls.
const TALLEST = 20_000;

// Smallest scale of HTML that is wider than the window.
const SMALLEST = 0.4;

// Returns a place with a frame that has the height of its text. HTML that is wider than the place, such as most newsletters on a
// phone, is scaled to the width of the place; the button `full` shows it in its full size, and the place scrolls then. The page
// cannot look into the frame, because the frame has an origin of its own, so the same text is measured in a second frame, which
// has the origin of the page. That frame runs no scripts either. A scroll bar would make its text narrower than that of the
// frame, so it has none.
function fitted(frame, full) {
  const place = element("div", { className: "frame" }, frame);
  const measure = element("iframe", { className: "measure", "aria-hidden": "true", tabIndex: -1, scrolling: "no", sandbox: "allow-same-origin", referrerpolicy: "no-referrer" });
  let width = 0;
  measure.onload = () => {
    const root = measure.contentDocument?.documentElement;
    const wide = root?.scrollWidth ?? 0;
    const is_wide = wide > width + 1;
    const is_full = full.getAttribute("aria-pressed") === "true";
    const scale = is_wide && !is_full ? Math.max(width / wide, SMALLEST) : 1;
    // The text is laid out again in the width that the frame gets.
    const shown = is_wide ? (is_full ? wide : width / scale) : width;
    measure.style.width = `${shown}px`;
    // Room for a scroll bar under wide text. A scroll bar that was necessary before would otherwise cause another one at the side.
    const height = Math.min((root?.scrollHeight ?? 0) + (is_wide ? 20 : 0), TALLEST);
    measure.remove();
    place.classList.toggle("wide", is_wide);
    full.hidden = !place.parentElement?.querySelector(".wide");
    place.classList.toggle("full", is_wide && is_full);
    // The arrow keys scroll a place that has the focus.
    for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", WORDS.body]]) {
      if (is_wide && is_full) place.setAttribute(name, value);
      else place.removeAttribute(name);
    }
    if (height === 0) return;
    Object.assign(frame.style, { width: `${shown}px`, height: `${height}px`, transform: scale === 1 ? "" : `scale(${scale})` });
    place.style.height = is_wide && is_full ? "" : `${Math.ceil(height * scale) + 2}px`;
  };
  const fit = () => {
    if (!place.isConnected) return;
    measure.style.width = `${width}px`;
    measure.srcdoc = frame.srcdoc;
    document.body.append(measure);
  };
  full.addEventListener("click", fit);
  // A frame that was too low at first keeps its scroll bar, although its text fits without one.
  frame.style.height = `${TALLEST}px`;
  // The observer calls at once, and again if the width changes.
  const observer = new ResizeObserver(() => {
    if (place.clientWidth === width) return;
    width = place.clientWidth;
    fit();
  });
  observer.observe(place);
  return place;
}

// Text without anything to see: also U+2800 and characters without a width, which some mails contain beside an attachment.
const BLANK = /^[\s\u00ad\u034f\u200b-\u200f\u2060\u2800\ufeff]*$/;

const isEmpty = ({ html, text }) => BLANK.test(text ?? "") && (html === null || (BLANK.test(textOfHtml(html)) && !/<(?:img|hr)\b|url\(/.test(html)));

async function bodyOf(opened) {
  const bodies = (opened.bodies = await cleanBodies(opened));
  const place = element("section", { className: "body", "aria-label": WORDS.body });
  const { mail } = opened;
  if (mail.protection) place.append(element("p", { className: "box warn", textContent: WORDS.protected[mail.protection] }));
  if (bodies.every(isEmpty)) {
    const is_rich = mail.parts.some(({ role, inside }) => role === "rich-text" && inside === null);
    if (!mail.protection) place.append(element("p", { className: "soft", textContent: is_rich ? WORDS.onlyRichText : WORDS.noText }));
    return place;
  }
  const pieces = element("div", { className: "body" });
  const full = button(WORDS.fullSize, () => full.setAttribute("aria-pressed", String(full.getAttribute("aria-pressed") === "false")), { "aria-pressed": "false", hidden: true });
  const draw = (as_text) => {
    // Only a frame that is too wide shows the button again.
    full.hidden = true;
    pieces.replaceChildren(
      ...bodies.filter((text) => !isEmpty(text)).map(({ html, text, is_deep }) => {
        if (html === null || as_text) return element("pre", { textContent: is_deep ? `${WORDS.deep}\n\n${text ?? ""}` : (text ?? "").replace(/^(?:[ \t]*\r?\n)+/, "").trimEnd() });
        // No scripts, no forms and no origin. Links open in a new window, when a person follows them.
        const frame = element("iframe", { title: WORDS.body, srcdoc: frameText(html), sandbox: "allow-popups allow-popups-to-escape-sandbox", referrerpolicy: "no-referrer" });
        return fitted(frame, full);
      }),
    );
  };
  const views = element("div", { className: "views", role: "group", "aria-label": WORDS.view });
  if (bodies.some(({ html, text }) => html !== null && text)) {
    const buttons = [WORDS.html, WORDS.text].map((word, index) =>
      button(word, () => {
        buttons.forEach((it, number) => it.setAttribute("aria-pressed", String(number === index)));
        draw(index === 1);
      }, { "aria-pressed": String(index === 0) }),
    );
    views.append(...buttons);
  }
  views.append(full);
  place.append(views);
  draw(false);
  place.append(pieces);
  return place;
}

function partsOf(opened, files) {
  const { file, id } = opened;
  const cards = files.map(({ part, index }) => {
    const suffix = /\.([a-z0-9]{1,5})$/i.exec(part.name)?.[1] ?? "";
    const icon = element("div", { className: "icon", "aria-hidden": "true", textContent: suffix });
    if (SHOWN_PICTURES.has(part.media_type) && part.size < MOST_PICTURES) {
      file.ask("content", { id, part: index }).then((bytes) => {
        const url = URL.createObjectURL(new Blob([bytes], { type: part.media_type }));
        const image = element("img", { alt: "", src: url });
        image.onload = () => {
          URL.revokeObjectURL(url);
          icon.replaceChildren(image);
        };
        // A damaged picture: the suffix stays.
        image.onerror = () => URL.revokeObjectURL(url);
      }, () => {});
    }
    return element(
      "li",
      { className: "part" },
      icon,
      element("div", {}, nameElement(part.name, "name"), element("span", { className: "soft", textContent: WORDS.size(part.size) })),
      element(
        "div",
        { className: "buttons" },
        part.role === "message" || (part.size > 0 && /\.eml$/i.test(part.name)) ? button(WORDS.openMail, () => openInner(opened, index), { "aria-label": WORDS.openFile(part.name) }) : null,
        button(WORDS.save, () => savePart(opened, part, index), { "aria-label": WORDS.saveFile(part.name) }),
      ),
    );
  });
  return element("ul", { className: "parts" }, ...cards);
}

async function openInner(outer, part) {
  const { file } = outer;
  const id = (file.mails += 1);
  try {
    const mail = await file.ask("inner", { id, outer: outer.id, part });
    await present({ file, id, mail, trail: [...outer.trail, outer] });
  } catch (error) {
    complain(error.message);
  }
}

function save(pieces, name, type = "application/octet-stream") {
  const url = URL.createObjectURL(new Blob(pieces, { type }));
  element("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const fileName = (subject) => (subject.replace(/[\u0000-\u001f/\\:*?"<>|\u202a-\u202e\u2066-\u2069]/g, "_").replace(/^[.\s]+|[.\s]+$/g, "").slice(0, 100) || "mail");

async function guarded(work) {
  try {
    await work();
  } catch (error) {
    complain(error.message);
  }
}

const saveMail = ({ file, id, mail }) => guarded(async () => save([await file.ask("repaired", { id })], `${fileName(field(mail, "subject"))}.eml`, "message/rfc822"));

const savePart = ({ file, id }, part, index) => guarded(async () => save([await file.ask("content", { id, part: index })], part.name));

const saveAll = ({ file, id, mail }, parts) =>
  guarded(async () => {
    const contents = [];
    for (const { part, index } of parts) contents.push({ name: part.name, bytes: await file.ask("content", { id, part: index }) });
    save(zipOf(contents), `${fileName(field(mail, "subject"))}.zip`, "application/zip");
  });

// Prints the mail from a frame that runs no scripts either. It has the origin of the page, so that the page can print it.
function printMail({ mail, bodies }) {
  const rows = ["From", "To", "Cc", "Date"].map((name) => [name, name === "Date" ? field(mail, "date") : fewPeople(field(mail, name.toLowerCase()))]).filter(([, value]) => value);
  const head = `<h2 style="unicode-bidi:plaintext;text-align:start">${escaped(field(mail, "subject") || WORDS.noSubject)}</h2><table>${rows.map(([name, value]) => `<tr><td style="color:#555;vertical-align:top;padding-right:1em;white-space:nowrap">${name}</td><td>${escaped(value)}</td></tr>`).join("")}</table><hr>`;
  const text = bodies.map(({ html, text: plain }) => html ?? `<pre style="unicode-bidi:plaintext;text-align:start">${escaped(plain ?? "")}</pre>`).join("<hr>");
  const names = mail.parts.filter((part) => part.inside === null && part.role === "attachment").map((part) => `<li>${escaped(part.name)}</li>`);
  const foot = names.length > 0 ? `<hr><p>${escaped(WORDS.attachments(names.length))}</p><ul>${names.join("")}</ul>` : "";
  const frame = element("iframe", { className: "hidden", title: WORDS.print, sandbox: "allow-same-origin allow-modals", srcdoc: frameText(head + text + foot, field(mail, "subject")) });
  frame.onload = () => {
    frame.contentWindow.print();
    setTimeout(() => frame.remove(), 1000);
  };
  document.body.append(frame);
}

let fillFor = null;

function chooseFor(opened, reference, name) {
  fillFor = { opened, reference, name };
  byId("filler").value = "";
  byId("filler").click();
}

byId("filler").onchange = () =>
  guarded(async () => {
    const { opened, reference } = fillFor;
    const [source] = byId("filler").files;
    if (!source) return;
    const bytes = await source.arrayBuffer();
    const { file, id } = opened;
    try {
      opened.mail = await file.ask("fill", { id, reference, bytes, type: source.type }, [bytes]);
    } catch (error) {
      complain(WORDS.notFilled(error.message));
      return;
    }
    if (shownMail === opened) await present(opened);
    say(WORDS.filled(source.name));
  });
