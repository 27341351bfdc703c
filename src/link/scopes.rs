//! Determines whether a `<base>` applies to the document. It does not apply inside `<svg>` and `<math>`, where it is an
//! element of another language, or inside a `<template>`, whose content is not part of the page.
//!
//! This follows the tree builder of the HTML standard (§13.2.6.5) without building a tree. Two cases are simplified:
//! annotations in MathML count as HTML with any encoding, and `<font>` ends SVG and MathML even without attributes.

use super::names::Syntax;

pub(super) struct Scopes {
    syntax: Syntax,
    /// Regions that are open at the current position and are parsed as HTML, from the outermost to the innermost. The
    /// first one is the document.
    regions: Vec<Region>,
    templates: usize,
}

#[derive(Default)]
struct Region {
    /// Whether the region is the content of a `<template>`. Otherwise it is the document, or an element of SVG or
    /// MathML that contains HTML.
    is_template: bool,
    svg: usize,
    math: usize,
}

impl Region {
    fn is_foreign(&self) -> bool {
        self.svg + self.math > 0
    }
}

impl Scopes {
    pub(super) fn new(syntax: Syntax) -> Self {
        Self {
            syntax,
            regions: vec![Region::default()],
            templates: 0,
        }
    }

    /// Returns whether the position is outside of `<svg>`, `<math>` and `<template>`. In this case, an end tag cannot
    /// end any of them, so it is skipped without reading its name.
    pub(super) fn is_outside(&self) -> bool {
        self.regions.len() == 1 && !self.is_foreign()
    }

    pub(super) fn hides_base(&self) -> bool {
        self.templates > 0 || self.is_foreign()
    }

    pub(super) fn is_foreign(&self) -> bool {
        self.regions.last().is_some_and(Region::is_foreign)
    }

    pub(super) fn open(&mut self, name: &[u8], closes_itself: bool) {
        let Some(region) = self.regions.last_mut() else {
            return;
        };
        let is_foreign = region.is_foreign();
        let is_html = self.syntax == Syntax::Html;
        let is_template = match name {
            // Start tags of HTML that end all open SVG and MathML elements (HTML standard §13.2.6.5).
            b"b" | b"big" | b"blockquote" | b"body" | b"br" | b"center" | b"code" | b"dd"
            | b"div" | b"dl" | b"dt" | b"em" | b"embed" | b"font" | b"h1" | b"h2" | b"h3"
            | b"h4" | b"h5" | b"h6" | b"head" | b"hr" | b"i" | b"img" | b"li" | b"listing"
            | b"menu" | b"meta" | b"nobr" | b"ol" | b"p" | b"pre" | b"ruby" | b"s" | b"small"
            | b"span" | b"strong" | b"strike" | b"sub" | b"sup" | b"table" | b"tt" | b"u"
            | b"ul" | b"var"
                if is_foreign && is_html =>
            {
                (region.svg, region.math) = (0, 0);
                return;
            }
            _ if closes_itself && (is_foreign || !is_html) => return,
            b"svg" | b"math" if closes_itself => return,
            b"svg" => return region.svg += 1,
            b"math" => return region.math += 1,
            b"template" if !is_foreign => true,
            _ if region.svg > 0 && is_html_in_svg(name) => false,
            _ if region.math > 0 && is_html_in_math(name) => false,
            _ => return,
        };
        self.templates += usize::from(is_template);
        self.regions.push(Region {
            is_template,
            ..Region::default()
        });
    }

    pub(super) fn close(&mut self, name: &[u8]) {
        let is_nested = self.regions.len() > 1;
        let Some(region) = self.regions.last_mut() else {
            return;
        };
        match name {
            b"svg" => region.svg = region.svg.saturating_sub(1),
            b"math" => region.math = region.math.saturating_sub(1),
            b"template" if self.templates > 0 => {
                while let Some(closed) = self.regions.pop() {
                    if closed.is_template {
                        self.templates -= 1;
                        break;
                    }
                }
            }
            _ if is_nested
                && !region.is_template
                && (is_html_in_svg(name) || is_html_in_math(name)) =>
            {
                self.regions.pop();
            }
            _ => {}
        }
    }
}

fn is_html_in_svg(name: &[u8]) -> bool {
    matches!(name, b"foreignobject" | b"desc")
}

fn is_html_in_math(name: &[u8]) -> bool {
    matches!(
        name,
        b"mi" | b"mo" | b"mn" | b"ms" | b"mtext" | b"annotation-xml"
    )
}
