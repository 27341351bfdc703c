// Thunderbird passes over the first line of its configuration. It reads this one as it starts: then it says which folders are
// below Local Folders, how much mail each shows, and the state of each mail, and ends.
const says = (what) => dump(`\nshown: ${JSON.stringify(what)}\n`);

async function main() {
  const { MailServices } = ChromeUtils.importESModule("resource:///modules/MailServices.sys.mjs");
  const root = MailServices.accounts.localFoldersServer.rootFolder;
  // Finds the folders on the disk.
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

// Resolves when the index of a folder is made.
function indexed(folder) {
  return new Promise((resolve) => {
    const listener = { OnStartRunningUrl() {}, OnStopRunningUrl: (url, code) => resolve(code) };
    try {
      folder.getDatabaseWithReparse(listener, null);
      resolve(0);
    } catch {
      // It is being made, and the listener hears of the end.
    }
  });
}

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
