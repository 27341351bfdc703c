//! One connection of a mail system, without the socket: consumes packets and returns the actions to take.
//!
//! Only the necessary packets are negotiated: header fields (with the blanks after their colons, and without replies),
//! the end of the header, and the body in parts (without replies if the mail system supports this). If the body is not
//! needed, ACCEPT after the end of the header prevents it from being sent. If a body is too large and each part needs a
//! reply, the reply is SKIP. ABORT drops the message, and may be repeated. QUIT_NC announces another SMTP connection.
//! Every other packet is answered with CONTINUE. No mail is refused.

use super::codec::{
    MilterCommand, MilterReply, MilterTerms, PacketError, action, macro_value, option,
};
use super::draft::MilterDraft;
use super::service::most;
use crate::expand::Expander;

#[derive(Debug)]
pub enum SessionStep<'s> {
    Wait,
    Say(MilterReply<'s>),
    /// The message can be processed, either because it is complete or because the rest cannot change the outcome. If
    /// the message was not stored, because there is nothing to change, this reply is sent.
    Judge(MilterDraft, MilterReply<'s>),
    Refused,
    Close,
}

#[derive(Default, Debug)]
pub struct MilterSession {
    is_full: bool,
    terms: Option<MilterTerms>,
    can_change: bool,
    draft: MilterDraft,
    skipped: bool,
}

const ACTIONS: u32 = action::ADD_FIELDS | action::CHANGE_BODY | action::CHANGE_FIELDS;

const NONE_OF: u32 = option::NO_CONNECT
    | option::NO_HELO
    | option::NO_MAIL
    | option::NO_RCPT
    | option::NO_DATA
    | option::NO_UNKNOWN;

impl MilterSession {
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

    /// Processes one packet. After a [`PacketError`] packet, or a packet in the wrong order, the connection is closed.
    /// The mail system then does what is configured for a missing filter.
    pub fn take(
        &mut self,
        packet: &[u8],
        expander: &Expander,
    ) -> Result<SessionStep<'static>, PacketError> {
        let out_of_order = || {
            Err(PacketError::OutOfOrder(
                packet.first().map_or('?', |&kind| char::from(kind)),
            ))
        };
        Ok(match MilterCommand::read(packet)? {
            MilterCommand::Quit => SessionStep::Close,
            MilterCommand::Negotiate(offer) if self.terms.is_none() => self.negotiate(offer),
            MilterCommand::Negotiate(_) => return out_of_order(),
            _ if self.terms.is_none() => return out_of_order(),
            MilterCommand::Macros(macros) => {
                if let Some(queue_id) = macro_value(macros, b"i") {
                    self.draft.name(queue_id);
                }
                SessionStep::Wait
            }
            MilterCommand::Abort | MilterCommand::QuitNewConnection => {
                self.forget();
                SessionStep::Wait
            }
            MilterCommand::EndOfHeader | MilterCommand::EndOfBody(_) if self.is_full => {
                self.forget();
                SessionStep::Refused
            }
            MilterCommand::Field { .. } if self.is_full && self.agreed(option::QUIET_FIELDS) => {
                SessionStep::Wait
            }
            MilterCommand::Field { .. } | MilterCommand::Body(_) if self.is_full => {
                SessionStep::Say(MilterReply::Continue)
            }
            MilterCommand::Field { name, value } => {
                if self.draft.has_header() {
                    return out_of_order();
                }
                let blank: &[u8] = if self.keeps_blanks() { b"" } else { b" " };
                let value = [blank, value].concat();
                self.draft.field(name, &value, most(expander));
                if self.agreed(option::QUIET_FIELDS) {
                    SessionStep::Wait
                } else {
                    SessionStep::Say(MilterReply::Continue)
                }
            }
            MilterCommand::EndOfHeader => {
                self.end_header(expander);
                match self.draft.left {
                    Some(_) => {
                        SessionStep::Judge(std::mem::take(&mut self.draft), MilterReply::Accept)
                    }
                    None => SessionStep::Say(MilterReply::Continue),
                }
            }
            MilterCommand::Body(octets) => {
                self.body(octets, expander);
                let is_useless = self.draft.left.is_some();
                match is_useless && self.agreed(option::SKIP) && !self.skipped {
                    _ if self.agreed(option::QUIET_BODY) => SessionStep::Wait,
                    true => {
                        self.skipped = true;
                        SessionStep::Say(MilterReply::Skip)
                    }
                    false => SessionStep::Say(MilterReply::Continue),
                }
            }
            MilterCommand::EndOfBody(octets) => {
                self.body(octets, expander);
                self.skipped = false;
                SessionStep::Judge(std::mem::take(&mut self.draft), MilterReply::Continue)
            }
            MilterCommand::Event(_) => SessionStep::Say(MilterReply::Continue),
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
        self.draft = MilterDraft::default();
        self.skipped = false;
    }

    fn negotiate(&mut self, offer: MilterTerms) -> SessionStep<'static> {
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
        let terms = MilterTerms {
            version: offer.version.min(6),
            actions: actions | macros,
            options: offer.options & wanted,
        };
        self.terms = Some(terms);
        SessionStep::Say(MilterReply::Negotiate(terms, (macros != 0).then_some(b"i")))
    }
}
