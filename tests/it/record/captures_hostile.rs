//! `--archive FILE` with truncated, damaged or malicious files: complete records are used, errors are reported, and no wrong
//! content is used.

use std::fs;
use std::time::Duration;

use proptest::prelude::*;

use super::warcs::{DATE, MAIL_DATE, OFFLINE, URL, answer, gzip, members, response, text};
use crate::common::filter::{Ran, filled, filter, mail, measured, reference};

const OTHER: &str = "http://gone.example/other";

fn before() -> Vec<u8> {
    let parts = [URL, OTHER].map(|url| reference(url, "text/plain"));
    [MAIL_DATE.as_bytes(), &mail(&parts)].concat()
}

/// Returns the mail after the first and the second part were filled or left.
fn after(came: [bool; 2]) -> Vec<u8> {
    let part = |at: usize, url, text: &[u8]| {
        if came[at] {
            filled(Some(url), "text/plain", text)
        } else {
            reference(url, "text/plain")
        }
    };
    let parts = [part(0, URL, b"of May"), part(1, OTHER, b"of the other")];
    [MAIL_DATE.as_bytes(), &mail(&parts)].concat()
}

fn records() -> [Vec<u8>; 2] {
    [
        response(URL, DATE, &text("of May")),
        response(OTHER, DATE, &text("of the other")),
    ]
}

fn with(file: &[u8], options: &str) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc.gz");
    fs::write(&path, file).unwrap();
    filter(
        &format!("{OFFLINE} {} {options}", path.display()),
        &before(),
    )
}

#[test]
fn a_file_is_read_to_its_last_whole_record() {
    let one = records();
    let plain = one.concat();
    let packed = members(&one);
    for (whole, first) in [(&plain, one[0].len()), (&packed, gzip(&one[0]).len())] {
        with(whole, "").gives(&after([true, true]));
        for cut in [
            1,
            first / 2,
            first - 5,
            first + 1,
            first + 20,
            whole.len() - 9,
        ] {
            let ran = with(&whole[..cut], "");
            ran.gives(&after([
                cut >= first - if first == one[0].len() { 4 } else { 0 },
                false,
            ]));
            assert!(ran.stderr.contains("a.warc.gz: "), "{cut}: {}", ran.stderr);
            assert!(
                ran.stderr
                    .contains("only the records before this error are used"),
                "{cut}: {}",
                ran.stderr
            );
        }
    }
    // Damaged data ends the reading, but the records before it are used.
    let with_rubbish = [&packed[..], b"rubbish"].concat();
    let ran = with(&with_rubbish, "");
    ran.gives(&after([true, true]));
    assert!(
        ran.stderr.contains(&format!("at byte {}", packed.len())),
        "{}",
        ran.stderr
    );
    // If all records are in one gzip member, each access would have to decompress it again, so this is refused.
    let ran = with(&gzip(&plain), "");
    ran.gives(&after([false, false]));
    assert!(
        ran.stderr.contains("contains several records"),
        "{}",
        ran.stderr
    );
}

#[test]
fn hostile_records_take_little_time_and_memory() {
    const TEST: &str = "hostile_records_take_little_time_and_memory";
    let good = records();
    let huge = |length: &str| {
        format!("WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {URL}\r\nWARC-Date: {DATE}\r\nContent-Length: {length}\r\n\r\nHTTP/1.1 200 OK\r\n\r\n").into_bytes()
    };
    let zeros = vec![0; 64 << 20];
    let bomb = response(
        URL,
        DATE,
        &answer("200 OK", "Content-Type: text/plain\r\n", &zeros),
    );
    let coded = answer(
        "200 OK",
        "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n",
        &gzip(&zeros),
    );
    let many = vec![response(URL, DATE, &answer("500 No", "Content-Length: 0\r\n", b"")); 20_000];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.warc.gz");
    let rows: [(&str, Vec<u8>, bool); 9] = [
        (
            "2^63",
            [&good[1][..], &huge("9223372036854775808")].concat(),
            true,
        ),
        (
            "2^64 - 1",
            [&good[1][..], &huge("18446744073709551615")].concat(),
            true,
        ),
        (
            "2^64",
            [&good[1][..], &huge("18446744073709551616")].concat(),
            true,
        ),
        (
            "packed",
            [gzip(&good[1]), gzip(&huge("9223372036854775808"))].concat(),
            true,
        ),
        (
            "no end",
            [&good[1][..], b"WARC/1.1\r\n", &b"x: ".repeat(20 << 20)].concat(),
            true,
        ),
        (
            "fields",
            [&good[1][..], b"WARC/1.1\r\n", &b"x: y\r\n".repeat(10 << 20)].concat(),
            true,
        ),
        ("bomb", [gzip(&good[1]), gzip(&bomb)].concat(), false),
        (
            "coded",
            [gzip(&good[1]), gzip(&response(URL, DATE, &coded))].concat(),
            false,
        ),
        ("many", [many.concat(), good[1].clone()].concat(), false),
    ];
    for (name, file, is_told) in rows {
        fs::write(&path, file).unwrap();
        let options = format!("{OFFLINE} {} --max-body 1M", path.display());
        let Some(ran) = measured(TEST, &options, &before()) else {
            return;
        };
        ran.gives(&after([false, true]));
        assert_eq!(
            ran.stderr.contains("before this error are used"),
            is_told,
            "{name}: {}",
            ran.stderr
        );
        assert!(ran.took < Duration::from_secs(20), "{name}: {:?}", ran.took);
        assert!(
            ran.peak.unwrap() < 96 << 20,
            "{name}: {} bytes",
            ran.peak.unwrap()
        );
    }
}

#[test]
fn only_regular_files_directly_in_an_archive_folder_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let [inside, outside] = ["inside", "outside"].map(|name| folder.path().join(name));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    let [one, other] = records();
    fs::write(inside.join("a.warc"), one).unwrap();
    fs::write(outside.join("b.warc"), &other).unwrap();
    std::os::unix::fs::symlink(outside.join("b.warc"), inside.join("b.warc")).unwrap();
    std::os::unix::fs::symlink(&outside, inside.join("c.warc")).unwrap();
    fs::create_dir(inside.join("d.warc")).unwrap();
    fs::write(inside.join("d.warc/b.warc"), other).unwrap();
    let pipe = std::process::Command::new("mkfifo")
        .arg(inside.join("e.warc"))
        .status()
        .unwrap();
    assert!(pipe.success());
    let ran = filter(&format!("{OFFLINE} {}", inside.display()), &before());
    ran.gives(&after([true, false]));
    // A damaged file does not affect the others.
    fs::write(inside.join("0.wacz"), b"PK\x03\x04 and no more").unwrap();
    let ran = filter(&format!("{OFFLINE} {}", inside.display()), &before());
    ran.gives(&after([true, false]));
    assert!(ran.stderr.contains("0.wacz: "), "{}", ran.stderr);
}

#[test]
fn a_wacz_that_names_the_same_octets_twice_is_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let script = "import io, sys, zipfile\n\
        out = io.BytesIO()\n\
        with zipfile.ZipFile(out, 'w') as wacz:\n\
        \x20   wacz.write('a.warc', 'archive/a.warc')\n\
        \x20   info = wacz.infolist()[0]\n\
        \x20   for number in range(2000):\n\
        \x20       import copy\n\
        \x20       again = copy.copy(info)\n\
        \x20       again.filename = f'archive/b{number}.warc'\n\
        \x20       again.orig_filename = again.filename\n\
        \x20       wacz.filelist.append(again)\n\
        \x20   wacz._didModify = True\n\
        open('a.wacz', 'wb').write(out.getvalue())\n";
    fs::write(folder.path().join("a.warc"), records().concat()).unwrap();
    let python = std::process::Command::new("python3")
        .args(["-c", script])
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(python.success());
    let ran = filter(
        &format!("{OFFLINE} {}/a.wacz", folder.path().display()),
        &before(),
    );
    ran.gives(&after([true, true]));
    assert!(
        ran.stderr.contains("overlaps another file"),
        "{}",
        ran.stderr
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    /// All records contain the digest of their block. Whatever is damaged, only content that was captured may be used.
    #[test]
    fn no_damage_gives_wrong_content(
        is_packed in any::<bool>(),
        hits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = if is_packed { members(&records()) } else { records().concat() };
        for (at, octet) in hits {
            let at = at.index(file.len());
            file[at] = octet;
        }
        // If the name of a digest field or of its hash is damaged, the record has no digest and its content cannot be checked.
        let digests = |file: &[u8]| memchr::memmem::find_iter(file, b"WARC-Block-Digest: sha256:").count();
        prop_assume!(is_packed || digests(&file) == digests(&records().concat()));
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        let ran = with(&file, "");
        let is_refused = ran.code == Some(75) && ran.stderr.contains("not a WARC");
        let possible = [[true, true], [true, false], [false, true], [false, false]];
        // A damaged header field may still be valid, for example a Content-Type or a URL, so the correct result may be one of
        // several.
        let is_right = possible.iter().any(|came| ran.stdout == after(*came));
        prop_assert!(is_refused || is_right, "{}\n{}", String::from_utf8_lossy(&ran.stdout), ran.stderr);
    }
}

#[test]
fn a_gzip_member_with_another_sum_is_no_record() {
    let mut file = members(&records());
    let end = gzip(&records()[0]).len();
    file[end - 6] ^= 1;
    let ran = with(&file, "");
    ran.gives(&after([false, false]));
    assert!(ran.stderr.contains("at byte 0"), "{}", ran.stderr);
}
