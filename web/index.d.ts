// Types of the npm package embody-mail. tests/it/library/web.rs compares them with the Rust types.

/** A sentence for a person: why a file or a mail cannot be shown. */
export class EmbodyError extends Error {}

export type FileFormat = "eml" | "mbox" | "msg" | "tnef" | "pst";
export type PartRole = "body" | "picture" | "attachment" | "rich-text" | "message" | "note";
/** The form of a text that needs a key or another program. */
export type TextProtection = "smime" | "openpgp" | "rights" | "smime-signed";
export type ReferenceState = "included" | "filled" | "missing" | "remote" | "tracker" | "kept";

/** The fields of a mail for a list of mails. */
export interface MailSummary {
  from: string;
  to: string;
  subject: string;
  /** The time in the Date field, in seconds since 1970. */
  date: number | null;
  /** Size of the mail as it is in the file, in bytes. */
  size: number;
  /** The folder, and those above it from the outermost. */
  folder: string[];
  /** Why the item cannot be shown. */
  problem: string | null;
}

export interface HeaderView {
  name: string;
  value: string;
}

/** One text of a mail. The HTML is as the sender wrote it: clean it and block its requests before you show it. */
export interface BodyView {
  html: string | null;
  text: string | null;
}

export interface PartView {
  /** Number of the part, as in IMAP. */
  number: string;
  role: PartRole;
  name: string;
  media_type: string;
  /** Size of the decoded content, in bytes. */
  size: number;
  content_id: string | null;
  location: string | null;
  /** Position in `parts` of the mail inside the mail that contains this part. */
  inside: number | null;
}

export interface ReferenceView {
  part: string;
  /** The form of the reference, as in the reports of the program. */
  kind: string;
  state: ReferenceState;
  /** What happened, in a sentence for a person. */
  explanation: string;
  name: string | null;
  /** The URL of the content. It comes from the sender, so it can lead anywhere. */
  url: string | null;
  media_type: string | null;
  size: number | null;
  /** Whether `fill` can put a file in its place. */
  can_fill: boolean;
}

/** A link that a mail filter or a picture proxy replaced with a URL of its own server. */
export interface LinkView {
  part: string;
  /** The service, for example "safelinks". */
  service: string;
  /** The URL in the mail, which leads to the service. */
  url: string;
  /** The original URL. It comes from the sender, so it can lead anywhere. */
  target: string;
  /** Number of times that the link occurs. */
  count: number;
}

export class MailFile {
  private constructor();
  readonly format: FileFormat;
  /** Number of mails. */
  readonly length: number;
  /** What could not be read in the file. */
  readonly notes: string[];
  summaries(from?: number, count?: number): MailSummary[];
  /** Opens a mail, by its position from 0. Throws EmbodyError. */
  mail(index?: number): Mail;
}

export class Mail {
  private constructor();
  readonly header: HeaderView[];
  readonly date: number | null;
  readonly bodies: BodyView[];
  /** Why texts are not in `bodies`, although the mail contains them: they are encrypted, or inside a signature. */
  readonly protection: TextProtection | null;
  readonly parts: PartView[];
  readonly references: ReferenceView[];
  /** The texts and the repaired mail contain these links as the mail has them. */
  readonly wrapped_links: LinkView[];
  readonly notes: string[];
  /** The first field with this name, decoded, or an empty string. */
  field(name: string): string;
  /** The decoded content of a part, by its position in `parts`. */
  content(part: number): Uint8Array;
  /** Puts a file in the place of a reference, by its position in `references`. Throws EmbodyError. */
  fill(reference: number, bytes: ArrayBuffer | ArrayBufferView, mediaType?: string): void;
  /** The mail with everything that it contains or that was put into it. */
  repaired(): Uint8Array;
  /** The mail as it was opened, byte for byte. */
  original(): Uint8Array;
  /** Frees the memory of the mail now, and not when the object is collected. The mail must not be used again. */
  close(): void;
}

/** The module with a memory of its own, for programs that load it themselves. */
export class Embody {
  private constructor();
  static of(module: WebAssembly.Module): Promise<Embody>;
  open(bytes: ArrayBuffer | ArrayBufferView, name?: string): MailFile;
  /** Opens one mail, for example the content of a part that is a mail. */
  mail(bytes: ArrayBuffer | ArrayBufferView): Mail;
}

/** Opens a file with mail. Its format is recognised by its first bytes and its name. Throws EmbodyError. */
export function openMail(
  bytes: ArrayBuffer | ArrayBufferView,
  name?: string,
): Promise<MailFile>;
