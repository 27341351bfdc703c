//! The table of docs/figures.md, its plot, and the lines that they are made from.

use crate::figure::{Figure, Goal, read_skipped, table};

const PAGE: &str = include_str!("../../../docs/figures.md");
const PLOT: &str = include_str!("../../../docs/figures.svg");

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

/// The cells of the rows between the marks on the page, without the two lines above them.
fn rows() -> Vec<Vec<&'static str>> {
    let (_, rest) = PAGE.split_once("<!-- figures -->").expect("a mark");
    let (section, _) = rest.split_once("<!-- end of figures -->").expect("an end");
    section
        .lines()
        .filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_plot_shows_the_rows_of_the_table() {
    let rows = rows();
    assert!(rows.len() > 15, "only {} rows", rows.len());
    assert!(PAGE.contains("](figures.svg)"));
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
