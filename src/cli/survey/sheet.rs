//! The elements of an HTML page: tiles, steps with their commands, bars, columns and tables. Text from mail or from the
//! command line is untrusted, so [`escaped`] or [`foreign`] escapes it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::super::say::{harmless, harmless_within};
use super::findings::Tile;
use super::steps::NextStep;
use super::words::grouped;

/// Maximum number of rows of a table. A note below the table says how many rows are missing.
pub(super) const ROWS: usize = 30;

/// Maximum number of bars in a plot.
pub(super) const BARS: usize = 12;

/// Maximum number of years that are named below the columns, so that the names fit on the screen of a phone.
const NAMED_COLUMNS: usize = 8;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Start of every page that embody writes. Only a file that begins with this text may be replaced by a new page.
pub(super) const BEGIN: &str = "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"generator\" content=\"embody inspect\">\n";

pub(super) struct Sheet {
    html: String,
    /// Whether a section is open that the reader can fold.
    has_fold: bool,
}

/// A horizontal bar, of which a part can have another colour.
pub(super) struct Bar {
    pub name: String,
    pub value: u64,
    pub part: u64,
    pub words: String,
}

pub(super) struct SheetTable<'t> {
    pub heads: &'t [&'t str],
    /// Rows of the table. The first cell of each row is untrusted text from a mail.
    pub rows: Vec<(String, Vec<String>)>,
    /// Number of further rows that are not shown.
    pub more: usize,
}

impl Sheet {
    /// Creates a page. Its Content-Security-Policy forbids all content from other places, so the page makes no
    /// requests. It allows pictures inside the page, and the script of the page by its hash.
    pub(super) fn new(title: &str) -> Self {
        let hash = STANDARD.encode(Sha256::digest(SCRIPT));
        let title = escaped(title);
        Self {
            html: format!(
                "{BEGIN}<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{hash}'\">\n\
                 <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n<body>\n<main>\n"
            ),
            has_fold: false,
        }
    }

    pub(super) fn finish(mut self, footer: &str) -> String {
        self.end_fold();
        self.add(&format!("</main>\n<footer>{footer}</footer>"));
        self.add(&format!("<script>{SCRIPT}</script>"));
        self.html
    }

    pub(super) fn add(&mut self, html: &str) {
        self.html.push_str(html);
        self.html.push('\n');
    }

    pub(super) fn heading(&mut self, text: &str) {
        self.add(&format!("<h2>{text}</h2>"));
    }

    /// Starts a section that is folded until the reader opens it. `facts` is shown next to its title.
    pub(super) fn fold(&mut self, title: &str, facts: &str) {
        self.end_fold();
        self.add(&format!(
            "<details class=\"fold\"><summary><h2>{title}</h2> <span class=\"soft\">{facts}</span></summary>"
        ));
        self.has_fold = true;
    }

    fn end_fold(&mut self) {
        if std::mem::take(&mut self.has_fold) {
            self.add("</details>");
        }
    }

    /// Adds a paragraph of trusted text. Words in backticks are shown as code.
    pub(super) fn say(&mut self, words: &str) {
        self.add(&format!("<p>{}</p>", in_code(words)));
    }

    pub(super) fn note(&mut self, words: &str) {
        self.add(&format!("<p class=\"soft\">{}</p>", in_code(words)));
    }

    /// Adds a small picture with a caption. `url` is a data: URL.
    pub(super) fn picture(&mut self, url: &str, caption: &str) {
        let url = marked(url);
        self.add(&format!(
            "<figure><img src=\"{url}\" alt=\"\"><figcaption>{caption}</figcaption></figure>"
        ));
    }

    pub(super) fn tiles(&mut self, tiles: &[Tile]) {
        if tiles.is_empty() {
            return;
        }
        let tile = |tile: &Tile| {
            format!(
                "<div><b>{}</b><span>{}</span></div>",
                tile.number, tile.words
            )
        };
        let tiles: Vec<String> = tiles.iter().map(tile).collect();
        self.add(&format!("<div class=\"big\">{}</div>", tiles.join("\n")));
    }

    pub(super) fn step(&mut self, step: &NextStep) {
        self.commands(("act", "h3"), &step.title, &step.words, &step.commands);
    }

    /// Adds a list of steps that are folded, with numbers that begin with `first`.
    pub(super) fn steps(&mut self, first: usize, steps: &[NextStep]) {
        for (number, step) in steps.iter().enumerate() {
            self.add(&format!(
                "<details class=\"step\"><summary><b>{}.</b> {}</summary>",
                number + first,
                step.title
            ));
            self.step(step);
            self.add("</details>");
        }
    }

    /// Adds the recommended step.
    pub(super) fn next_step(&mut self, step: &NextStep) {
        let title = format!("Next step: {}", lowered(&step.title));
        // No heading comes between the title of the page and this one, so its level is 2.
        self.commands(("act next", "h2"), &title, &step.words, &step.commands);
    }

    fn commands(
        &mut self,
        (class, level): (&str, &str),
        title: &str,
        words: &str,
        commands: &[String],
    ) {
        // Commands are not cut, because the file names in them must be complete. Other text is cut.
        let lines: Vec<String> = commands
            .iter()
            .map(|line| marked(&harmless_within(line)))
            .collect();
        let script = lines.join("\n");
        let words = in_code(words);
        self.add(&format!(
            "<div class=\"{class}\"><{level}>{title}</{level}><p>{words}</p><pre>{script}</pre></div>"
        ));
    }

    pub(super) fn table(&mut self, table: &SheetTable<'_>) {
        if table.rows.is_empty() {
            return;
        }
        // A column that contains only zeros is left out.
        let is_empty = |column: usize| {
            let mut cells = table.rows.iter().filter_map(|row| row.1.get(column));
            cells.all(|cell| matches!(cell.as_str(), "0" | "0 bytes" | ""))
        };
        let columns = table.heads.len().saturating_sub(1);
        let shown: Vec<usize> = (0..columns).filter(|column| !is_empty(*column)).collect();
        // A wide table scrolls. The arrow keys can scroll it only if it can have the focus.
        let mut html = String::from("<div class=\"wide\" tabindex=\"0\"><table><tr>");
        let heads = shown
            .iter()
            .filter_map(|column| table.heads.get(column + 1));
        for head in table.heads.iter().take(1).chain(heads) {
            html += &format!("<th>{head}");
        }
        for (name, cells) in &table.rows {
            html += &format!("\n<tr><td>{}", foreign(name));
            for column in &shown {
                let cell = cells.get(*column).map_or("", String::as_str);
                let is_zero = matches!(cell, "0" | "0 bytes");
                html += &format!("<td>{}", if is_zero { "" } else { cell });
            }
        }
        html += "</table></div>";
        self.add(&html);
        if table.more > 0 {
            let more = grouped(table.more as u64);
            self.note(&format!(
                "There are {more} more. `embody inspect --json` prints all of them with `--by`."
            ));
        }
    }

    pub(super) fn bars(&mut self, title: &str, bars: &[Bar]) {
        if bars.iter().all(|bar| bar.value == 0) {
            return;
        }
        let most = bars.iter().map(|bar| bar.value).max().unwrap_or(1);
        let mut html = format!(
            "<div class=\"bars\" role=\"img\" aria-label=\"{}\">",
            escaped(title)
        );
        for bar in bars.iter().filter(|bar| bar.value > 0) {
            let [all, part] = [bar.value, bar.part].map(|value| percent(value, most));
            let part = match bar.part {
                0 => String::new(),
                _ => format!("<i class=\"part\" style=\"width:{part}%\"></i>"),
            };
            html += &format!(
                "\n<div class=\"row\"><span>{}</span><span class=\"track\"><i class=\"all\" style=\"width:{all}%\"></i>{part}</span><span class=\"soft\">{}</span></div>",
                foreign(&bar.name),
                escaped(&bar.words)
            );
        }
        html += "</div>";
        self.add(&html);
    }

    /// Adds a plot with one column for each year. A part of each column has another colour.
    pub(super) fn columns(&mut self, title: &str, most: &str, columns: &[Bar]) {
        let tallest = columns.iter().map(|bar| bar.value).max().unwrap_or(0);
        // A single column is not shown, because the number alone is clear.
        if columns.len() < 2 || tallest == 0 {
            return;
        }
        let every = columns.len().div_ceil(NAMED_COLUMNS);
        let mut html = format!(
            "<div class=\"columns\" role=\"img\" aria-label=\"{}\"><span class=\"most soft\">{most}</span>",
            escaped(title)
        );
        for (number, bar) in columns.iter().enumerate() {
            let [all, part] = [bar.value, bar.part].map(|value| percent(value, tallest));
            let name = match number % every {
                0 => escaped(&bar.name),
                _ => String::new(),
            };
            html += &format!(
                "\n<div title=\"{}\"><i class=\"all\" style=\"height:{all}%\"></i><i class=\"part\" style=\"height:{part}%\"></i><span class=\"soft\">{name}</span></div>",
                escaped(&bar.words)
            );
        }
        html += "</div>";
        self.add(&html);
    }

    pub(super) fn key(&mut self, all: &str, part: &str) {
        self.add(&format!(
            "<p class=\"soft\"><i class=\"key all\"></i>{all} <i class=\"key part\"></i>{part}</p>"
        ));
    }
}

/// Returns the text with a lower-case first letter, to continue a sentence.
fn lowered(text: &str) -> String {
    let mut symbols = text.chars();
    let first = symbols.next().map(|it| it.to_lowercase().to_string());
    first.unwrap_or_default() + symbols.as_str()
}

/// Returns untrusted text for a page: escaped for HTML, on one line, and cut if it is long.
pub(super) fn escaped(text: &str) -> String {
    marked(&harmless(text))
}

/// Returns untrusted text that stands alone on a page, such as a subject. It is isolated, so that text from right to
/// left does not change the direction of the text around it. Invisible characters are removed.
pub(super) fn foreign(text: &str) -> String {
    let is_shown = |symbol: &char| !matches!(symbol, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fe0f}');
    let text: String = text.chars().filter(is_shown).collect();
    format!("<bdi>{}</bdi>", escaped(&text))
}

fn in_code(words: &str) -> String {
    let mut html = String::new();
    for (number, piece) in words.split('`').enumerate() {
        html += &match number % 2 {
            0 => piece.to_owned(),
            _ => format!("<code>{}</code>", marked(piece)),
        };
    }
    html
}

fn marked(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// Returns the length of a bar, in percent. A value above zero gets at least 0.5, so that it is visible.
fn percent(value: u64, most: u64) -> String {
    let share = u128::from(value) * 1000 / u128::from(most.max(1));
    let thousandths = share.min(1000).max(u128::from(value > 0) * 5);
    format!("{}.{}", thousandths / 10, thousandths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_mail_is_no_markup() {
        let hostile = "</title><script>alert(1)</script>\" onload='x'\u{202e}\n\0";
        let bar = || Bar {
            name: hostile.to_owned(),
            value: 1,
            part: 1,
            words: hostile.to_owned(),
        };
        let mut sheet = Sheet::new(hostile);
        sheet.bars(hostile, &[bar()]);
        sheet.columns(hostile, "1", &[bar(), bar()]);
        sheet.table(&SheetTable {
            heads: &["a", "b"],
            rows: vec![(hostile.to_owned(), vec!["1".to_owned()])],
            more: 0,
        });
        let page = sheet.finish("");
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert!(
            !page.contains("onload='") && !page.contains('\u{202e}'),
            "{page}"
        );
        assert!(!page.contains('\0'), "{page}");
    }

    #[test]
    fn foreign_text_has_its_own_direction() {
        assert_eq!(foreign("\u{5d0}\u{200f}<b>"), "<bdi>\u{5d0}&lt;b&gt;</bdi>");
    }

    #[test]
    fn bars_stay_within_their_length() {
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0");
        assert_eq!(percent(1, u64::MAX), "0.5");
        assert_eq!(percent(0, 0), "0.0");
        assert_eq!(percent(1, 3), "33.3");
    }

    #[test]
    fn empty_columns_and_zeros_are_not_shown() {
        let mut sheet = Sheet::new("x");
        let cells = |first: &str| vec![first.to_owned(), "0".to_owned()];
        sheet.table(&SheetTable {
            heads: &["name", "one", "other"],
            rows: vec![("a".to_owned(), cells("1")), ("b".to_owned(), cells("0"))],
            more: 0,
        });
        let page = sheet.finish("");
        assert!(page.contains("<th>name<th>one\n"), "{page}");
        assert!(!page.contains("other") && !page.contains("<td>0"), "{page}");
    }
}
