// Cleans the HTML of a mail before it is shown. This is one of several layers: the frame that shows the result also runs no
// script, has no origin, and may request nothing.
//
// The browser's own parser reads the HTML into a document that loads and runs nothing. Everything that is not in the lists is
// left out, and the rest is written into a new document.

const ELEMENTS = new Set(
  ("a abbr acronym address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del details dfn " +
    "dir div dl dt em figcaption figure font footer h1 h2 h3 h4 h5 h6 header hr i img ins kbd li main mark menu nav ol p pre q " +
    "rp rt ruby s samp section small span strike strong style sub summary sup table tbody td tfoot th thead time tr tt u ul var " +
    "wbr").split(" "),
);

// The content of these elements is left out too. The content of all other elements that are not in the list is kept.
const WITH_CONTENT = new Set(
  ("applet audio base canvas embed frame frameset head iframe link math meta noembed noframes object param plaintext script " +
    "select source svg template textarea title track video xml xmp").split(" "),
);

const ATTRIBUTES = new Set(
  ("align alt bgcolor border cellpadding cellspacing char charoff cite clear color cols colspan compact datetime dir face " +
    "height hspace lang noshade nowrap open reversed role rowspan rules size span start style summary title type valign value " +
    "vspace width").split(" "),
);

const DEEPEST = 250;
const MOST_NODES = 200000;
const PICTURE = /^data:image\/(?:png|jpeg|gif|webp|bmp|avif|x-icon|vnd\.microsoft\.icon);base64,/i;

// Returns CSS without anything that refers to content elsewhere. A url() keeps its place if `picture` knows its content.
function cleanCss(css, picture) {
  // An escape can hide a name such as url, so CSS with one keeps no function and no at-rule.
  if (/\\|\/\*/.test(css)) css = css.replace(/\\[0-9a-f]{1,6}\s?|\\/gi, "").replace(/\/\*[^]*?(?:\*\/|$)/g, "");
  return css
    .replace(/@(?:import|charset|namespace|font-face|property|layer|container)[^;{}]*(?:;|\{[^{}]*\}|$)/gi, "")
    .replace(/(?:image-set|image|cross-fade|element|src|expression|-webkit-image-set)\s*\(/gi, "none(")
    .replace(/url\s*\(\s*(?:"([^"]*)"|'([^']*)'|([^)"']*))\s*\)?/gi, (_, one, two, three) => {
      const found = picture((one ?? two ?? three ?? "").trim());
      return found ? `url("${found}")` : "none";
    })
    // The frame of a mail is white, also if the page is dark, so rules for dark windows could make its text white on white.
    .replace(/prefers-color-scheme/gi, "x-color-scheme")
    .replace(/behavior\s*:|-moz-binding\s*:/gi, "x-none:")
    .replace(/position\s*:\s*(?:fixed|sticky)/gi, "position:static");
}

// Style of the text in place of a picture. Mails hide text next to pictures, for example with a font size of 0, or make it white
// for a dark picture, so the style has all properties that such text needs.
const IN_PLACE = "display:inline-block;box-sizing:border-box;max-width:100%;padding:2px 6px;border:1px dashed #767676;border-radius:4px;background:#f4f4f4;font:13px/1.4 system-ui,sans-serif;text-indent:0;letter-spacing:normal;text-align:left;white-space:normal;";

// Returns the alternative text of a picture that is not shown, as nodes of a document. A picture without a size, which only tells
// the sender that the mail was opened, has no text.
function textOfPicture(picture, target) {
  const text = (picture.getAttribute("alt") ?? "").trim();
  const is_tiny = ["width", "height"].some((side) => /^\s*[0-2](?:px)?\s*$/.test(picture.getAttribute(side) ?? "")) || /(?:^|[;\s])(?:width|height)\s*:\s*[0-2]px|display\s*:\s*none/i.test(picture.getAttribute("style") ?? "");
  if (!text || is_tiny) return [];
  const made = target.createElement("span");
  made.setAttribute("style", IN_PLACE + (picture.closest("a[href]") ? "color:#14509b;text-decoration:underline" : "color:#333"));
  made.textContent = text;
  return [made, " "];
}

/**
 * Returns the HTML without scripts, forms, frames and references, or null if it is nested too deeply. `picture` returns a
 * data: URL for the URL of a picture that the mail contains, or an empty string. `titleOf` returns the title of a link by its
 * URL, which shows where the link leads.
 */
function cleanHtml(html, picture, titleOf = (url) => url) {
  const source = new DOMParser().parseFromString(html, "text/html");
  const target = document.implementation.createHTMLDocument("");
  const known = (url) => (PICTURE.test(url) ? url : picture(url));
  let nodes = 0;
  // A stack instead of recursion, because a mail can nest elements as deeply as the parser allows.
  const stack = [];
  const push = (from, to, depth) => {
    for (let child = from.lastChild; child; child = child.previousSibling) stack.push([child, to, depth]);
  };
  // A style element in the head is part of the mail; the rest of the head is not.
  for (const style of source.head?.querySelectorAll("style") ?? []) stack.push([style, target.body, 0]);
  stack.reverse();
  const frame = target.createElement("div");
  target.body.append(frame);
  const body = source.body;
  if (body) {
    const styles = stack.splice(0);
    push(body, frame, 0);
    stack.push(...styles);
    // The attributes of <body> set the colours of many mails.
    const bgcolor = body.getAttribute("bgcolor");
    const style = body.getAttribute("style");
    // The direction of Arabic and Hebrew text.
    const direction = body.getAttribute("dir") || source.documentElement.getAttribute("dir");
    if (direction) frame.setAttribute("dir", direction);
    if (bgcolor) frame.style.backgroundColor = bgcolor;
    if (style) frame.setAttribute("style", `${frame.getAttribute("style") ?? ""};${cleanCss(style, known)}`);
  }
  while (stack.length > 0) {
    const [node, parent, depth] = stack.pop();
    nodes += 1;
    if (nodes > MOST_NODES || depth > DEEPEST) return null;
    if (node.nodeType === Node.TEXT_NODE) {
      parent.append(node.data);
      continue;
    }
    if (node.nodeType !== Node.ELEMENT_NODE) continue;
    const name = node.localName;
    if (node.namespaceURI !== "http://www.w3.org/1999/xhtml" || WITH_CONTENT.has(name)) continue;
    if (!ELEMENTS.has(name)) {
      push(node, parent, depth + 1);
      continue;
    }
    const made = target.createElement(name);
    if (name === "style") {
      // "</" would end the element when the document is written as text.
      made.textContent = cleanCss(node.textContent, known).replaceAll("<", "");
      parent.append(made);
      continue;
    }
    for (const { name: attribute, value } of node.attributes) {
      if (attribute === "style") made.setAttribute("style", cleanCss(value, known));
      else if (attribute === "background") {
        const found = known(value.trim());
        if (found) made.style.backgroundImage = `url("${found}")`;
      } else if (attribute === "class" || attribute === "id") made.setAttribute(attribute, value);
      else if (ATTRIBUTES.has(attribute) && attribute !== "cite") made.setAttribute(attribute, value);
    }
    if (name === "img") {
      const found = known((node.getAttribute("src") ?? "").trim());
      if (!found) {
        parent.append(...textOfPicture(node, target));
        continue;
      }
      made.setAttribute("src", found);
    }
    if (name === "a") {
      const href = (node.getAttribute("href") ?? "").trim();
      if (/^(?:https?|mailto):/i.test(href)) {
        made.setAttribute("href", href);
        made.setAttribute("target", "_blank");
        made.setAttribute("rel", "noopener noreferrer");
        // The real target, which the text of the link can hide.
        made.setAttribute("title", titleOf(href));
      }
    }
    parent.append(made);
    push(node, made, depth + 1);
  }
  return target.body.innerHTML;
}

// Returns the text of cleaned HTML, with a line for each block.
function textOfHtml(html) {
  const source = new DOMParser().parseFromString(html, "text/html");
  for (const style of source.querySelectorAll("style, script, head, template")) style.remove();
  for (const cell of source.querySelectorAll("td, th")) cell.append(" ");
  const blocks = "p, div, br, tr, li, h1, h2, h3, h4, h5, h6, blockquote, pre, hr, table, ul, ol";
  for (const block of source.querySelectorAll(blocks)) block.after("\n");
  return (source.body?.textContent ?? "").replace(/[ \t]+/g, " ").replace(/\s*\n\s*\n\s*/g, "\n\n").trim();
}
