// The Worker of one file: it has an instance of the module of its own, so that files never mix and a defect or a time limit
// ends only one of them. The page contains embody.js before this text.

let embody;
let file;
const mails = new Map();

// The page can ask about a mail that it has closed, because it asks for pictures one after the other.
const opened = (id) => {
  const mail = mails.get(id);
  if (!mail) throw new EmbodyError("the mail was closed");
  return mail;
};

const shown = (id, mail) => {
  mails.set(id, mail);
  const { header, date, bodies, protection, parts, references, wrapped_links, notes } = mail;
  return { header, date, bodies, protection, parts, references, wrapped_links, notes };
};

const tasks = {
  async open({ module, bytes, name }) {
    embody = await Embody.of(module);
    file = embody.open(bytes, name);
    return { format: file.format, length: file.length, notes: file.notes };
  },
  summaries: ({ from, count }) => file.summaries(from, count),
  mail: ({ id, index }) => shown(id, file.mail(index)),
  inner: ({ id, outer, part }) => shown(id, embody.mail(opened(outer).content(part))),
  content: ({ id, part }) => opened(id).content(part),
  repaired: ({ id }) => opened(id).repaired(),
  fill({ id, reference, bytes, type }) {
    opened(id).fill(reference, bytes, type);
    return shown(id, opened(id));
  },
  close({ id }) {
    mails.get(id)?.close();
    mails.delete(id);
  },
};

onmessage = async ({ data: { number, task, ...values } }) => {
  try {
    const result = await tasks[task](values);
    const moved = result instanceof Uint8Array ? [result.buffer] : [];
    postMessage({ number, result }, moved);
  } catch (error) {
    // An EmbodyError is about the file. Anything else is a trap, after which the module must not be used again.
    postMessage({ number, error: error.message, is_trap: !(error instanceof EmbodyError) });
  }
};
