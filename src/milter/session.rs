//! One connection of a mail system, without its socket. It takes packets and returns what to do.
//!
//! The negotiation requests only the packets that are used: header fields with the blanks after their colons and
//! without replies, the end of the header, and the body in parts, without replies if the mail system supports this. If
//! the body is not needed, the reply to the end of the header is ACCEPT, so that the body is not sent. If a body is too
//! large and the mail system waits for a reply to each part, the reply is SKIP. ABORT drops the message, however often
//! it is sent. QUIT_NC also means that another SMTP connection follows. The reply to all other packets is CONTINUE. No
//! mail is refused.

use super::codec::{Command, Malformed, Reply, Terms, action, macro_value, option};
use super::draft::Draft;
use super::service::most;
use crate::expand::Expander;

#[derive(Debug)]
pub enum Step<'s> {
    Wait,
    Say(Reply<'s>),
    /// The message can be processed, because it is complete, or because it stays unchanged whatever its rest contains.
    /// The reply is sent if the bytes of the message were not stored, so that there is nothing to change.
    Judge(Draft, Reply<'s>),
    Refused,
    Close,
}

#[derive(Default, Debug)]
pub struct Session {
    is_full: bool,
    terms: Option<Terms>,
    can_change: bool,
    draft: Draft,
    skipped: bool,
}

const ACTIONS: u32 = action::ADD_FIELDS | action::CHANGE_BODY | action::CHANGE_FIELDS;

const NONE_OF: u32 = option::NO_CONNECT
    | option::NO_HELO
    | option::NO_MAIL
    | option::NO_RCPT
    | option::NO_DATA
    | option::NO_UNKNOWN;

impl Session {
    pub fn new(is_full: bool) -> Self {
        Self {
            is_full,
            ..Self::default()
        }
    }

    pub fn is_within_message(&self) -> bool {
        let draft = &self.draft;
        draft.message.count > 0 || draft.has_header() || draft.left.is_some()
    }

    pub fn keeps_blanks(&self) -> bool {
        self.agreed(option::LEADING_SPACE)
    }

    fn agreed(&self, wanted: u32) -> bool {
        self.terms.is_some_and(|terms| terms.options & wanted != 0)
    }

    /// Processes one packet. After a [`Malformed`] packet, or a packet in the wrong order, the connection is closed.
    /// The mail system then does what is configured for a missing filter.
    pub fn take(&mut self, packet: &[u8], expander: &Expander) -> Result<Step<'static>, Malformed> {
        let out_of_order = || {
            Err(Malformed::OutOfOrder(
                packet.first().map_or('?', |&kind| char::from(kind)),
            ))
        };
        Ok(match Command::read(packet)? {
            Command::Quit => Step::Close,
            Command::Negotiate(offer) if self.terms.is_none() => self.negotiate(offer),
            Command::Negotiate(_) => return out_of_order(),
            _ if self.terms.is_none() => return out_of_order(),
            Command::Macros(macros) => {
                if let Some(queue_id) = macro_value(macros, b"i") {
                    self.draft.name(queue_id);
                }
                Step::Wait
            }
            Command::Abort | Command::QuitNewConnection => {
                self.forget();
                Step::Wait
            }
            Command::EndOfHeader | Command::EndOfBody(_) if self.is_full => {
                self.forget();
                Step::Refused
            }
            Command::Field { .. } if self.is_full && self.agreed(option::QUIET_FIELDS) => {
                Step::Wait
            }
            Command::Field { .. } | Command::Body(_) if self.is_full => Step::Say(Reply::Continue),
            Command::Field { name, value } => {
                if self.draft.has_header() {
                    return out_of_order();
                }
                let blank: &[u8] = if self.keeps_blanks() { b"" } else { b" " };
                let value = [blank, value].concat();
                self.draft.field(name, &value, most(expander));
                if self.agreed(option::QUIET_FIELDS) {
                    Step::Wait
                } else {
                    Step::Say(Reply::Continue)
                }
            }
            Command::EndOfHeader => {
                self.end_header(expander);
                match self.draft.left {
                    Some(_) => Step::Judge(std::mem::take(&mut self.draft), Reply::Accept),
                    None => Step::Say(Reply::Continue),
                }
            }
            Command::Body(octets) => {
                self.body(octets, expander);
                let is_useless = self.draft.left.is_some();
                match is_useless && self.agreed(option::SKIP) && !self.skipped {
                    _ if self.agreed(option::QUIET_BODY) => Step::Wait,
                    true => {
                        self.skipped = true;
                        Step::Say(Reply::Skip)
                    }
                    false => Step::Say(Reply::Continue),
                }
            }
            Command::EndOfBody(octets) => {
                self.body(octets, expander);
                self.skipped = false;
                Step::Judge(std::mem::take(&mut self.draft), Reply::Continue)
            }
            Command::Event(_) => Step::Say(Reply::Continue),
        })
    }

    fn end_header(&mut self, expander: &Expander) {
        let can_change = self.can_change;
        let matters = |header: &[u8]| can_change && expander.body_matters(header);
        self.draft.end_header(matters);
    }

    fn body(&mut self, octets: &[u8], expander: &Expander) {
        self.end_header(expander);
        self.draft.body(octets, most(expander));
        self.draft.search(expander.prefilter());
    }

    fn forget(&mut self) {
        self.draft = Draft::default();
        self.skipped = false;
    }

    fn negotiate(&mut self, offer: Terms) -> Step<'static> {
        let wanted = NONE_OF
            | option::QUIET_FIELDS
            | if self.is_full {
                option::NO_BODY | option::NO_FIELDS
            } else {
                option::SKIP | option::QUIET_BODY | option::LEADING_SPACE
            };
        self.can_change = offer.actions & ACTIONS == ACTIONS;
        let actions = if self.can_change && !self.is_full {
            ACTIONS
        } else {
            0
        };
        let macros = offer.actions & action::SET_MACROS;
        let terms = Terms {
            version: offer.version.min(6),
            actions: actions | macros,
            options: offer.options & wanted,
        };
        self.terms = Some(terms);
        Step::Say(Reply::Negotiate(terms, (macros != 0).then_some(b"i")))
    }
}
