//! Divides RTF into control words, control symbols, groups and text.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RtfToken<'a> {
    Open,
    Close,
    /// A control word, with its parameter.
    Word(&'a [u8], Option<i32>),
    /// A control symbol: a backslash and one byte that is not a letter.
    Symbol(u8),
    /// A byte written as `\'hh`.
    Hex(u8),
    Text(&'a [u8]),
}

pub(super) struct Tokens<'a> {
    rest: &'a [u8],
}

impl<'a> Tokens<'a> {
    pub(super) fn of(rtf: &'a [u8]) -> Self {
        Self { rest: rtf }
    }

    fn advance(&mut self, by: usize) -> &'a [u8] {
        let (front, rest) = self.rest.split_at(by.min(self.rest.len()));
        self.rest = rest;
        front
    }

    fn control(&mut self) -> RtfToken<'a> {
        self.advance(1);
        let letters = self
            .rest
            .iter()
            .take_while(|it| it.is_ascii_alphabetic())
            .count();
        if letters == 0 {
            return self.symbol();
        }
        let word = self.advance(letters);
        let is_negative = self.rest.first() == Some(&b'-');
        let after_sign = self
            .rest
            .get(usize::from(is_negative)..)
            .unwrap_or_default();
        let digits = after_sign
            .iter()
            .take_while(|it| it.is_ascii_digit())
            .count();
        let mut parameter = None;
        if digits > 0 {
            let bytes = self.advance(digits + usize::from(is_negative));
            let number = str::from_utf8(bytes).unwrap_or_default();
            parameter = Some(number.parse().unwrap_or(i32::MAX));
        }
        // One space after a control word belongs to the word.
        if self.rest.first() == Some(&b' ') {
            self.advance(1);
        }
        if word == b"bin" {
            let length = parameter.and_then(|it| usize::try_from(it).ok());
            self.advance(length.unwrap_or(0));
        }
        RtfToken::Word(word, parameter)
    }

    pub(super) fn symbol(&mut self) -> RtfToken<'a> {
        let symbol = self.advance(1).first().copied().unwrap_or(b'\\');
        if symbol != b'\'' {
            return RtfToken::Symbol(symbol);
        }
        let digit = |at: usize| {
            let digit = char::from(*self.rest.get(at)?).to_digit(16)?;
            u8::try_from(digit).ok()
        };
        match (digit(0), digit(1)) {
            (Some(high), Some(low)) => {
                self.advance(2);
                RtfToken::Hex(high << 4 | low)
            }
            _ => RtfToken::Symbol(symbol),
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = RtfToken<'a>;

    fn next(&mut self) -> Option<RtfToken<'a>> {
        let first = self.rest.first()?;
        Some(match first {
            b'{' => {
                self.advance(1);
                RtfToken::Open
            }
            b'}' => {
                self.advance(1);
                RtfToken::Close
            }
            b'\\' => self.control(),
            _ => {
                let end = memchr::memchr3(b'{', b'}', b'\\', self.rest);
                RtfToken::Text(self.advance(end.unwrap_or(usize::MAX)))
            }
        })
    }
}
