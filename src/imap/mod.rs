//! IMAP: mail on a server (RFC 3501, RFC 9051).
//!
//! A room beside `mailbox`, and below `cli`: nothing else knows the protocol.
//!
//! * `account` is what a URL (RFC 5092) and the options say: which server, which folders, how to log in; `names` are the names
//!   of folders, `secret` where a password comes from.
//! * `wire` reads and writes octets, in clear or by TLS, within limits; `response` reads what a server says into values.
//! * `session` is a connection that is logged in, with the commands as methods; `login` is how it gets there.
//! * `structure` reads BODYSTRUCTURE, `fetch` metadata and bodies, in pieces and pipelined.
//! * `failure` is what goes wrong.
