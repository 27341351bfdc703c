//! Runs the commands of README's first screen unchanged on a Google Takeout of five hundred mails, and checks their results.

use std::fs;
use std::process::Command;

use super::pages::{blocks, read};
use crate::common::programs::{embody, fed, has_python, stderr};
use crate::common::raw::{Raw, ok};

/// Creates a Takeout with two labels and 250 mails each. Every mail shows a picture on one of three hosts, and every tenth has
/// an attachment.
const TAKEOUT: &str = "
import base64, random, sys, zipfile
random.seed(1)
hosts = sys.argv[1:]
with zipfile.ZipFile('takeout.zip', 'w') as archive:
    for label in 'Inbox', 'Work, and more':
        mails = []
        for number in range(250):
            picture = f'http://{hosts[number % 3]}/{number % 40}.gif'
            html = f'<p>Mail {number}<img src=\"{picture}\" width=300 height=200>'
            mail = f'From {number}@xxx Mon Mar 03 10:11:12 +0000 2014\\nX-GM-THRID: {number}\\nX-Gmail-Labels: {label}\\n' \\
                f'Date: Mon, 3 Mar 2014 10:11:12 +0000\\nSubject: mail {number}\\nMIME-Version: 1.0\\n' \\
                'Content-Type: multipart/mixed; boundary=b\\n\\n--b\\nContent-Type: text/html\\n\\n' + html
            if number % 10 == 0:
                octets = base64.encodebytes(random.randbytes(150000)).decode()
                mail += '\\n--b\\nContent-Type: application/pdf; name=a.pdf\\nContent-Disposition: attachment\\n' \\
                    'Content-Transfer-Encoding: base64\\n\\n' + octets
            mails.append(mail + '\\n--b--\\n\\n')
        archive.writestr(f'Takeout/Mail/{label}.mbox', ''.join(mails).replace('\\n', '\\r\\n'))
";

/// Returns a picture of 9 by 9 pixels that is unique for each number.
fn picture(number: u8) -> Vec<u8> {
    let colours = [number, 1, 2, 3, 4, 5];
    let start = b"GIF89a\x09\0\x09\0\x80\0\0";
    [
        &start[..],
        &colours,
        b",\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;",
    ]
    .concat()
}

#[test]
fn commands_of_the_first_screen_on_a_takeout_succeed() {
    let test = "commands_of_the_first_screen_on_a_takeout_succeed";
    if !has_python(test, "zipfile", "python3") {
        return;
    }
    let hosts = [0, 1, 2].map(|_| {
        Raw::http(|path, stream| {
            let number = path.trim_matches(|letter: char| !letter.is_ascii_digit());
            let picture = picture(number.parse().unwrap());
            let _ = std::io::Write::write_all(stream, &ok("image/gif", &picture));
        })
    });
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let made = Command::new("python3")
        .args(["-c", TAKEOUT])
        .args(hosts.each_ref().map(|host| host.address.to_string()))
        .current_dir(folder.path())
        .status();
    assert!(made.unwrap().success());

    let readme = read("README.md");
    let (first, _) = readme.split_once("## Install").unwrap();
    let typed: Vec<&str> = blocks(first).flat_map(|(_, block)| block.lines()).collect();
    assert_eq!(typed.len(), 6, "{typed:?}");
    for line in typed {
        let mut command = embody();
        command
            .args(line.split(' ').skip(1))
            .current_dir(folder.path());
        // The hosts of this test are local, so requests to them must be allowed.
        if line.starts_with("embody embed ") {
            command.args(["--allow-net", "127.0.0.0/8"]);
            for host in &hosts {
                command.args(["--allow-port", &host.address.port().to_string()]);
            }
        }
        let output = fed(&mut command, b"");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{line}: {said}");
        assert!(said.lines().count() <= 60, "{line}: {said}");
    }

    let page = fs::read_to_string(at("report.html")).unwrap();
    assert!(page.contains("500"), "{page}");
    let kept = fs::read(at("kept.mbox")).unwrap();
    let count = |text: &str| memchr::memmem::find_iter(&kept, text.as_bytes()).count();
    assert_eq!(count("<img src=\"cid:"), 500);
    assert_eq!(count("Content-Type: image/gif"), 500);
    assert_eq!(count("\nX-GM-THRID:"), 500);
    // There are forty pictures on each of the three hosts.
    let asked: usize = hosts.iter().map(Raw::count).sum();
    assert_eq!(asked, 120);
    let small = fs::metadata(at("small.mbox")).unwrap().len();
    assert!(small * 4 < kept.len() as u64, "{small} of {}", kept.len());
    assert_eq!(fs::read(at("back.mbox")).unwrap(), kept);
}
