//! The parts of the page's sections. Everything from mail or the command line goes through [`escaped`].

use super::super::say::{harmless, harmless_within};
use super::json::bound;
use super::looked::Looked;
use super::sum::Survey;
use super::tally::{Counts, Named};
use super::text::size;

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

    pub fn act(&mut self, words: &str, commands: &[String]) {
        // Names of files are whole: they are not cut as strangers' text is.
        let lines = commands.iter().map(|line| marked(&harmless_within(line)));
        let command = lines.collect::<Vec<String>>().join("\n");
        self.add(&format!(
            "<div class=\"act\"><p>{words}</p><pre>{command}</pre></div>"
        ));
    }

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
            html += &format!("\n<tr><td>{}", escaped(name));
            for cell in cells {
                html += &format!("<td>{cell}");
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

/// All counts of a row; what counts bytes ends in `octets`.
pub fn cells<C: Counts>(counts: &C) -> Vec<String> {
    let columns = C::NAMES.iter().zip(counts.columns());
    let cell = |(name, count): (&&str, u64)| match name.ends_with("octets") {
        true => size(count),
        false => grouped(count),
    };
    columns.map(cell).collect()
}

pub fn escaped(text: &str) -> String {
    marked(&harmless(text))
}

fn marked(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

pub struct Bar {
    pub name: String,
    pub value: u64,
    pub said: String,
}

const NAME: usize = 30;

pub fn lying(title: &str, bars: &[Bar]) -> String {
    let most = bars.iter().map(|bar| bar.value).max().unwrap_or(0).max(1);
    let height = bars.len() * 26 + 6;
    let mut svg = opened(title, height);
    for (number, bar) in bars.iter().enumerate() {
        let y = number * 26 + 4;
        let width = part_of(bar.value, most, 330);
        let mut short: String = bar.name.chars().take(NAME).collect();
        if short.len() < bar.name.len() {
            short.pop();
            short.push('\u{2026}');
        }
        let (name, short, said) = (escaped(&bar.name), escaped(&short), escaped(&bar.said));
        let (line, behind) = (y + 14, 236 + width);
        svg += &format!(
            "<g><title>{name}: {said}</title><text x=\"218\" y=\"{line}\" class=\"end\">{short}</text>\
             <rect x=\"228\" y=\"{y}\" width=\"{width}\" height=\"18\" rx=\"2\" class=\"bar\"/>\
             <text x=\"{behind}\" y=\"{line}\" class=\"soft\">{said}</text></g>",
        );
    }
    svg.push_str("</svg>");
    svg
}

/// Each column comes with the part of it that could go.
pub fn standing(title: &str, columns: &[(Bar, u64)]) -> String {
    let most = columns.iter().map(|it| it.0.value).max();
    let most = most.unwrap_or(0).max(1);
    let mut svg = opened(title, 230);
    svg += &format!(
        "<text x=\"64\" y=\"16\" class=\"end soft\">{}</text><line x1=\"70\" y1=\"12\" x2=\"716\" y2=\"12\" class=\"rule\"/>\
         <text x=\"64\" y=\"106\" class=\"end soft\">{}</text><line x1=\"70\" y1=\"102\" x2=\"716\" y2=\"102\" class=\"rule\"/>\
         <text x=\"64\" y=\"196\" class=\"end soft\">0</text><line x1=\"70\" y1=\"192\" x2=\"716\" y2=\"192\" class=\"axis\"/>",
        size(most),
        size(most / 2),
    );
    let step = 640.0 / columns.len().max(1) as f64;
    let width = (step * 0.72).min(56.0);
    let every = (40.0 / step).ceil().max(1.0) as usize;
    for (number, (column, part)) in columns.iter().enumerate() {
        let middle = 74.0 + step * (number as f64 + 0.5);
        let left = middle - width / 2.0;
        let [all, part] = [column.value, *part].map(|octets| part_of(octets, most, 180));
        svg += &format!(
            "<g><title>{}</title><rect x=\"{left:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{all}\" class=\"bar\"/>\
             <rect x=\"{left:.1}\" y=\"{}\" width=\"{width:.1}\" height=\"{part}\" class=\"part\"/></g>",
            escaped(&column.said),
            192 - all,
            192 - part,
        );
        if number % every == 0 {
            svg += &format!(
                "<text x=\"{middle:.1}\" y=\"214\" class=\"middle soft\">{}</text>",
                escaped(&column.name)
            );
        }
    }
    svg.push_str("</svg>");
    svg
}

fn opened(title: &str, height: usize) -> String {
    let title = escaped(title);
    format!(
        "<svg viewBox=\"0 0 720 {height}\" role=\"img\" aria-label=\"{title}\" xmlns=\"http://www.w3.org/2000/svg\">"
    )
}

/// A value above zero always shows.
fn part_of(value: u64, most: u64, length: u64) -> u64 {
    let part = u128::from(value) * u128::from(length) / u128::from(most.max(1));
    let part = u64::try_from(part).unwrap_or(length).min(length);
    part.max(u64::from(value > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_mail_is_no_markup() {
        let hostile = "</text><script>alert(1)</script>\" onload='x'\u{202e}\n";
        let bar = Bar {
            name: hostile.to_owned(),
            value: 1,
            said: hostile.to_owned(),
        };
        let svg = lying(hostile, &[bar]);
        assert!(
            !svg.contains("<script") && !svg.contains("onload='"),
            "{svg}"
        );
        assert!(!svg.contains('\u{202e}') && !svg.contains('\n'), "{svg}");
    }

    #[test]
    fn bars_stay_within_their_length() {
        assert_eq!(part_of(u64::MAX, u64::MAX, 330), 330);
        assert_eq!(part_of(1, u64::MAX, 330), 1);
        assert_eq!(part_of(0, 0, 330), 0);
        assert_eq!(grouped(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(grouped(12), "12");
    }
}
