//! Extracts the text from the tokens of RTF: groups, fonts, code pages and characters.

use std::collections::HashMap;

use super::super::codepage;
use super::token::{RtfToken, Tokens};
use super::{RtfDamage, RtfOrigin, RtfText, source};

/// Extracts the content of RTF. Returns `None` if the bytes are not RTF.
pub fn read(rtf: &[u8]) -> Option<RtfText> {
    let start = rtf.iter().position(|byte| !byte.is_ascii_whitespace())?;
    let rtf = rtf.get(start..)?;
    if !rtf.starts_with(b"{\\rtf") {
        return None;
    }
    let mut reader = RtfReader {
        source: source(rtf),
        text: String::with_capacity(rtf.len() / 2),
        pending: Vec::new(),
        pending_page: codepage::WESTERN,
        page: codepage::WESTERN,
        default_font: None,
        fonts: HashMap::new(),
        defined_font: None,
        state: GroupState::default(),
        stack: Vec::new(),
        deeper: 0,
        skip: 0,
        half: None,
        is_lossy: false,
        is_closed: false,
        is_destination_next: false,
        is_star: false,
    };
    for token in Tokens::of(rtf) {
        reader.take(token);
        if reader.is_closed {
            break;
        }
    }
    reader.finish();
    let damage = match (reader.is_closed, reader.is_lossy) {
        (false, _) => Some(RtfDamage::Truncated),
        (true, true) => Some(RtfDamage::Charset),
        (true, false) => None,
    };
    Some(RtfText {
        source: reader.source,
        text: reader.text,
        damage,
    })
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum RtfDestination {
    #[default]
    Body,
    /// A tag of the encapsulated HTML.
    HtmlTag,
    Fonts,
    Skipped,
}

/// The state that is restored at the end of a group.
#[derive(Clone, Copy, Debug)]
struct GroupState {
    destination: RtfDestination,
    /// True inside `\htmlrtf`, whose text is only for RTF readers and is not part of the HTML.
    is_rtf_only: bool,
    font: Option<i32>,
    /// Number of fallback characters after each `\uN`. They are for readers without support for `\uN`, so they are
    /// skipped.
    replacement: u8,
}

impl Default for GroupState {
    fn default() -> Self {
        Self {
            destination: RtfDestination::Body,
            is_rtf_only: false,
            font: None,
            replacement: 1,
        }
    }
}

struct RtfReader {
    source: RtfOrigin,
    text: String,
    /// Text bytes that are not decoded yet: one character can be spread over several tokens.
    pending: Vec<u8>,
    pending_page: u32,
    /// Code page of the document.
    page: u32,
    default_font: Option<i32>,
    fonts: HashMap<i32, u32>,
    /// The font whose entry in the font table is being read.
    defined_font: Option<i32>,
    state: GroupState,
    stack: Vec<GroupState>,
    /// Number of open groups deeper than [`DEPTH`], which have no saved state.
    deeper: usize,
    /// Number of fallback characters after the last `\uN` that must still be skipped.
    skip: usize,
    /// First half of a surrogate pair that waits for its second half, and the length of the text before it.
    half: Option<(u16, usize)>,
    is_lossy: bool,
    /// True after the last group was closed.
    is_closed: bool,
    is_destination_next: bool,
    /// True after `\*`. Readers that do not know the next control word skip its group.
    is_star: bool,
}

/// Maximum number of nested groups whose states are stored, so that a file of braces needs little memory. Deeper groups share
/// one state.
const DEPTH: usize = 1000;

impl RtfReader {
    pub(super) fn take(&mut self, token: RtfToken<'_>) {
        let is_first = std::mem::take(&mut self.is_destination_next);
        match token {
            RtfToken::Open => {
                self.skip = 0;
                self.is_star = false;
                self.is_destination_next = true;
                if self.stack.len() < DEPTH {
                    self.stack.push(self.state)
                } else {
                    self.deeper += 1
                }
            }
            RtfToken::Close => {
                self.skip = 0;
                self.is_star = false;
                if self.deeper > 0 {
                    self.deeper -= 1;
                    return;
                }
                match self.stack.pop() {
                    Some(state) => self.state = state,
                    None => self.is_closed = true,
                }
                self.is_closed |= self.stack.is_empty();
            }
            RtfToken::Word(word, parameter) => {
                let is_star = std::mem::take(&mut self.is_star);
                if word == b"u" {
                    self.skip = 0;
                } else if self.skips_one() {
                    return;
                }
                self.word(word, parameter, is_first, is_star);
            }
            RtfToken::Symbol(b'*') if is_first => self.is_star = true,
            RtfToken::Symbol(symbol) => {
                if !self.skips_one() {
                    self.symbol(symbol);
                }
            }
            RtfToken::Hex(byte) => {
                if !self.skips_one() {
                    self.bytes(&[byte]);
                }
            }
            RtfToken::Text(text) => self.plain(text),
        }
    }

    fn skips_one(&mut self) -> bool {
        let skips = self.skip > 0;
        self.skip = self.skip.saturating_sub(1);
        skips
    }

    /// Appends plain text. Line endings in RTF have no meaning and are removed.
    fn plain(&mut self, text: &[u8]) {
        let mut rest = text;
        while self.skip > 0 {
            match rest.split_first() {
                Some((b'\r' | b'\n', behind)) => rest = behind,
                Some((_, behind)) => {
                    rest = behind;
                    self.skip -= 1;
                }
                None => return,
            }
        }
        for line in rest.split(|byte| matches!(byte, b'\r' | b'\n')) {
            if !line.is_empty() {
                self.bytes(line);
            }
        }
    }

    fn is_shown(&self) -> bool {
        match self.state.destination {
            RtfDestination::Body | RtfDestination::HtmlTag => {
                !self.state.is_rtf_only || self.source == RtfOrigin::Rtf
            }
            RtfDestination::Fonts | RtfDestination::Skipped => false,
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if !self.is_shown() {
            return;
        }
        let font = self.state.font.or(self.default_font);
        let page = font
            .and_then(|font| self.fonts.get(&font).copied())
            .unwrap_or(self.page);
        if page != self.pending_page {
            self.flush();
            self.pending_page = page;
        }
        self.pending.extend_from_slice(bytes);
    }

    fn flush(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let (text, is_whole) = codepage::decode(self.pending_page, &self.pending);
        self.text.push_str(&text);
        self.is_lossy |= !is_whole;
        self.pending.clear();
    }

    fn finish(&mut self) {
        self.flush();
        if let Some((_, from)) = self.half.take() {
            self.lose_half(from);
        }
    }

    /// Replaces an unpaired surrogate half at `from` by U+FFFD.
    fn lose_half(&mut self, from: usize) {
        self.is_lossy = true;
        if self.text.is_char_boundary(from) {
            self.text.insert(from, char::REPLACEMENT_CHARACTER);
        }
    }

    fn text(&mut self, text: &str) {
        if self.is_shown() {
            self.flush();
            self.text.push_str(text);
        }
    }

    fn unit(&mut self, unit: u16) {
        if !self.is_shown() {
            return;
        }
        self.flush();
        if let Some((high, from)) = self.half.take() {
            let pair = char::decode_utf16([high, unit]).next();
            // Some programs write two fallback characters but declare one. The second one is then a question mark
            // between the halves of the pair, and is removed.
            if let Some(Ok(symbol)) = pair
                && let Some(between) = self.text.get(from..)
                && between.bytes().all(|byte| byte == b'?')
            {
                self.skip += between.len();
                self.text.truncate(from);
                self.text.push(symbol);
                return;
            }
            self.lose_half(from);
        }
        match char::decode_utf16([unit]).next() {
            Some(Ok(symbol)) => self.text.push(symbol),
            _ if (0xd800..0xdc00).contains(&unit) => self.half = Some((unit, self.text.len())),
            _ => {
                self.is_lossy = true;
                self.text.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    pub(super) fn symbol(&mut self, symbol: u8) {
        let is_html = self.source == RtfOrigin::Html;
        match symbol {
            b'\\' | b'{' | b'}' => self.bytes(&[symbol]),
            b'~' if is_html && self.state.destination == RtfDestination::Body => {
                self.text("&nbsp;")
            }
            b'~' => self.text("\u{a0}"),
            b'_' if is_html && self.state.destination == RtfDestination::Body => self.text("&shy;"),
            b'_' => self.text("\u{2011}"),
            b'\r' | b'\n' => self.text("\n"),
            b'\t' => self.text("\t"),
            // `\-` is an optional hyphen, `\|` and `\:` belong to formulas and indexes. They produce no text.
            _ => {}
        }
    }

    fn word(&mut self, word: &[u8], parameter: Option<i32>, is_first: bool, is_star: bool) {
        let is_html = self.source == RtfOrigin::Html;
        if is_star {
            self.state.destination = match word {
                b"htmltag" if is_html && self.state.destination == RtfDestination::Body => {
                    RtfDestination::HtmlTag
                }
                _ => RtfDestination::Skipped,
            };
            return;
        }
        if is_first && self.state.destination == RtfDestination::Body {
            match word {
                b"fonttbl" => {
                    self.state.destination = RtfDestination::Fonts;
                    return;
                }
                b"colortbl"
                | b"stylesheet"
                | b"info"
                | b"pict"
                | b"fldinst"
                | b"filetbl"
                | b"header"
                | b"headerl"
                | b"headerr"
                | b"headerf"
                | b"footer"
                | b"footerl"
                | b"footerr"
                | b"footerf"
                | b"xe"
                | b"tc"
                | b"themedata"
                | b"colorschememapping"
                | b"nonesttables"
                | b"objdata"
                | b"objclass"
                | b"objname" => {
                    self.state.destination = RtfDestination::Skipped;
                    return;
                }
                // List numbers and bullets. A browser generates them from the HTML, so this group is skipped.
                b"pntext" | b"listtext" if is_html => {
                    self.state.destination = RtfDestination::Skipped;
                    return;
                }
                _ => {}
            }
        }
        match (word, parameter) {
            (b"ansicpg", Some(page)) => self.page = u32::try_from(page).unwrap_or(self.page),
            (b"mac", _) => self.page = 10000,
            (b"pc", _) => self.page = 437,
            (b"pca", _) => self.page = 850,
            (b"deff", font) => self.default_font = font,
            (b"f", font) if self.state.destination == RtfDestination::Fonts => {
                self.defined_font = font;
            }
            (b"f", font) => self.state.font = font,
            (b"fcharset", Some(charset)) => {
                self.define(codepage::of_font(charset));
            }
            (b"cpg", Some(page)) => self.define(u32::try_from(page).ok()),
            (b"plain", _) => self.state.font = None,
            (b"uc", count) => {
                let count = count.unwrap_or(1).clamp(0, 16);
                self.state.replacement = u8::try_from(count).unwrap_or(1);
            }
            (b"u", Some(unit)) => {
                // According to the specification, numbers above 32767 are written as negative numbers, but some programs write
                // them as positive ones. The lower 16 bits are the same.
                self.unit((unit & 0xffff) as u16);
                self.skip += usize::from(self.state.replacement);
            }
            (b"htmlrtf", parameter) => self.state.is_rtf_only = parameter != Some(0),
            (b"par" | b"line", _) => self.text("\n"),
            (b"sect" | b"page" | b"row", _) if self.source == RtfOrigin::Rtf => self.text("\n"),
            (b"tab", _) => self.text("\t"),
            (b"cell", _) if self.source == RtfOrigin::Rtf => self.text("\t"),
            (word, _) => self.named(word),
        }
    }

    fn define(&mut self, page: Option<u32>) {
        if self.state.destination == RtfDestination::Fonts
            && let (Some(font), Some(page)) = (self.defined_font, page)
        {
            self.fonts.insert(font, page);
        }
    }

    /// Appends a character that has its own control word.
    fn named(&mut self, word: &[u8]) {
        let (entity, symbol) = match word {
            b"lquote" => ("&lsquo;", "\u{2018}"),
            b"rquote" => ("&rsquo;", "\u{2019}"),
            b"ldblquote" => ("&ldquo;", "\u{201c}"),
            b"rdblquote" => ("&rdquo;", "\u{201d}"),
            b"bullet" => ("&bull;", "\u{2022}"),
            b"endash" => ("&ndash;", "\u{2013}"),
            b"emdash" => ("&mdash;", "\u{2014}"),
            b"emspace" => ("&emsp;", "\u{2003}"),
            b"enspace" => ("&ensp;", "\u{2002}"),
            _ => return,
        };
        let is_text =
            self.source == RtfOrigin::Html && self.state.destination == RtfDestination::Body;
        self.text(if is_text { entity } else { symbol });
    }
}
