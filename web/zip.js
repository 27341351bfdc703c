// Writes a zip archive without compression (APPNOTE.TXT of PKWARE). Attachments are compressed already, as a rule.

const CRC_TABLE = new Uint32Array(256).map((_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

function crc32(bytes) {
  let value = ~0;
  for (const byte of bytes) value = (value >>> 8) ^ CRC_TABLE[(value ^ byte) & 0xff];
  return ~value >>> 0;
}

// Returns names of which no two are equal, also on systems that ignore case: the second notes.txt becomes notes (2).txt.
function distinctNames(names) {
  const used = new Set();
  return names.map((name) => {
    const dot = name.lastIndexOf(".");
    const [stem, suffix] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
    let result = name;
    for (let number = 2; used.has(result.toLowerCase()); number += 1) result = `${stem} (${number})${suffix}`;
    used.add(result.toLowerCase());
    return result;
  });
}

/** Returns the archive as a list of pieces for a Blob. `files` is a list of { name, bytes }. */
function zipOf(files) {
  const pieces = [];
  const directory = [];
  let offset = 0;
  const names = distinctNames(files.map((file) => file.name));
  files.forEach(({ bytes }, index) => {
    const name = new TextEncoder().encode(names[index]);
    const fields = new DataView(new ArrayBuffer(26));
    // Version 2.0; names in UTF-8; stored; 1 January 1980, because a mail rarely says when a file was made.
    fields.setUint16(0, 20, true);
    fields.setUint16(2, 0x0800, true);
    fields.setUint16(8, 0x21, true);
    fields.setUint32(10, crc32(bytes), true);
    fields.setUint32(14, bytes.length, true);
    fields.setUint32(18, bytes.length, true);
    fields.setUint16(22, name.length, true);
    const common = new Uint8Array(fields.buffer);
    pieces.push(new Uint8Array([0x50, 0x4b, 3, 4]), common, name, bytes);
    const rest = new DataView(new ArrayBuffer(14));
    rest.setUint32(10, offset, true);
    directory.push(new Uint8Array([0x50, 0x4b, 1, 2, 20, 0]), common, new Uint8Array(rest.buffer), name);
    offset += 30 + name.length + bytes.length;
  });
  const size = directory.reduce((sum, piece) => sum + piece.length, 0);
  const end = new DataView(new ArrayBuffer(22));
  end.setUint32(0, 0x06054b50, true);
  end.setUint16(8, files.length, true);
  end.setUint16(10, files.length, true);
  end.setUint32(12, size, true);
  end.setUint32(16, offset, true);
  return [...pieces, ...directory, new Uint8Array(end.buffer)];
}
