// The npm package embody-mail: opens files with mail, in browsers, in Workers and in Node.js. docs/web.md describes it, and
// index.d.ts its types. The page embody.html contains the same file.

/** A sentence for a person: why a file or a mail cannot be shown. */
export class EmbodyError extends Error {
  name = "EmbodyError";
}

/** The module with its memory. A trap leaves the memory in an unknown state, so every later call fails too. */
export class Embody {
  #exports;
  #files = new FinalizationRegistry((pointer) => this.#exports.file_free(pointer));
  #mails = new FinalizationRegistry((pointer) => this.#exports.mail_free(pointer));

  constructor(exports) {
    this.#exports = exports;
  }

  /** Creates an instance of a compiled module, with a memory of its own. */
  static async of(module) {
    const instance = await WebAssembly.instantiate(module, {});
    return new Embody(instance.exports);
  }

  /** Opens a file with mail. Its format is recognised by its first bytes and its name. */
  open(bytes, name = "") {
    const pointer = this.#exports.file_open(this.#given(bytes), this.#text(name));
    const file = new MailFile(this.#handle(pointer), (found) => this.#mailOf(found));
    this.#files.register(file, pointer);
    Object.assign(file, this.#json(this.#exports.file_info(pointer)));
    return file;
  }

  /** Opens one mail, for example the content of a part that is a mail. */
  mail(bytes) {
    return this.#mailOf((exports) => exports.mail_new(this.#given(bytes), Date.now()));
  }

  #mailOf(make) {
    const pointer = make(this.#exports);
    const token = {};
    const close = () => {
      this.#mails.unregister(token);
      this.#exports.mail_free(pointer);
    };
    const mail = new Mail({ ...this.#handle(pointer), close });
    this.#mails.register(mail, pointer, token);
    mail.refresh();
    return mail;
  }

  #handle(pointer) {
    return {
      pointer,
      exports: this.#exports,
      given: (bytes) => this.#given(bytes),
      text: (string) => this.#text(string),
      taken: (buffer) => this.#taken(buffer),
      json: (buffer) => this.#json(buffer),
    };
  }

  // Returns a buffer in the memory of the module that contains the bytes. The function that receives the buffer frees it.
  #given(bytes) {
    const octets = ArrayBuffer.isView(bytes)
      ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      : new Uint8Array(bytes);
    const buffer = this.#exports.buffer_new(octets.length);
    // A view of the memory becomes invalid when the memory grows, so each access creates a new view.
    const address = this.#exports.buffer_data(buffer) >>> 0;
    new Uint8Array(this.#exports.memory.buffer, address, octets.length).set(octets);
    return buffer;
  }

  #text(string) {
    return this.#given(new TextEncoder().encode(string));
  }

  // Returns a copy of the bytes in a buffer that the module returned, and frees the buffer.
  #taken(buffer) {
    const length = this.#exports.buffer_length(buffer) >>> 0;
    const address = this.#exports.buffer_data(buffer) >>> 0;
    const bytes = new Uint8Array(this.#exports.memory.buffer, address, length).slice();
    this.#exports.buffer_free(buffer);
    return bytes;
  }

  #json(buffer) {
    const value = JSON.parse(new TextDecoder().decode(this.#taken(buffer)));
    if (value.error !== undefined) throw new EmbodyError(value.error);
    return value;
  }
}

/** A file with mail. Only `Embody.open` creates one. */
export class MailFile {
  #handle;
  #mailOf;

  constructor(handle, mailOf) {
    this.#handle = handle;
    this.#mailOf = mailOf;
  }

  summaries(from = 0, count = this.length) {
    const { exports, json, pointer } = this.#handle;
    return json(exports.file_summaries(pointer, from, count));
  }

  mail(index = 0) {
    const { pointer } = this.#handle;
    return this.#mailOf((exports) => exports.file_mail(pointer, index, Date.now()));
  }
}

/** One mail. Only `Embody.mail` and `MailFile.mail` create one. */
export class Mail {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  /** Reads the lists again. `fill` does this. */
  refresh() {
    const { exports, json, pointer } = this.#handle;
    Object.assign(this, json(exports.mail_info(pointer)));
  }

  /** Returns the first field with this name, decoded, or an empty string. */
  field(name) {
    const wanted = name.toLowerCase();
    return this.header.find((field) => field.name.toLowerCase() === wanted)?.value ?? "";
  }

  /** Returns the decoded content of a part, by its position in `parts`. */
  content(part) {
    const { exports, taken, pointer } = this.#handle;
    return taken(exports.mail_content(pointer, part));
  }

  /** Puts a file in the place of a reference, by its position in `references`. */
  fill(reference, bytes, mediaType = "") {
    const { exports, given, text, json, pointer } = this.#handle;
    json(exports.mail_fill(pointer, reference, given(bytes), text(mediaType)));
    this.refresh();
  }

  /** Returns the mail with everything that it contains or that was put into it. */
  repaired() {
    const { exports, taken, pointer } = this.#handle;
    return taken(exports.mail_repaired(pointer));
  }

  /** Returns the mail as it was opened, byte for byte. */
  original() {
    const { exports, taken, pointer } = this.#handle;
    return taken(exports.mail_original(pointer));
  }

  /** Frees the memory of the mail now, and not when the object is collected. The mail must not be used again. */
  close() {
    const { close } = this.#handle;
    this.#handle = undefined;
    close();
  }
}
