//! The table in docs/figures.md, its chart, and the script that generates them.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::programs::{fed, has_python, stderr};

const PAGE: &str = include_str!("../../../docs/figures.md");
const PLOT: &str = include_str!("../../../docs/figures.svg");

/// Checks the script, imported as `figures`: the output of divan, goals in both directions, the table and its chart.
const CHECK: &str = "
found = figures.divan('''
micro                             fastest       │ slowest       │ median        │ mean          │ samples │ iters
├─ expand                         50.11 ms      │ 51 ms         │ 50 ms         │ 50 ms         │ 5       │ 5
├─ scan_mail                                    │               │               │               │         │
│  ├─ text, 4 kB each             980.4 µs      │ 990 µs        │ 985 µs        │ 985 µs        │ 5       │ 5
│  │                              1.28 GB/s     │ 1.2 GB/s      │ 1.25 GB/s     │ 1.25 GB/s     │         │
│  ╰─ with attachments            2 s           │ 3 s           │ 2 s           │ 2 s           │ 5       │ 5
│                                 512 MB/s      │ 500 MB/s      │ 500 MB/s      │ 500 MB/s      │         │
╰─ url                                          │               │               │               │         │
   ╰─ LF TAB                      8.7 ns        │ 9 ns          │ 9 ns          │ 9 ns          │ 5       │ 5
''')
expected = {('expand', False): 0.05011, ('scan_mail/text, 4 kB each', False): 980.4e-6,
            ('scan_mail/text, 4 kB each', True): 1.28e9, ('scan_mail/with attachments', False): 2,
            ('scan_mail/with attachments', True): 512e6, ('url/LF TAB', False): 8.7e-9}
assert found.keys() == expected.keys(), found
assert all(abs(found[key] / expected[key] - 1) < 1e-9 for key in found), found
rows = [figures.Row('a & b', '2 ms', 'cat, 1 ms', ratio, goal) for ratio, goal in
        ((2.0, 'at least 2'), (1.9, 'at least 2'), (1.5, 'at most 1.5'), (20, 'at most 1.5'), (9, ''))]
assert [figures.met(row) for row in rows] == [True, False, True, False, None]
assert figures.table(rows).endswith('''
| a & b | 2 ms | cat, 1 ms | 20.0 | at most 1.5 | **no** |
| a & b | 2 ms | cat, 1 ms | 9.00 |  |  |
''')
import xml.dom.minidom
plot = xml.dom.minidom.parseString(figures.plot(rows))
assert len(plot.getElementsByTagName('rect')) == 5
words = [text.firstChild.data for text in plot.getElementsByTagName('text')]
assert words.count('a & b') == 5 and 'at most 1.5, missed' in words and '20.0\u{d7}' in words, words
";

#[test]
fn the_script_reads_what_divan_prints_and_judges_goals() {
    let test = "the_script_reads_what_divan_prints_and_judges_goals";
    if !has_python(test, "sys", "python3") {
        return;
    }
    let mut python = Command::new("python3");
    python
        .args(["-B", "-c", "import figures, sys; exec(sys.stdin.read())"])
        .env(
            "PYTHONPATH",
            Path::new(env!("CARGO_MANIFEST_DIR")).join("benches"),
        )
        .env("PYTHONUTF8", "1")
        .stderr(Stdio::piped());
    let ran = fed(&mut python, CHECK.as_bytes());
    assert!(ran.status.success(), "{}", stderr(&ran));
}

/// Returns the cells of the rows between two marks on the page, without the two header lines.
fn rows(mark: &str) -> Vec<Vec<&'static str>> {
    let (_, rest) = PAGE
        .split_once(&format!("<!-- {mark} -->"))
        .expect("a mark");
    let (section, _) = rest
        .split_once(&format!("<!-- end of {mark} -->"))
        .expect("an end");
    section
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_plot_shows_the_rows_of_the_table() {
    let beside = rows("beside");
    assert!(beside.len() > 6, "only {} rows", beside.len());
    let rows = rows("figures");
    assert!(rows.len() > 15, "only {} rows", rows.len());
    assert!(PAGE.contains("](figures.svg)"));
    for row in &rows {
        let [what, ours, peer, ratio, ..] = row[..] else {
            panic!("too short: {row:?}");
        };
        for words in [
            format!(">{what}</text>"),
            format!(">{ours} versus {peer}</text>"),
            format!(">{ratio}\u{d7}</text>"),
        ] {
            assert!(PLOT.contains(&words), "{words} is not in the plot");
        }
        assert!(what.chars().count() <= 48, "too long for the plot: {what}");
    }
    assert_eq!(PLOT.matches("<rect ").count(), rows.len());
}
