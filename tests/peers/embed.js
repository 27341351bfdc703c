// Embeds the pictures of the HTML in FILE with the package PACKAGE, and prints the new HTML, or a mail with it. URL is the
// base of relative URLs. The script `embed` in this directory runs this command: node embed.js PACKAGE FILE URL
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
// `true` means that pictures of every size are embedded. By default, the packages embed only small pictures.
const options = { images: true, svgs: true, links: true, scripts: false, relativeTo: url, strict: false };
if (name === "web-resource-inliner") {
  require(name).html({ ...options, fileContent: html }, (error, result) => (error ? trouble(error) : done(result)));
}
if (name === "juice") {
  require(name).juiceResources(html, { webResources: options }, (error, result) => (error ? trouble(error) : done(result)));
}
