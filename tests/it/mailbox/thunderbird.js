// Thunderbird ignores the first line of this configuration file, so the first line must be a comment.
// Thunderbird executes this file when it starts. The script prints the folders below Local Folders with their numbers of
// mails, and the displayed properties of each mail, as JSON, and ends Thunderbird.
const says = (what) => dump(`\nshown: ${JSON.stringify(what)}\n`);

async function main() {
  const { MailServices } = ChromeUtils.importESModule("resource:///modules/MailServices.sys.mjs");
  const root = MailServices.accounts.localFoldersServer.rootFolder;
  // Reading this property makes Thunderbird search the disk for folders.
  root.subFolders;
  for (const folder of root.descendants) {
    const status = await indexed(folder.QueryInterface(Ci.nsIMsgLocalMailFolder));
    const path = decodeURIComponent(folder.URI).split("Local Folders/")[1];
    says({ folder: path, status, mails: folder.getTotalMessages(false), unread: folder.getNumUnread(false) });
    for (const mail of [...folder.messages]) {
      says({
        in: path,
        subject: mail.mime2DecodedSubject,
        flags: mail.flags,
        tags: mail.getStringProperty("keywords"),
        text: await text(MailServices, mail),
      });
    }
  }
}

// Waits until Thunderbird has the index of a folder, and returns a status code: 0, or an error of the indexing.
function indexed(folder) {
  return new Promise((resolve) => {
    const listener = { OnStartRunningUrl() {}, OnStopRunningUrl: (url, code) => resolve(code) };
    try {
      folder.getDatabaseWithReparse(listener, null);
      resolve(0);
    } catch {
      // Thunderbird throws an exception if it must build the index first. It calls the listener when the index is complete.
    }
  });
}

// Returns the text of a mail without its header.
function text(MailServices, mail) {
  const uri = mail.folder.getUriForMsg(mail);
  return new Promise((resolve) => {
    let octets = "";
    const listener = {
      QueryInterface: ChromeUtils.generateQI(["nsIStreamListener", "nsIRequestObserver"]),
      onStartRequest() {},
      onDataAvailable(request, stream, offset, count) {
        const input = Cc["@mozilla.org/binaryinputstream;1"].createInstance(Ci.nsIBinaryInputStream);
        input.setInputStream(stream);
        octets += input.readBytes(count);
      },
      onStopRequest: () => resolve(octets.split(/\r?\n\r?\n/).slice(1).join("\n\n").trim()),
    };
    MailServices.messageServiceFromURI(uri).streamMessage(uri, listener, null, null, false, "", false);
  });
}

function begin() {
  main()
    .catch((error) => says({ error: String(error) }))
    .finally(() => Services.startup.quit(Ci.nsIAppStartup.eForceQuit));
}
Services.obs.addObserver(begin, "final-ui-startup");
