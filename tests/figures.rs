//! The README's table of figures, its plot, and the lines that they are made from.

use std::process::Command;

use crate::common::programs;
use crate::figure::{Figure, Goal, plot, read_skipped, table};

const README: &str = include_str!("../README.md");
const PLOT: &str = include_str!("../benches/figures.svg");

fn figure(what: &str, ratio: f64, goal: Goal) -> Figure {
    Figure {
        what: what.to_owned(),
        ours: "2 ms".to_owned(),
        peer: "cat, 1 ms".to_owned(),
        ratio,
        goal,
    }
}

#[test]
fn a_figure_is_read_from_the_line_it_was_written_to() {
    for goal in [Goal::AtLeast(0.8), Goal::AtMost(1.1), Goal::More] {
        let figure = figure("a & b", 1.25, goal);
        assert_eq!(Figure::read(&figure.line()), Some(figure));
    }
}

#[test]
fn other_lines_are_no_figures() {
    for line in [
        "",
        "figures | a | b | c | 1 | none",
        "figure | a | b | c | 1",
        "figure | a | b | c | 1 | none | d",
        "figure | a | b | c | nan | none",
        "figure | a | b | c | 0 | none",
        "figure | a | b | c | 1 | perhaps",
        "| a | b | c | 1 | none",
    ] {
        assert_eq!(Figure::read(line), None, "{line}");
    }
    let skipped = read_skipped("skipped | fetching | curl not found");
    let words = |(what, why): (String, String)| what + "; " + &why;
    assert_eq!(
        skipped.map(words).as_deref(),
        Some("fetching; curl not found")
    );
    assert_eq!(read_skipped("figure | fetching | b"), None);
}

#[test]
fn a_goal_is_met_from_its_own_side() {
    assert_eq!(Goal::AtLeast(2.0).met(2.0), Some(true));
    assert_eq!(Goal::AtLeast(2.0).met(1.9), Some(false));
    assert_eq!(Goal::AtMost(1.5).met(1.5), Some(true));
    assert_eq!(Goal::AtMost(1.5).met(1.6), Some(false));
    assert_eq!(Goal::More.met(9.0), None);
    let table = table(&[
        figure("good", 1.0, Goal::AtMost(1.5)),
        figure("bad", 20.0, Goal::AtMost(1.5)),
    ]);
    assert!(
        table.ends_with(
            "| good | 2 ms | cat, 1 ms | 1.00 | at most 1.5 | yes |\n\
             | bad | 2 ms | cat, 1 ms | 20.0 | at most 1.5 | **no** |\n"
        ),
        "{table}"
    );
}

/// The number of an attribute of the first element that begins so.
fn number(svg: &str, element: &str, attribute: &str) -> f64 {
    let rest = svg
        .split(element)
        .nth(1)
        .unwrap_or_else(|| panic!("no {element} in {svg}"));
    let value = rest
        .split(&format!(" {attribute}=\""))
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no {attribute} behind {element}"))
}

#[test]
fn bars_are_logarithms_and_goals_stand_on_the_same_scale() {
    let svg = plot::draw(&[
        figure("first", 4.0, Goal::More),
        figure("second", 16.0, Goal::AtLeast(4.0)),
        figure("third", 0.5, Goal::AtLeast(4.0)),
    ]);
    let (four, sixteen) = (
        number(&svg, "<rect class=\"none\"", "width"),
        number(&svg, "<rect class=\"met\"", "width"),
    );
    assert!((sixteen - 2.0 * four).abs() < 0.2, "{four} and {sixteen}");
    let one = number(&svg, "<rect class=\"none\"", "x");
    let goal = number(&svg, "<line class=\"goal\"", "x1");
    assert!((goal - one - four).abs() < 0.2, "{goal}, {one} and {four}");
    // Less than the peer: to the left of it, and as long as twice the peer would be to the right.
    let left = number(&svg, "<rect class=\"missed\"", "x");
    let half = number(&svg, "<rect class=\"missed\"", "width");
    assert!((left + half - one).abs() < 0.2 && (half - four / 2.0).abs() < 0.2);
}

/// The cells of the rows between the marks in the README, without the two lines above them.
fn rows() -> Vec<Vec<&'static str>> {
    let (_, rest) = README.split_once("<!-- figures -->").expect("a mark");
    let (section, _) = rest.split_once("<!-- end of figures -->").expect("an end");
    section
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_plot_shows_the_rows_of_the_readme() {
    let rows = rows();
    assert!(rows.len() > 15, "only {} rows", rows.len());
    assert!(README.contains("](benches/figures.svg)"));
    for row in &rows {
        let [what, ours, peer, ratio, ..] = row[..] else {
            panic!("too short: {row:?}");
        };
        for words in [
            format!(">{what}</text>"),
            format!(">{ours} beside {peer}</text>"),
            format!(">{ratio}\u{d7}</text>"),
        ] {
            assert!(PLOT.contains(&words), "{words} is not in the plot");
        }
        assert!(what.chars().count() <= 48, "too long for the plot: {what}");
    }
    assert_eq!(PLOT.matches("<rect ").count(), rows.len());
}

#[test]
fn the_plots_are_well_formed_xml() {
    let Some(python) = programs::program("python3") else {
        return programs::skipped("the_plots_are_well_formed_xml", "python3");
    };
    let odd = plot::draw(&[figure("a < b && \"c\" > 'd'", 1.0, Goal::AtMost(1e-3))]);
    for svg in [PLOT, &odd] {
        let reader = "import sys, xml.etree.ElementTree as tree\nprint(tree.parse(sys.stdin.buffer).getroot().tag)";
        let output = programs::fed(Command::new(&python).args(["-c", reader]), svg.as_bytes());
        assert!(output.status.success(), "not XML: {svg}");
        assert_eq!(output.stdout, b"{http://www.w3.org/2000/svg}svg\n");
    }
}
