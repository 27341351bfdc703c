//! What the sections of the page are made of: paragraphs, commands, tables. Everything that comes from mail or from the
//! command line goes through [`escaped`].

use std::fmt::Write as _;

use super::json::bound;
use super::looked::Looked;
use super::plot::{escaped, grouped};
use super::sum::Survey;

/// Rows of a table, at most.
pub const ROWS: usize = 30;

/// A page while it is written.
pub struct Page<'p> {
    pub html: String,
    pub survey: &'p Survey,
    pub looked: &'p Looked<'p>,
}

impl Page<'_> {
    /// Appends HTML.
    pub fn add(&mut self, html: &str) {
        self.html.push_str(html);
        self.html.push('\n');
    }

    /// What one would type, and what comes of it. `words` is HTML, `commands` is text, a line each.
    pub fn act(&mut self, words: &str, commands: &[String]) {
        let command = escaped_commands(commands);
        self.add(&format!(
            "<div class=\"act\"><p>{words}</p><pre>{command}</pre></div>"
        ));
    }

    /// A table of counts by name, with the sum of those beyond the bound.
    pub fn table<C>(
        &mut self,
        heads: &[&str],
        names: &[(&str, &C)],
        others: Option<&C>,
        row: impl Fn(&C) -> Vec<String>,
    ) {
        if names.is_empty() && others.is_none() {
            return;
        }
        let mut html = String::from("<div class=\"wide\"><table><tr>");
        for head in heads {
            let _ = write!(html, "<th>{head}");
        }
        let mut line = |name: &str, cells: Vec<String>| {
            let _ = write!(html, "\n<tr><td>{}", escaped(name));
            for cell in cells {
                let _ = write!(html, "<td>{cell}");
            }
        };
        for (name, counts) in names.iter().take(ROWS) {
            line(name, row(counts));
        }
        if let Some(others) = others {
            line(&format!("others, {}", bound()), row(others));
        }
        html.push_str("</table></div>");
        self.add(&html);
        if names.len() > ROWS {
            self.add(&format!("<p class=\"soft\">And {} more, which <code>embody inspect --json</code> prints with <code>--by</code>.</p>", grouped((names.len() - ROWS) as u64)));
        }
    }
}

/// Commands as text of the page, whole: names of files are not cut as strangers' text is.
fn escaped_commands(commands: &[String]) -> String {
    let escaped = |command: &String| -> String {
        let chars: Vec<char> = command.chars().collect();
        let pieces = chars.chunks(200);
        pieces
            .map(|piece| escaped(&piece.iter().collect::<String>()))
            .collect()
    };
    let lines: Vec<String> = commands.iter().map(escaped).collect();
    lines.join("\n")
}
