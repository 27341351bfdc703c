// All words of the page. Another language is another column: an object with the same keys. A function receives values and
// returns the text, because languages differ in the order of words and in their plurals.

const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

const LANGUAGES = {
  en: {
    title: "embody: open a mail",
    open: "Open files",
    drop: "Drop a mail here, or choose a file",
    choose: "Choose files",
    formats: "It opens .eml, .msg, winmail.dat, .mbox, .mbox.gz and .pst, and shows what is missing in a mail.",
    privacy: "Nothing leaves this computer: the page has no access to the network.",
    privacyCheck: "How to check it",
    privacyHow:
      "Disconnect from the network and open a mail: everything works. Or open the developer tools of the browser (F12), choose Network, and open a mail: the list stays empty. The first lines of the file contain the rule that makes the browser block all requests (Content-Security-Policy: default-src 'none').",
    files: "Files",
    search: "Search sender, recipient, subject",
    loading: (name) => `Reading ${name} …`,
    opening: "Opening the mail …",
    tooLong: (name) => `${name} took too long, so it was stopped. The program embody can read it without a time limit.`,
    crashed: (name) => `${name} could not be read: the reader stopped. Please report it, if the file is not secret.`,
    cannotOpen: (name, why) => `${name} cannot be opened: ${why}.`,
    cannotShow: (why) => `This item cannot be shown: ${why}.`,
    close: (name) => `Close ${name}`,
    found: (count) => counted(count, "mail", "mails"),
    foundOf: (count, all) => count ? `${count.toLocaleString("en")} of ${counted(all, "mail", "mails")}` : "No mail matches the search",
    more: (count) => `Show ${count.toLocaleString("en")} more`,
    chooseMail: "Choose a mail from the list.",
    empty: "The mailbox contains no mail.",
    back: "Back to the list",
    noSubject: "(no subject)",
    noSender: "(no sender)",
    from: "From",
    to: "To",
    cc: "Cc",
    date: "Date",
    allFields: "All fields of the header",
    saveMail: "Save the mail",
    saveMailHelp: "Saves the mail as .eml, with everything that was found or chosen",
    saveZip: "Save all attachments",
    print: "Print",
    oneOfSeveral: "This mail is only one part of a mail that was sent in several mails. The other parts are in the other mails.",
    nothingMissing: "Nothing is missing in this mail.",
    missing: (count) => `${counted(count, "file is", "files are")} missing`,
    missingHelp: "The mail only says where these files are. If you have a file, choose it, and save the mail with it.",
    chooseFile: "Choose the file",
    chooseFor: (name) => `Choose the file for ${name}`,
    byProgram: "The program embody can fetch files that still exist:",
    filled: (name) => `${name} is in the mail now. Save the mail to keep it.`,
    notFilled: (why) => `${why}.`,
    hidden: (count) => `${counted(count, "thing was", "things were")} hidden in the mail, and ${count === 1 ? "is" : "are"} shown`,
    chosen: (count) => counted(count, "chosen file", "chosen files"),
    kept: (count) => `${counted(count, "part stays", "parts stay")} as ${count === 1 ? "it is" : "they are"}`,
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
    noText: "The mail contains no text.",
    deep: "The formatted text is nested too deeply, so only the plain text is shown.",
    pictures: (count) => `${counted(count, "picture", "pictures")} in the text`,
    attachments: (count) => counted(count, "attachment", "attachments"),
    save: "Save",
    saveFile: (name) => `Save ${name}`,
    openMail: "Open",
    openFile: (name) => `Open ${name}`,
    inMail: (subject) => `In: ${subject}`,
    unnamed: "a file",
    about: "About this page",
    version: (version, date) => `embody ${version}, ${date}. Free software under the MIT or the Apache 2.0 license.`,
    licences: "Licenses of the parts of this page",
    noWorker: "This browser cannot run the page. Use a current version of Firefox, Chrome, Edge or Safari.",
    size: (bytes) => {
      if (bytes < 1000) return `${bytes} bytes`;
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
