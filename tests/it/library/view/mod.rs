//! `embody::view`: what a person sees of a mail.

use std::fmt::Write as _;
use std::time::SystemTime;

use embody::view::MailView;

mod files;
mod links;
mod mails;
mod references;

fn view(mail: impl AsRef<[u8]>) -> MailView {
    MailView::new(mail.as_ref().to_vec(), SystemTime::now())
}

/// Returns a multipart mail with these parts, each with its header.
fn mixed(parts: &[&str]) -> String {
    multipart("mixed", parts)
}

fn multipart(subtype: &str, parts: &[&str]) -> String {
    let mut mail = format!(
        "From: =?utf-8?q?Ad=C3=A9?= <ada@example.org>\nSubject: =?utf-8?b?w7xi?=\n =?utf-8?b?ZXI=?=\n\
         Date: Tue, 14 May 2024 09:12:03 +0200\nMIME-Version: 1.0\nContent-Type: multipart/{subtype}; boundary=b\n"
    );
    for part in parts {
        write!(mail, "\n--b\n{part}").unwrap();
    }
    mail + "\n--b--\n"
}

const TEXT: &str = "Content-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe";
const HTML: &str = "Content-Type: text/html; charset=utf-8\n\n<p>Hello <img src=\"cid:a%40b\">";
const PICTURE: &str = "Content-Type: image/gif\nContent-ID: <a@b>\nContent-Transfer-Encoding: base64\n\n\
    R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7";
const REFERENCE: &str = "Content-Type: message/external-body; access-type=URL;\n URL=\"https://www.example.org/a/minutes.txt\"\n\n\
    Content-Type: text/plain\n\n";
