//! Scanning mail into spans, beside mail-parser's full parse of the same mail, in one run.
//!
//! `cargo bench --bench scan`. The mail is made here, from a seed: text, HTML and base64
//! attachments in the proportions of an ordinary mailbox.

mod figure;

use std::hint::black_box;
use std::time::{Duration, Instant};

use embody::internals::Prefilter;
use embody::internals::mime::{ScanLimits, scan};
use embody::policy::Policy;

use figure::{Figure, Goal, quick, short};

/// Something done with one message.
type Contender<'c> = &'c dyn Fn(&[u8]);

fn main() {
    let rounds = if quick() { 9 } else { 15 };
    let mut rows = Vec::new();
    let sets = [
        ("text, 4 KB each", messages(2_000, 4, 0)),
        ("text and HTML, 40 KB each", messages(400, 40, 0)),
        ("with attachments, 400 KB each", messages(80, 40, 360)),
    ];
    println!("{rounds} rounds, the best of each; contenders take turns\n");
    println!("| mail | MB | scan | prefilter | mail-parser | scan : mail-parser |");
    println!("|---|---|---|---|---|---|");
    for (name, mails) in &sets {
        let octets: usize = mails.iter().map(Vec::len).sum();
        let prefilter = Prefilter::new(&Policy::default());
        let parser = mail_parser::MessageParser::default();
        let mut best = [Duration::MAX; 3];
        for _ in 0..rounds {
            let contenders: [Contender<'_>; 3] = [
                &|mail| {
                    black_box(scan(mail, &ScanLimits::default()));
                },
                &|mail| {
                    black_box(prefilter.first(mail));
                },
                &|mail| {
                    black_box(parser.parse(mail));
                },
            ];
            for (time, contender) in best.iter_mut().zip(contenders) {
                let start = Instant::now();
                for mail in mails {
                    contender(black_box(mail));
                }
                *time = (*time).min(start.elapsed());
            }
        }
        let speed = |time: Duration| octets as f64 / time.as_secs_f64() / 1e9;
        println!(
            "| {name} | {:.0} | {:.2} GB/s | {:.2} GB/s | {:.2} GB/s | {:.1} |",
            octets as f64 / 1e6,
            speed(best[0]),
            speed(best[1]),
            speed(best[2]),
            best[2].as_secs_f64() / best[0].as_secs_f64(),
        );
        rows.push((*name, speed(best[0]), speed(best[2])));
    }
    println!();
    for (name, ours, parser) in &rows {
        Figure::say(
            &format!("scanning mail: {name}"),
            &format!("{} GB/s", short(*ours)),
            &format!("mail-parser, {} GB/s", short(*parser)),
            ours / parser,
            Goal::AtLeast(2.0),
        );
    }
    let slowest = rows
        .iter()
        .map(|(_, ours, _)| *ours)
        .fold(f64::MAX, f64::min);
    Figure::say(
        "scanning, the slowest of these, on one core",
        &format!("{} GB/s", short(slowest)),
        "1 GB/s",
        slowest,
        Goal::AtLeast(1.0),
    );
}

/// A generator that gives the same numbers on every machine (xorshift64*).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % sides
    }
}

/// `count` messages with about `text_kb` of text and HTML and `attached_kb` of base64 each.
fn messages(count: usize, text_kb: usize, attached_kb: usize) -> Vec<Vec<u8>> {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    (0..count)
        .map(|number| message(number, text_kb, attached_kb, &mut dice))
        .collect()
}

fn message(number: usize, text_kb: usize, attached_kb: usize, dice: &mut Dice) -> Vec<u8> {
    const WORDS: [&str; 16] = [
        "the", "meeting", "of", "Thursday", "has", "been", "moved", "to", "next", "week", "please",
        "find", "attached", "our", "figures", "-- and",
    ];
    let mut mail = String::new();
    for hop in 0..6 {
        mail.push_str(&format!(
            "Received: from mx{hop}.example.org (mx{hop}.example.org [192.0.2.{hop}])\n\tby mail.example.net with ESMTPS id {number:08x}{hop}\n\tfor <user@example.net>; Mon, 1 Jun 2026 10:0{hop}:00 +0000\n"
        ));
    }
    mail.push_str(&format!(
        "From: \"A. Sender\" <sender{number}@example.org>\nTo: user@example.net\nSubject: message {number}\nMessage-ID: <{number}@example.org>\nDate: Mon, 1 Jun 2026 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"=_mixed_{number}\"\n\nThis is a multipart message.\n--=_mixed_{number}\nContent-Type: multipart/alternative; boundary=\"=_alt_{number}\"\n\n--=_alt_{number}\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 7bit\n\n"
    ));
    let half = text_kb * 512;
    let end = mail.len() + half;
    while mail.len() < end {
        for _ in 0..12 {
            mail.push_str(WORDS[dice.roll(WORDS.len())]);
            mail.push(' ');
        }
        mail.push('\n');
    }
    mail.push_str(&format!("--=_alt_{number}\nContent-Type: text/html; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n<html><body>\n"));
    let end = mail.len() + half;
    while mail.len() < end {
        mail.push_str(&format!(
            "<p style=3D\"margin:0\"><a href=3D\"http://www.example.org/{}\">{}</a> {} =\n{}</p>\n",
            dice.roll(1_000),
            WORDS[dice.roll(WORDS.len())],
            WORDS[dice.roll(WORDS.len())],
            WORDS[dice.roll(WORDS.len())],
        ));
    }
    mail.push_str(&format!("</body></html>\n--=_alt_{number}--\n"));
    if attached_kb > 0 {
        mail.push_str(&format!("--=_mixed_{number}\nContent-Type: application/pdf; name=\"figures.pdf\"\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=\"figures.pdf\"\n\n"));
        const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let end = mail.len() + attached_kb * 1024;
        while mail.len() < end {
            for _ in 0..76 {
                mail.push(char::from(ALPHABET[dice.roll(64)]));
            }
            mail.push('\n');
        }
    }
    mail.push_str(&format!("--=_mixed_{number}--\n"));
    mail.into_bytes()
}
