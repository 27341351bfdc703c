// Makes a mail with nodemailer, and prints the mail. The script `check` in this directory runs one of these commands:
//   node nodemailer.js attach PATH    makes a mail with one attachment, whose content is at PATH (a URL or a file)
//   node nodemailer.js links BASE     makes a mail of HTML with a relative link, and with BASE as its Content-Base
//   node nodemailer.js raw FILE       passes the mail in FILE to nodemailer as a complete mail
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
