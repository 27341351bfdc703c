// Thunderbird ignores the first line of this configuration file, so the first line must be a comment.
// Thunderbird executes this file when it starts. The script logs in to the IMAP account of the profile, opens the folder
// Archive, prints the displayed properties of each message as JSON, and ends Thunderbird.
const says = (what) => dump(`\nshown: ${JSON.stringify(what)}\n`);

async function main() {
  const { MailServices } = ChromeUtils.importESModule("resource:///modules/MailServices.sys.mjs");
  const { setTimeout } = ChromeUtils.importESModule("resource://gre/modules/Timer.sys.mjs");
  const server = MailServices.accounts.allServers.find((each) => each.type == "imap");
  server.password = "secret";
  const archive = () => server.rootFolder.descendants.find((each) => each.name == "Archive");
  while (!archive()) {
    server.performExpand(null);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  const folder = archive().QueryInterface(Ci.nsIMsgImapMailFolder);
  const status = await new Promise((resolve) =>
    folder.updateFolderWithListener(null, {
      OnStartRunningUrl() {},
      OnStopRunningUrl: (url, code) => resolve(code),
    }),
  );
  if (status) {
    throw new Error(`the folder cannot be read: ${status}`);
  }
  for (const message of [...folder.messages]) {
    const isReply = message.threadParent != 0xffffffff;
    // Thunderbird adds these fields before the first field of a message that it has stored. They are removed here, so that
    // size and digest are those of the message on the server.
    const octets = (await content(MailServices, message)).replace(/^(X-Mozilla-(Status2?|Keys):.*\r?\n)+/, "");
    says({
      id: message.messageId,
      parent: isReply ? folder.msgDatabase.getMsgHdrForKey(message.threadParent).messageId : "",
      references: Array.from({ length: message.numReferences }, (_, at) => message.getStringReference(at)),
      subject: message.mime2DecodedSubject,
      author: message.mime2DecodedAuthor,
      // The bits of nsMsgMessageFlags for read, replied, marked and forwarded.
      flags: message.flags & 0x1007,
      keywords: message.getStringProperty("keywords").split(" ").sort(),
      size: octets.length,
      sha256: sha256(octets),
    });
  }
}

// Returns the message as a string in which each character is one byte.
function content(MailServices, message) {
  const uri = message.folder.getUriForMsg(message);
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
      onStopRequest: () => resolve(octets),
    };
    MailServices.messageServiceFromURI(uri).streamMessage(uri, listener, null, null, false, "", false);
  });
}

// Returns the SHA-256 of such a string in base64.
function sha256(octets) {
  const bytes = Uint8Array.from(octets, (each) => each.charCodeAt(0));
  const hash = Cc["@mozilla.org/security/hash;1"].createInstance(Ci.nsICryptoHash);
  hash.init(Ci.nsICryptoHash.SHA256);
  hash.update(bytes, bytes.length);
  return hash.finish(true);
}

function begin() {
  main()
    .catch((error) => says({ error: String(error) }))
    .finally(() => Services.startup.quit(Ci.nsIAppStartup.eForceQuit));
}
Services.obs.addObserver(begin, "final-ui-startup");
