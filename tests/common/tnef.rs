//! Creates TNEF streams (MS-OXTNEF) as Outlook writes them, and compressed RTF (MS-OXRTFCP).
#![allow(dead_code, unreachable_pub)]

pub const SIGNATURE: [u8; 4] = [0x78, 0x9f, 0x3e, 0x22];
pub const APPOINTMENT: [u8; 16] = *b"\x02\x20\x06\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";
pub const MEETING: [u8; 16] = *b"\x90\xda\xd8\x6e\x0b\x45\x1b\x10\x98\xda\0\xaa\0\x3f\x13\x05";
const STRINGS: [u8; 16] = *b"\x29\x03\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";
pub const MESSAGE: [u8; 16] = *b"\x07\x03\x02\0\0\0\0\0\xc0\0\0\0\0\0\0\x46";

/// A TNEF stream, to which attributes are appended.
#[derive(Clone)]
pub struct Tnef(Vec<u8>);

impl Tnef {
    pub fn new() -> Self {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend([1, 0]);
        Self(bytes)
            .attribute(1, 0x0008_9006, &[0, 0, 1, 0])
            .attribute(1, 0x0006_9007, &[0xe4, 4, 0, 0, 0, 0, 0, 0])
    }

    /// Appends an attribute: level 1 is the message, level 2 an attachment.
    pub fn attribute(mut self, level: u8, number: u32, content: &[u8]) -> Self {
        self.0.push(level);
        self.0.extend(number.to_le_bytes());
        self.0.extend((content.len() as u32).to_le_bytes());
        self.0.extend(content);
        let sum = content
            .iter()
            .map(|byte| u16::from(*byte))
            .fold(0_u16, u16::wrapping_add);
        self.0.extend(sum.to_le_bytes());
        self
    }

    pub fn class(self, class: &str) -> Self {
        self.attribute(1, 0x0007_8008, &[class.as_bytes(), b"\0"].concat())
    }

    pub fn properties(self, properties: Properties) -> Self {
        self.attribute(1, 0x0006_9003, &properties.bytes())
    }

    pub fn recipients(self, recipients: &[Properties]) -> Self {
        let mut bytes = (recipients.len() as u32).to_le_bytes().to_vec();
        for recipient in recipients {
            bytes.extend(recipient.clone().bytes());
        }
        self.attribute(1, 0x0006_9004, &bytes)
    }

    pub fn attachment(self, content: Option<&[u8]>, properties: Properties) -> Self {
        let mut tnef = self.attribute(2, 0x0006_9002, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        if let Some(content) = content {
            tnef = tnef.attribute(2, 0x0006_800f, content);
        }
        tnef.attribute(2, 0x0006_9005, &properties.bytes())
    }

    /// Appends an attachment with a name.
    pub fn file(self, name: &str, content: &[u8]) -> Self {
        self.attachment(Some(content), Properties::new().text(0x3707, name))
    }

    pub fn bytes(self) -> Vec<u8> {
        self.0
    }
}

/// A list of MAPI properties.
#[derive(Clone)]
pub struct Properties(u32, Vec<u8>);

impl Properties {
    pub fn new() -> Self {
        Self(0, Vec::new())
    }

    fn push(mut self, kind: u16, id: u16, value: &[u8]) -> Self {
        self.0 += 1;
        self.1.extend(kind.to_le_bytes());
        self.1.extend(id.to_le_bytes());
        self.1.extend(value);
        self
    }

    fn sized(content: &[u8]) -> Vec<u8> {
        let mut bytes = 1_u32.to_le_bytes().to_vec();
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    pub fn long(self, id: u16, number: i32) -> Self {
        self.push(3, id, &number.to_le_bytes())
    }

    pub fn text(self, id: u16, text: &str) -> Self {
        let units = text.encode_utf16().chain([0]);
        let content: Vec<u8> = units.flat_map(u16::to_le_bytes).collect();
        self.push(0x1f, id, &Self::sized(&content))
    }

    pub fn narrow(self, id: u16, text: &[u8]) -> Self {
        self.push(0x1e, id, &Self::sized(&[text, b"\0"].concat()))
    }

    pub fn binary(self, id: u16, content: &[u8]) -> Self {
        self.push(0x102, id, &Self::sized(content))
    }

    pub fn object(self, id: u16, interface: [u8; 16], content: &[u8]) -> Self {
        self.push(0x0d, id, &Self::sized(&[&interface, content].concat()))
    }

    /// Appends a time in seconds since 1970.
    pub fn time(self, id: u16, seconds: i64) -> Self {
        self.push(0x40, id, &filetime(seconds))
    }

    pub fn named(self, kind: u16, set: [u8; 16], number: u32, value: &[u8]) -> Self {
        let mut name = set.to_vec();
        name.extend(0_u32.to_le_bytes());
        name.extend(number.to_le_bytes());
        name.extend(value);
        self.push(kind, 0x8000, &name)
    }

    pub fn named_binary(self, set: [u8; 16], number: u32, content: &[u8]) -> Self {
        self.named(0x102, set, number, &Self::sized(content))
    }

    pub fn named_time(self, set: [u8; 16], number: u32, seconds: i64) -> Self {
        self.named(0x40, set, number, &filetime(seconds))
    }

    pub fn categories(self, names: &str) -> Self {
        let name: Vec<u8> = "Keywords\0"
            .encode_utf16()
            .flat_map(u16::to_le_bytes)
            .collect();
        let mut value = STRINGS.to_vec();
        value.extend(1_u32.to_le_bytes());
        value.extend(Self::sized(&name).split_off(4));
        value.extend(Self::sized(names.as_bytes()));
        self.push(0x101e, 0x8001, &value)
    }

    pub fn bytes(self) -> Vec<u8> {
        [&self.0.to_le_bytes(), self.1.as_slice()].concat()
    }
}

fn filetime(seconds: i64) -> [u8; 8] {
    ((seconds + 11_644_473_600) * 10_000_000).to_le_bytes()
}

/// Returns RTF that encapsulates HTML, with one group for each tag.
pub fn from_html(html: &str) -> String {
    let mut rtf = "{\\rtf1\\ansi\\ansicpg1252\\fromhtml1 \\deff0{\\fonttbl{\\f0\\fswiss Arial;}}\n\\uc1\\pard\\plain ".to_owned();
    for piece in html.split_inclusive('>') {
        let (text, tag) = piece.split_at(piece.find('<').unwrap_or(piece.len()));
        rtf.push_str(text);
        if !tag.is_empty() {
            rtf.push_str(&format!(
                "{{\\*\\htmltag84 {tag}}}\\htmlrtf {{\\b \\htmlrtf0 \\htmlrtf }}\\htmlrtf0 "
            ));
        }
    }
    rtf + "}"
}

/// Returns compressed RTF in which every byte is a literal.
pub fn compressed(rtf: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    for chunk in rtf.chunks(8) {
        content.push(0);
        content.extend(chunk);
    }
    with_header(&content, rtf.len() as u32)
}

/// Returns compressed content with its header and its checksum.
pub fn with_header(content: &[u8], raw: u32) -> Vec<u8> {
    let mut crc = 0_u32;
    for byte in content {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                crc >> 1 ^ 0xedb8_8320
            } else {
                crc >> 1
            };
        }
    }
    let mut bytes = (content.len() as u32 + 12).to_le_bytes().to_vec();
    bytes.extend(raw.to_le_bytes());
    bytes.extend(b"LZFu");
    bytes.extend(crc.to_le_bytes());
    bytes.extend(content);
    bytes
}

/// Decodes hexadecimal digits.
pub fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pairs = digits.chunks(2).map(|pair| str::from_utf8(pair).unwrap());
    pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect()
}

/// The meeting in MS-OXOCAL 4.1.1.2, with the time zone in 4.1.4.
pub const SERIES: &str = "043004300B2001000000C0210000010000000000000032000000222000000C0000000000000001000000A096BC0C\
    01000000A096BC0C8020BC0C20ADBC0C0630000009300000580200007602000001003499BC0C5299BC0CF898BC0C1100220021005369\
    6D706C6520526563757272656E6365207769746820657863657074696F6E730800070033342F34313431000000000400000000000000\
    000000003499BC0C5299BC0CF898BC0C2100530069006D0070006C006500200052006500630075007200720065006E00630065002000\
    7700690074006800200065007800630065007000740069006F006E0073000700330034002F0034003100340031000000000000000000";
pub const PACIFIC: &str = "0201300002001500500061006300690066006900630020005300740061006E0064006100720064002000540069\
    006D006500020002013E000000D6070000000000000000000000000000E001000000000000C4FFFFFF00000A000000050002000000000000\
    000000040000000100020000000000000002013E000200D7070000000000000000000000000000E001000000000000C4FFFFFF00000B0000\
    000100020000000000000000000300000002000200000000000000";

/// 2007-03-26 10:00 in Los Angeles, whose summer time is UTC-7.
pub const MARCH: i64 = 1_174_928_400;

/// Returns an invitation to meetings that recur by a rule, with the property and content of their time zone.
pub fn series(start: i64, rule: &[u8], zone: Option<(u32, &[u8])>) -> Vec<u8> {
    let mut properties = Properties::new()
        .text(0x0037, "Simple Recurrence")
        .text(0x0042, "Anna")
        .text(0x5d02, "anna@example.org")
        .time(0x0039, 1_170_000_000)
        .named(0x0b, APPOINTMENT, 0x8223, &1_u32.to_le_bytes())
        .named_time(APPOINTMENT, 0x820d, start)
        .named_time(APPOINTMENT, 0x820e, start + 1800)
        .named_binary(APPOINTMENT, 0x8216, rule)
        .named_binary(MEETING, 0x0003, b"\xab\xcd");
    if let Some((number, zone)) = zone {
        properties = properties.named_binary(APPOINTMENT, number, zone);
    }
    Tnef::new()
        .class("IPM.Schedule.Meeting.Request")
        .properties(properties)
        .bytes()
}

/// Returns a delivery report about one recipient, with the message that it is about.
pub fn delivery_report() -> Vec<u8> {
    let recipient = Properties::new()
        .text(0x3001, "Carl")
        .text(0x39fe, "carl@example.org")
        .long(0x0c20, 511)
        .text(0x0c1b, "550 5.1.1 no such \u{fc}ser")
        .text(0x0c21, "mx.example.org");
    let message = Properties::new()
        .text(0x0037, "the first one")
        .text(0x1000, "Hello");
    let inner = Tnef::new().class("IPM.Note").properties(message);
    let attached = Properties::new()
        .long(0x3705, 5)
        .object(0x3701, MESSAGE, &inner.bytes());
    Tnef::new()
        .class("REPORT.IPM.Note.NDR")
        .properties(Properties::new().text(0x6820, "dns;mail.example.com"))
        .recipients(&[recipient])
        .attachment(None, attached)
        .bytes()
}

/// Returns a stream with a text, HTML in RTF, a picture that the HTML displays, an attachment, and a message with an
/// attachment.
pub fn usual() -> Vec<u8> {
    let inner = Tnef::new()
        .class("IPM.Note")
        .properties(
            Properties::new()
                .text(0x0037, "the inner one")
                .text(0x1000, "Inner text.")
                .text(0x0042, "Anna \u{c5}")
                .text(0x5d02, "anna@example.org")
                .time(0x0039, 1_000_000_000),
        )
        .file("inner.txt", b"inner file\r\n");
    let html = "<html><body>Hello <b>world</b> <img src=\"cid:p1@x\"></body></html>";
    Tnef::new()
        .class("IPM.Microsoft Mail.Note")
        .properties(
            Properties::new()
                .binary(0x1009, &compressed(from_html(html).as_bytes()))
                .categories("red"),
        )
        .attachment(
            Some(b"\x89PNG\r\n\x1a\npicture"),
            Properties::new()
                .text(0x3707, "p.png")
                .text(0x370e, "image/png")
                .text(0x3712, "p1@x"),
        )
        .file("r\u{e9}sum\u{e9}.pdf", b"%PDF-1.4 file")
        .attachment(
            Some(b"This attachment is a MAPI 1.0 embedded message"),
            Properties::new()
                .long(0x3705, 5)
                .text(0x3001, "the inner one")
                .object(0x3701, MESSAGE, &inner.bytes()),
        )
        .bytes()
}
