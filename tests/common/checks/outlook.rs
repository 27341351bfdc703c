//! Checks that Outlook files with changed bytes can be read, and that the result has a limited size, is the same
//! each time, and is 7-bit text.
//!
//! The input lists the bytes to change in a valid file. Almost any other input would already fail at the first bytes.

use std::sync::OnceLock;

use embody::internals::outlook::source::mail;
use embody::internals::outlook::{msg, pst};

#[path = "../pst.rs"]
mod sample;

use sample::{Form, Message, Pst};

/// Valid files: two messages, and two mailboxes with 32-bit and 64-bit addresses.
fn files() -> &'static [Vec<u8>; 4] {
    static FILES: OnceLock<[Vec<u8>; 4]> = OnceLock::new();
    FILES.get_or_init(|| {
        let mailbox = |version, encoding| {
            let mut pst = Pst::in_memory(Form { version, encoding });
            let inner = Message::mail("inner", "text").with_file("b.txt", b"b");
            let mail = Message::mail("outer", "text")
                .with_file("a.bin", &[1; 20_000])
                .with_message(inner);
            pst.folder(None, "Inbox", &[mail, Message::mail("x", "y")]);
            pst.bytes()
        };
        [
            include_bytes!("../../it/mailbox/outlook/simple.msg").to_vec(),
            include_bytes!("../../it/mailbox/outlook/embedded.msg").to_vec(),
            mailbox(15, 2),
            mailbox(23, 1),
        ]
    })
}

pub fn check(data: &[u8]) {
    let Some((&choice, changes)) = data.split_first() else {
        return;
    };
    let index = usize::from(choice & 3);
    let mut bytes = files()[index].clone();
    let whole = bytes.len();
    for change in changes.chunks_exact(4) {
        let [a, b, c, value] = *change else { continue };
        let at = usize::from(a) | usize::from(b) << 8 | usize::from(c) << 16;
        if let Some(byte) = bytes.get_mut(at % whole) {
            *byte = value;
        }
    }
    if choice & 0x80 != 0 {
        bytes.truncate(whole - whole / 16 * usize::from(choice >> 3 & 0xf));
    }
    let judge = |item: &_| {
        let content = mail(item).content;
        assert!(content.len() <= 10_000 + 12 * whole, "{}", content.len());
        assert!(content.is_ascii());
        assert_eq!(content, mail(item).content);
    };
    if index < 2 {
        if let Ok(message) = msg::read(&bytes, 5) {
            judge(&message.item);
        }
        return;
    }
    let Ok(mailbox) = pst::PstMailbox::open(Box::new(bytes)) else {
        return;
    };
    let items = mailbox.folders().iter().flat_map(|folder| &folder.items);
    for item in items.take(50) {
        _ = mailbox.kind(*item);
        if let Ok(read) = mailbox.item(*item, 1 << 30) {
            judge(&read.item);
        }
    }
}
