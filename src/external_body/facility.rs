//! What `embody schemes` says of an access type or a URL scheme.
//!
//! The last columns answer what RFC 2718 §2 asks of a scheme: syntax and relative use (§2.1),
//! mapping, characters and operations (§2.2), utility (§2.3), and security (§2.4: who learns of the
//! retrieval, whether a reference can be faked, what it tells of secrets).

/// One row of the tables: an access type or a scheme.
#[derive(Clone, Copy, Debug)]
pub struct Facility {
    /// The access type, the scheme with its colon, or the field.
    pub name: &'static str,
    /// What a reference becomes.
    pub maps_to: &'static str,
    /// What embody does to get the content.
    pub operation: &'static str,
    /// A body part with such a reference; none where the URL's scheme decides what happens.
    pub example: Option<&'static str>,
    /// The options under which it is followed; empty if none is needed, or if none helps.
    pub allowed_by: &'static str,
    /// RFC 2718 §2.1: syntax, and whether it may be relative.
    pub syntax: &'static str,
    /// RFC 2718 §2.2.5: characters and their octets.
    pub characters: &'static str,
    /// RFC 2718 §2.3: what it is good for.
    pub utility: &'static str,
    /// RFC 2718 §2.4: who learns of it, and what secrets it holds.
    pub disclosure: &'static str,
    /// RFC 2718 §2.4: what may be faked, and what stands against it.
    pub danger: &'static str,
}
