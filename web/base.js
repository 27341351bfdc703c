// What all parts of the page use.

const byId = (id) => document.getElementById(id);
const app = byId("app");

/** Creates an element. Text is never parsed as HTML. */
function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key in made && key !== "list") made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const button = (text, onclick, properties = {}) => element("button", { type: "button", textContent: text, onclick, ...properties });

function bytesOfBase64(text) {
  const binary = atob(text.replace(/\s+/g, ""));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

// Returns a reason as a sentence: the module writes reasons in lower case and without a full stop.
const sentence = (reason) => `${reason.charAt(0).toUpperCase()}${reason.slice(1)}${/[.!?]$/.test(reason) ? "" : "."}`;

function say(text) {
  byId("status").textContent = text;
}

function complain(text) {
  const close = button("×", () => box.remove(), { "aria-label": WORDS.closeMessage });
  const box = element("div", { className: "problem" }, element("p", { textContent: text }), close);
  byId("problems").append(box);
}

/** An error that is about the file, and not about the page. */
class FileError extends Error {}
