// Makes a mail with one attachment of that path, or HTML with relative links, or hands a mail on, and
// prints the mail. Called by ./check as: node nodemailer.js attach PATH | links BASE | raw FILE
const { createTransport } = require("nodemailer");
const [how, what] = process.argv.slice(2);
const mail = { from: "a@example.org", to: "b@example.org", subject: "check" };
if (how === "attach") mail.attachments = [{ filename: "hello.txt", path: what }];
if (how === "links") {
  mail.html = '<a href="next.html">next</a>';
  mail.headers = { "Content-Base": what };
}
if (how === "raw") mail.raw = require("fs").readFileSync(what);
createTransport({ streamTransport: true, buffer: true })
  .sendMail(mail)
  .then((sent) => process.stdout.write(sent.message))
  .catch((trouble) => console.log("trouble: " + trouble.message));
