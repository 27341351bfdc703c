// Makes a page self-contained with one of several packages, and prints the page or the mail. Called by ./embed
// as: node embed.js PACKAGE FILE URL
const { readFileSync } = require("fs");
const [name, file, url] = process.argv.slice(2);
const html = readFileSync(file, "utf8");
const done = (text) => process.stdout.write(text);
const trouble = (error) => {
  console.error("trouble: " + error.message);
  process.exitCode = 1;
};
if (name === "nodemailer") {
  const mail = { from: "a@example.org", to: "b@example.org", subject: "page", html, attachDataUrls: true };
  require(name)
    .createTransport({ streamTransport: true, buffer: true })
    .sendMail(mail)
    .then((sent) => done(sent.message), trouble);
}
// Larger limits than theirs: everything may be put in.
const options = { images: true, svgs: true, links: true, scripts: false, relativeTo: url, strict: false };
if (name === "web-resource-inliner") {
  require(name).html({ ...options, fileContent: html }, (error, result) => (error ? trouble(error) : done(result)));
}
if (name === "juice") {
  require(name).juiceResources(html, { webResources: options }, (error, result) => (error ? trouble(error) : done(result)));
}
