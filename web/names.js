// The names of people and files, as the page shows them.

// Number of people of a field that are shown. The page folds the others.
const FEW_PEOPLE = 5;
// Longest name of a file that is shown whole, in characters. Longer names are cut in the middle.
const LONGEST_NAME = 90;

// Returns the people of a decoded address field, such as From, as written. The decoded name of a person can contain a comma
// without quotation marks, so a piece without an address belongs to the next piece.
function peopleOf(value) {
  const people = [];
  // Between two separators, such as after a group, there is no person.
  const take = (piece) => {
    const person = piece.replace(/^[\s,;]+|\s+$/g, "");
    if (person) people.push(person);
  };
  let start = 0;
  let closing = "";
  let has_address = false;
  for (let at = 0; at < value.length; at += 1) {
    const character = value[at];
    if (character === "@" || (character === "/" && /^\/o=$/i.test(value.slice(at, at + 3)))) has_address = true;
    if (closing) {
      if (closing === '"' && character === "\\") at += 1;
      else if (character === closing) closing = "";
    } else if (character === '"') closing = '"';
    else if (character === "<") closing = ">";
    else if (has_address && (character === "," || character === ";")) {
      take(value.slice(start, at));
      start = at + 1;
      has_address = false;
    }
  }
  take(value.slice(start));
  return people;
}

// An address of Exchange that is not an internet address: as it is, or as Exchange and embody write it into mail.
const EXCHANGE = /^(?:\/o=|IMCEA[A-Z0-9]*-)/i;

// Returns { shown, raw } for a person. `raw` is the address of Exchange in place of which the name is shown, or null.
function personOf(person) {
  const [, name, address] = /^([^<]*)<([^<>]*)>$/.exec(person) ?? [null, "", person];
  // Quotation marks are only necessary around separators.
  const given = name.trim().replace(/^"([^",;<>\\]*)"$/, "$1");
  if (!EXCHANGE.test(address)) return { shown: address === person || !address ? person : given ? `${given} <${address}>` : address, raw: null };
  const [, type, local] = /^IMCEA([A-Z0-9]*)-([^@]*)/i.exec(address) ?? [];
  const slashes = /^EX$/i.test(type) ? local.replaceAll("_", "/") : local;
  const raw = local === undefined ? address : decoded(slashes.replaceAll("%", "%25").replace(/\+(?=[0-9A-F]{2})/gi, "%"));
  const common = /^.*\/cn=(?:[0-9a-f]{32}-)?([^/]+)$/i.exec(raw)?.[1] ?? raw;
  const plain = given.replace(/^"(.*)"$/, "$1");
  const shown = plain && !EXCHANGE.test(plain) ? plain : common;
  return { shown, raw: raw === shown ? null : raw };
}

const shownPeople = (value) => peopleOf(value).map((person) => personOf(person).shown).join(", ");

// Number of people of a field that are printed.
const FEW_PRINTED = 50;

function fewPeople(value) {
  const names = peopleOf(value).map((person) => personOf(person).shown);
  const few = names.slice(0, FEW_PRINTED).join(", ");
  return names.length > FEW_PRINTED ? `${few} ${WORDS.morePeople(names.length - FEW_PRINTED)}` : few;
}

// The name without the address, for a list.
function nameOf(value) {
  const shown = shownPeople(value);
  // Old mail has the name after the address, in parentheses. Archives of Mailman write "at" in place of the at sign.
  const behind = /^(?:[^\s()]+@[^\s()]+|[^\s()]+ at [^\s()]+)\s+\(([^()]+)\)$/.exec(shown);
  if (behind) return behind[1].trim();
  return shown.replace(/\s*<[^>]*>\s*$/, "").replace(/^"(.*)"$/, "$1") || shown;
}

// Returns the people of a field as children of an element: a few of them, the others folded, and the addresses of Exchange.
function peopleElements(value) {
  const people = peopleOf(value).map(personOf);
  const names = people.map(({ shown }) => shown);
  // To unfold one or two people costs more than to read them.
  const few = names.length > FEW_PEOPLE + 2 ? FEW_PEOPLE : names.length;
  const raw = [...new Set(people.map((person) => person.raw).filter(Boolean))];
  const folded = (summary, text) => element("details", {}, element("summary", { textContent: summary }), text);
  return [
    names.slice(0, few).join(", "),
    few < names.length ? folded(WORDS.morePeople(names.length - few), names.slice(few).join(", ")) : null,
    raw.length > 0 ? folded(WORDS.exchange(raw.length), raw.join(", ")) : null,
  ];
}

// Returns the name of a file as an element. A line does not break inside the end of the name, which contains the suffix.
function nameElement(name, className) {
  const dot = name.lastIndexOf(".");
  const suffix = dot > 0 && name.length - dot <= 9 ? [...name.slice(dot)] : [];
  const stem = [...name].slice(0, -suffix.length || undefined);
  const cut = stem.length > LONGEST_NAME ? [...stem.slice(0, 60), "…", ...stem.slice(-25)] : stem;
  const tail = [...cut.splice(-4), ...suffix];
  const pieces = [element("span", { textContent: cut.join("") }), element("span", { className: "tail", textContent: tail.join("") })];
  if (!className.includes("file")) return element("span", { className, title: name }, ...pieces);
  // In one line, the pieces are boxes, which a screen reader would read as two words.
  for (const piece of pieces) piece.setAttribute("aria-hidden", "true");
  return element("span", { className, title: name }, element("span", { className: "hidden", textContent: name }), ...pieces);
}
