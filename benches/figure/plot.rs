//! The plot of the figures: a bar for each ratio on a logarithmic scale, the goal as a mark.
//!
//! Plain SVG without scripts or fonts of its own, so that it can stand in a Markdown page as an image; its
//! colours follow the reader's light or dark mode. What a colour says is also said in words.

use std::fmt::Write as _;

use super::{Figure, Goal, short};

const WIDTH: f64 = 900.0;
/// Where the axis begins and ends; names are to the left of it, numbers to the right.
const LEFT: f64 = 380.0;
const RIGHT: f64 = 730.0;
const ROW: f64 = 36.0;
const BAR: f64 = 16.0;
const HEADING: f64 = 48.0;
const FOOT: f64 = 40.0;

const STYLE: &str = "\
text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328 }
.small { font-size: 11px; fill: #59636e }
.heading { font-weight: 600 }
.grid { stroke: #d1d9e0; stroke-width: 1 }
.peer { stroke: #59636e; stroke-width: 1.5 }
.goal { stroke: #1f2328; stroke-width: 2.5 }
.met { fill: #1a7f37 }
.missed { fill: #bc4c00 }
.none { fill: #0969da }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc }
.small { fill: #9198a1 }
.grid { stroke: #3d444d }
.peer { stroke: #9198a1 }
.goal { stroke: #f0f6fc }
.met { fill: #2ea043 }
.missed { fill: #f0883e }
.none { fill: #4493f8 }
}
";

/// The whole SVG document.
pub fn draw(figures: &[Figure]) -> String {
    let (less, more): (Vec<&Figure>, Vec<&Figure>) = figures
        .iter()
        .partition(|figure| matches!(figure.goal, Goal::AtMost(_)));
    let groups = [
        ("Speed as a multiple of the peer's: longer is better", more),
        (
            "Time or memory as a multiple of the peer's: shorter is better",
            less,
        ),
    ];
    let axis = Axis::over(figures);
    let mut rows = String::new();
    let mut top = 0.0;
    for (heading, group) in groups.iter().filter(|(_, group)| !group.is_empty()) {
        text(&mut rows, 10.0, top + 22.0, "heading", heading);
        let first = top + HEADING;
        let last = first + ROW * group.len() as f64;
        axis.grid(&mut rows, first, last);
        for (place, figure) in group.iter().enumerate() {
            axis.bar(&mut rows, first + ROW * place as f64, figure);
        }
        top = last + 8.0;
    }
    text(
        &mut rows,
        10.0,
        top + 24.0,
        "small",
        "Logarithmic scale. Bars begin at 1, the peer's value. The thick upright mark is the goal; blue bars have none.",
    );
    let height = top + FOOT;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n<title>embody beside its peers</title>\n<style>\n{STYLE}</style>\n{rows}</svg>\n"
    )
}

/// From the smallest to the largest number that has to be shown, 1 included.
struct Axis {
    least: f64,
    most: f64,
}

impl Axis {
    fn over(figures: &[Figure]) -> Self {
        let numbers = figures
            .iter()
            .flat_map(|figure| [Some(figure.ratio), figure.goal.number()])
            .flatten();
        let (least, most) = numbers.fold((0.5_f64, 2.0_f64), |(least, most), number| {
            (least.min(number), most.max(number))
        });
        Self { least, most }
    }

    fn x(&self, number: f64) -> f64 {
        let part = (number / self.least).ln() / (self.most / self.least).ln();
        LEFT + part * (RIGHT - LEFT)
    }

    fn grid(&self, out: &mut String, top: f64, bottom: f64) {
        for decade in -3..=4 {
            for step in [1.0, 2.0, 5.0] {
                let number = step * 10_f64.powi(decade);
                if !(self.least..=self.most).contains(&number) {
                    continue;
                }
                let class = if number == 1.0 { "peer" } else { "grid" };
                let x = self.x(number);
                upright(out, class, x, top, bottom);
                let _ = writeln!(
                    out,
                    "<text class=\"small\" text-anchor=\"middle\" x=\"{x:.1}\" y=\"{:.1}\">{number}</text>",
                    top - 5.0
                );
            }
        }
    }

    fn bar(&self, out: &mut String, top: f64, figure: &Figure) {
        let middle = top + ROW / 2.0;
        text(out, 10.0, middle - 3.0, "", &figure.what);
        let below = format!("{} beside {}", figure.ours, figure.peer);
        text(out, 10.0, middle + 11.0, "small", &below);
        let (class, word) = match figure.goal.met(figure.ratio) {
            Some(true) => ("met", ", met"),
            Some(false) => ("missed", ", missed"),
            None => ("none", ""),
        };
        let (one, here) = (self.x(1.0), self.x(figure.ratio));
        // A ratio of 1 is seen too.
        let width = (here - one).abs().max(2.0);
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{BAR}\"/>",
            one.min(here),
            middle - BAR / 2.0,
        );
        if let Some(goal) = figure.goal.number() {
            let reach = BAR / 2.0 + 4.0;
            upright(out, "goal", self.x(goal), middle - reach, middle + reach);
        }
        let right = RIGHT + 14.0;
        let ratio = format!("{}\u{d7}", short(figure.ratio));
        if figure.goal == Goal::More {
            text(out, right, middle + 4.0, "", &ratio);
        } else {
            text(out, right, middle - 3.0, "", &ratio);
            let goal = format!("{}{word}", figure.goal);
            text(out, right, middle + 11.0, "small", &goal);
        }
    }
}

fn upright(out: &mut String, class: &str, x: f64, top: f64, bottom: f64) {
    let _ = writeln!(
        out,
        "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>"
    );
}

fn text(out: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let words = words
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let class = if class.is_empty() {
        String::new()
    } else {
        format!(" class=\"{class}\"")
    };
    let _ = writeln!(out, "<text{class} x=\"{x:.1}\" y=\"{y:.1}\">{words}</text>");
}
