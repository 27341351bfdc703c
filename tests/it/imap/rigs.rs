//! Checks the assumptions of the tests about their servers: each keeps bytes, flags and dates, in its own way.

use super::client::Client;
use super::proxy::Proxy;
use super::rig::{Kind, Server};

#[test]
fn each_test_server_returns_the_messages_stored_on_it() {
    for kind in Kind::ALL {
        let Some(server) =
            Server::start("each_test_server_returns_the_messages_stored_on_it", kind)
        else {
            continue;
        };
        let message = b"From: me@example.org\r\nSubject: one\r\n\r\nhello\r\n";
        let mut client = server.client();
        let date = "01-Feb-2003 04:05:06 +0000";
        client.append("INBOX", "\\Seen \\Flagged", date, message);
        let all = server.client().all("INBOX");
        assert_eq!(all.len(), 1, "{kind:?}: {all:?}");
        assert_eq!(all[0].size, message.len(), "{kind:?}");
        let flags: Vec<&str> = all[0].flags.iter().map(String::as_str).collect();
        assert_eq!(flags, ["\\flagged", "\\seen"], "{kind:?}");
        assert!(
            all[0].date.trim_start().contains("Feb-2003 04:05:06"),
            "{kind:?}: {}",
            all[0].date
        );
        client.say(&format!("CREATE {}", server.folder("Other")));
        let folders = client.folders();
        assert!(
            folders.contains(&server.folder("Other")),
            "{kind:?}: {folders:?}"
        );
        assert!(server.url("INBOX").ends_with("/INBOX"));
    }
}

#[test]
fn test_proxy_counts_bytes_and_cuts_connections() {
    let Some(server) = Server::start(
        "test_proxy_counts_bytes_and_cuts_connections",
        Kind::Dovecot,
    ) else {
        return;
    };
    let proxy = Proxy::to(server.port);
    let mut client = Client::login(proxy.port, "me");
    let (to_server, from_server) = proxy.traffic();
    assert_eq!(to_server, "t1 LOGIN me secret\r\n".len() as u64);
    assert!(from_server > 20);
    proxy.cut_after(3);
    let cut = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| client.told("NOOP")));
    assert!(cut.is_err());
    Client::login(proxy.port, "me").say("NOOP");
}
