//! What the sections of the page are made of: paragraphs, commands, tables. Everything that comes from mail or from the
//! command line goes through [`escaped`].

use std::fmt::Write as _;

use super::super::say::harmless_within;
use super::json::bound;
use super::looked::Looked;
use super::plot::{escaped, grouped, marked};
use super::sum::Survey;
use super::tally::{Counts, Named};

pub const ROWS: usize = 30;

pub struct Page<'p> {
    pub html: String,
    pub survey: &'p Survey,
    pub looked: &'p Looked<'p>,
}

impl Page<'_> {
    pub fn add(&mut self, html: &str) {
        self.html.push_str(html);
        self.html.push('\n');
    }

    /// What one would type, and what comes of it. `words` is HTML, `commands` is text, a line each.
    pub fn act(&mut self, words: &str, commands: &[String]) {
        // Whole: names of files are not cut as strangers' text is.
        let lines = commands.iter().map(|line| marked(&harmless_within(line)));
        let command = lines.collect::<Vec<String>>().join("\n");
        self.add(&format!(
            "<div class=\"act\"><p>{words}</p><pre>{command}</pre></div>"
        ));
    }

    /// A table of counts by name, the heaviest first, with the sum of those beyond the bound. A comma stands between the
    /// heads of its columns.
    pub fn table<C: Counts>(
        &mut self,
        heads: &str,
        named: &Named<C>,
        weight: impl Fn(&C) -> u64,
        row: impl Fn(&C) -> Vec<String>,
    ) {
        let (names, others) = (named.heaviest(weight), named.others());
        if names.is_empty() && others.is_none() {
            return;
        }
        let heads = heads.replace(", ", "<th>");
        let mut html = format!("<div class=\"wide\"><table><tr><th>{heads}");
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
