// All words of the page. Another language is another column: an object with the same keys. A function receives values and
// returns the text, because languages differ in the order of words and in their plurals.

const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

const LANGUAGES = {
  en: {
    title: "embody: open a mail",
    open: "Open files",
    drop: "Drop a mail here, or choose a file",
    choose: "Choose files",
    formats: "This page opens .eml, .msg, winmail.dat, .mbox, .mbox.gz and .pst files, and shows what is missing in a mail.",
    privacy: "Nothing leaves this computer: the page has no access to the network.",
    privacyCheck: "How to check this",
    privacyHow:
      "Disconnect the computer from the network and open a mail: the page works as before. Or open the developer tools of the browser (F12), choose Network, and open a mail: the list stays empty. The first lines of the file contain the rule that makes the browser block all requests (Content-Security-Policy: default-src 'none').",
    files: "Files",
    search: "Search sender, recipient, subject",
    loading: (name) => `Reading ${name} …`,
    opening: "Opening the mail …",
    tooLong: (name) => `${name} was not read to its end, because reading it took too long. The program embody reads the file without a time limit.`,
    crashed: (name) => `${name} could not be read, because this page has a defect. Please report the defect, with the file if it is not secret.`,
    cannotOpen: (name, why) => `${name} cannot be opened: ${why}.`,
    cannotShow: (why) => `This item cannot be shown: ${why}.`,
    close: (name) => `Close ${name}`,
    closeMessage: "Close this message",
    found: (count) => counted(count, "mail", "mails"),
    foundOf: (count, all) => count ? `${count.toLocaleString("en")} of ${counted(all, "mail", "mails")}` : "No mail matches the search",
    more: (count) => `Show ${count.toLocaleString("en")} more`,
    chooseMail: "Choose a mail from the list.",
    empty: "The mailbox contains no mail.",
    back: "Back to the list",
    noSubject: "(no subject)",
    noSender: "(no sender)",
    noSenderHere: "Not in this file. A winmail.dat is only an attachment: the sender is in the mail that it came with.",
    morePeople: (count) => `and ${count.toLocaleString("en")} more`,
    exchange: (count) => (count === 1 ? "Exchange address" : "Exchange addresses"),
    from: "From",
    to: "To",
    cc: "Cc",
    date: "Date",
    allFields: "All fields of the header",
    saveMail: "Save the mail",
    saveMailHelp: "Saves the mail as an .eml file, with the files that you chose",
    saveZip: "Save all attachments",
    print: "Print",
    oneOfSeveral: "This mail is only one part of a large mail, which was sent in several mails. Most often, the other mails have the same subject.",
    nothingMissing: "Nothing is missing in this mail.",
    missing: (count) => `${counted(count, "file is", "files are")} missing`,
    missingHelp: (count) => (count === 1 ? "The mail contains only a link or a note in place of this file. If you have the file, choose it, and then save the mail." : "The mail contains only links or notes in place of these files. If you have one of the files, choose it, and then save the mail."),
    chooseFile: "Choose the file",
    chooseFor: (name) => `Choose the file for ${name}`,
    byProgram: (count) => `The program embody can fetch ${count === 1 ? "the file, if it still exists" : "the files that still exist"}`,
    command: "Save the mail as mail.eml, and run this command:",
    filled: (name) => `The mail now contains ${name}. Save the mail to keep the file.`,
    notFilled: (why) => sentence(why),
    hidden: (count) => counted(count, "hidden item is shown", "hidden items are shown"),
    chosen: (count) => counted(count, "chosen file", "chosen files"),
    kept: (count) => counted(count, "part of the mail was not changed", "parts of the mail were not changed"),
    remote: (count) => `${counted(count, "picture", "pictures")} from the web ${count === 1 ? "was" : "were"} not loaded`,
    trackers: (count) => `${counted(count, "tracker was", "trackers were")} not loaded`,
    wrapped: (count) => `${counted(count, "link leads", "links lead")} through another server`,
    through: (service) => `The link in the mail leads to ${service} first.`,
    leadsTo: (target, service) => `${target} (through ${service})`,
    services: {
      safelinks: "Microsoft Safe Links",
      proofpoint: "Proofpoint",
      "gmail-proxy": "the picture proxy of Gmail",
      yahoo: "Yahoo",
      mimecast: "Mimecast",
      barracuda: "Barracuda",
      google: "Google",
    },
    notes: "What could not be read",
    html: "Formatted",
    text: "Plain text",
    view: "View of the text",
    body: "Text of the mail",
    fullSize: "Full size",
    noText: "The mail contains no text.",
    protected: {
      smime: "The text of this mail is encrypted (S/MIME), so this page cannot show it. Save the mail, and open it in the mail program that has the recipient's certificate with its private key.",
      openpgp: "The text of this mail is encrypted (OpenPGP), so this page cannot show it. Save the mail, and open it in the mail program that has the recipient's private key.",
      rights: "The text of this mail is encrypted by Microsoft, so this page cannot show it. Save the mail, and open it in Outlook with the account of the recipient.",
      "smime-signed": "The text of this mail is inside its signature (S/MIME), which this page cannot open. The text is not encrypted: save the mail, and open it in a mail program such as Outlook, Thunderbird or Apple Mail.",
    },
    richText: "The text with its formatting",
    onlyRichText: "The mail contains no plain text. The file message.rtf can contain formatted text: save the file, and open it with a word processor.",
    deep: "The formatted text is nested too deeply, so only the plain text is shown.",
    pictures: (count) => `${counted(count, "picture", "pictures")} in the text`,
    attachments: (count) => counted(count, "attachment", "attachments"),
    save: "Save",
    saveFile: (name) => `Save ${name}`,
    openMail: "Open",
    openFile: (name) => `Open ${name}`,
    inMail: (subject) => `In: ${subject}`,
    unnamed: "file without a name",
    about: "About this page",
    version: (version, date) => `embody ${version}, ${date}. Free software under the MIT or the Apache 2.0 license.`,
    licences: "Licenses of the parts of this page",
    noWorker: "This browser cannot run the page. Use a current version of Firefox, Chrome, Edge or Safari.",
    size: (bytes) => {
      if (bytes < 1000) return counted(bytes, "byte", "bytes");
      const units = ["KB", "MB", "GB"];
      let unit = 0;
      let value = bytes / 1000;
      while (value >= 1000 && unit < 2) {
        value /= 1000;
        unit += 1;
      }
      return `${value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 })} ${units[unit]}`;
    },
  },
};

const WORDS = LANGUAGES.en;
