use super::*;

fn original(url: &str) -> Option<(&'static str, String)> {
    unwrapped_link(url).map(|unwrapped| (unwrapped.service, unwrapped.original))
}

#[test]
fn wrapped_link_of_each_service_returns_its_original() {
    for (wrapped, service, expected) in [
        (
            "https://nam02.safelinks.protection.outlook.com/?url=https%3A%2F%2Fwww.example.org%2Fa%20b%3Fq%3D1%26r%3D2%23top&data=02%7C01%7Cx&sdata=y%3D&reserved=0",
            "safelinks",
            "https://www.example.org/a%20b?q=1&r=2#top",
        ),
        (
            "HTTPS://EUR01.SafeLinks.Protection.Outlook.COM/ap/x-1/?URL=http%3a%2f%2fexample.org&data=x",
            "safelinks",
            "http://example.org",
        ),
        // `&amp;` instead of `&`, in a text that was converted from HTML.
        (
            "https://gcc02.safelinks.protection.outlook.com/?data=1&amp;url=https%3A%2F%2Fexample.org%2F&amp;reserved=0",
            "safelinks",
            "https://example.org/",
        ),
        (
            "https://urldefense.proofpoint.com/v1/url?u=http://stat.ethz.ch/mailman/listinfo/r-help&k=abc%3D%3D&r=x&m=y&s=z",
            "proofpoint",
            "http://stat.ethz.ch/mailman/listinfo/r-help",
        ),
        (
            "https://urldefense.proofpoint.com/v2/url?u=https-3A__stat.ethz.ch_mailman_listinfo_r-2Dhelp-3Fa-3D1&d=DwIC&c=x&r=y&m=z&s=w&e=",
            "proofpoint",
            "https://stat.ethz.ch/mailman/listinfo/r-help?a=1",
        ),
        (
            "https://urldefense.us/v3/__https://example.org/a?b=*1__;JQ!!org!sig$",
            "proofpoint",
            "https://example.org/a?b=%1",
        ),
        (
            "https://urldefense.com/v3/__http:/example.org/a*b__;Iw!!org!sig$",
            "proofpoint",
            "http://example.org/a#b",
        ),
        (
            "https://ci3.googleusercontent.com/meips/ADKq_NZ-x=s0-d-e1-ft#https://img.example.org/a.png?w=1#f",
            "gmail-proxy",
            "https://img.example.org/a.png?w=1#f",
        ),
        (
            "http://ci5.googleusercontent.com/proxy/x=s0-d-e1-ft#http://img.example.org/a.gif",
            "gmail-proxy",
            "http://img.example.org/a.gif",
        ),
        (
            "https://ecp.yusercontent.com/mail?url=https%3A%2F%2Fimg.example.org%2Fa.png&t=1&ymreqid=x&sig=y~D",
            "yahoo",
            "https://img.example.org/a.png",
        ),
        (
            "http://us.rd.yahoo.com/mail/footer/*http://example.org/x?y=1",
            "yahoo",
            "http://example.org/x?y=1",
        ),
        (
            "https://linkprotect.cudasvc.com/url?a=https%3a%2f%2fexample.org%2fx&c=E,1,abc&typo=1",
            "barracuda",
            "https://example.org/x",
        ),
        (
            "https://protect-us.mimecast.com/s/abc?url=https%3A%2F%2Fexample.org%2F",
            "mimecast",
            "https://example.org/",
        ),
        (
            "https://www.google.co.uk/url?sa=t&q=https%3A%2F%2Fexample.org%2Fx&usg=y",
            "google",
            "https://example.org/x",
        ),
        (
            "https://google.com/url?url=https://example.org/",
            "google",
            "https://example.org/",
        ),
    ] {
        assert_eq!(
            original(wrapped),
            Some((service, expected.to_owned())),
            "{wrapped}"
        );
    }
}

#[test]
fn link_of_several_layers_returns_the_innermost_original() {
    let inner = "https://urldefense.com/v3/__https://example.org/*a__;Iw!!org!sig$";
    let encoded: String = inner.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let wrapped =
        format!("https://nam02.safelinks.protection.outlook.com/?url={encoded}&reserved=0");
    assert_eq!(
        original(&wrapped),
        Some(("safelinks", "https://example.org/#a".to_owned()))
    );
}

#[test]
fn link_without_a_certain_web_original_is_not_unwrapped() {
    let deep = (0..20).fold("https://example.org/".to_owned(), |url, _| {
        format!(
            "https://google.com/url?q={}",
            url.replace('%', "%25").replace('&', "%26")
        )
    });
    for url in [
        "https://example.org/?url=https%3A%2F%2Fother.example",
        // No original in the URL.
        "https://protect-us.mimecast.com/s/abc?domain=example.org",
        "https://nam02.safelinks.protection.outlook.com/?data=x",
        "https://urldefense.com/v3/__http://www.example.com/",
        "https://lh3.googleusercontent.com/a/photo#https://example.org/",
        // Originals with a scheme other than http, https or ftp, also inside several layers.
        "https://nam02.safelinks.protection.outlook.com/?url=javascript%3Aalert(1)",
        "https://nam02.safelinks.protection.outlook.com/?url=%20JavaScript%3Aalert(1)",
        "https://nam02.safelinks.protection.outlook.com/?url=java%0Ascript%3Aalert(1)",
        "https://google.com/url?q=https%3A%2F%2Flinkprotect.cudasvc.com%2Furl%3Fa%3Djavascript%253Aalert(1)",
        "https://urldefense.com/v3/__javascript:alert(1)__;!!org!sig$",
        "https://ci3.googleusercontent.com/proxy/x#data:text/html,x",
        "https://linkprotect.cudasvc.com/url?a=file:///etc/passwd",
        // Wrapped links whose target URL contains control characters or has no valid host.
        "https://google.com/url?q=https://example.org/%0d%0aX:1",
        "https://google.com/url?q=https://example.org%00.evil.example/",
        "https://google.com/url?q=https:///x",
        "https://google.com/url?q=https://a%20b/",
        // URLs with two originals, and damaged Proofpoint URLs.
        "https://google.com/url?q=https://a.example/&q=https://b.example/",
        "https://urldefense.com/v3/__http://example.org/**Za__;Iw!!org!sig$",
        "https://urldefense.com/v3/__http://example.org/a__;Iw!!org!sig$",
        // Hosts that only look like those of the services.
        "https://safelinks.protection.outlook.com.evil.example/?url=https://example.org",
        "https://nam02.safelinks.protection.outlook.com@evil.example/?url=https://example.org",
        "https://google.evil.example/url?q=https://example.org",
        "https://user@google.com/url?q=https://example.org",
        &deep,
    ] {
        assert_eq!(original(url), None, "{url}");
    }
}

#[test]
fn original_is_written_in_ascii_without_blanks_and_is_final() {
    let wrapped = "https://urldefense.com/v3/__http://www.example.com/**A*Bx*__;w60gIiI!!foo!bar$";
    let read = original(wrapped);
    assert_eq!(
        read, None,
        "a letter after one asterisk is text, so one byte is left"
    );
    let wrapped =
        "https://urldefense.com/v3/__http://www.example.com/**Aa*b*.html__;w60gIg!!foo!bar$";
    let (_, url) = original(wrapped).expect("wrapped");
    assert_eq!(url, "http://www.example.com/%C3%ADa%20b%22.html");
    assert_eq!(original(&url), None);
}

fn in_text(text: &str) -> Vec<(&str, String, bool)> {
    let mut found = Vec::new();
    wrapped_in_text(text.as_bytes(), |link| {
        found.push((&text[link.place], link.unwrapped.original, link.is_complete));
    });
    found
}

#[test]
fn wrapped_links_of_a_text_end_where_the_sentence_goes_on() {
    let google = "https://google.com/url?q=https://example.org/x";
    let proofpoint = "https://urldefense.com/v3/__https://example.org/x__;!!foo!bar$";
    for (before, url, after) in [
        ("See <", google, "> now"),
        ("(", google, ")."),
        ("x: ", google, ", y"),
        ("\"", google, "\""),
        ("*", proofpoint, ".x"),
        ("[", proofpoint, "]"),
        ("", google, ""),
        ("a\n", google, "\n\nb"),
        ("> ", google, "\n> \n> next"),
    ] {
        let text = format!("{before}{url}{after}");
        let found = in_text(&text);
        assert_eq!(
            found,
            [(url, "https://example.org/x".to_owned(), true)],
            "{text}"
        );
    }
}

#[test]
fn wrapped_link_at_the_end_of_a_long_line_is_not_certain() {
    let url =
        "https://urldefense.proofpoint.com/v2/url?u=https-3A__www.example.org_abcdefghijkl&d=";
    let text = format!("{url}\nDwMFaQ&c=x&e=\n");
    assert_eq!(
        in_text(&text),
        [(
            url,
            "https://www.example.org/abcdefghijkl".to_owned(),
            false
        )]
    );
    let whole = format!("{url}DwMFaQ&c=x&e=");
    let text = format!("{whole}\nThe next line.\n");
    assert!(matches!(in_text(&text)[..], [(found, _, true)] if found == whole));
}

#[test]
fn mark_at_the_end_of_a_long_line_may_be_inside_of_a_link() {
    let url = "https://urldefense.proofpoint.com/v2/url?u=https-3A__www-2Dabcdefghijklmnop";
    let text = format!("{url}.\nexample.org&d=x&e=\n");
    assert!(matches!(in_text(&text)[..], [(found, _, false)] if found == url));
    let text = format!("{url}.\n\nThe next paragraph.\n");
    assert!(matches!(in_text(&text)[..], [(_, _, true)]));
}

#[test]
fn search_in_hostile_text_is_linear() {
    let line = "https://google.com/url?q=https://example.org/x ".repeat(20_000);
    let brackets = format!(
        "https://google.com/url?q=https://example.org/x{}",
        ")".repeat(60_000)
    );
    let tags = "<a title=\"".repeat(50_000) + &"<!".repeat(50_000) + &"<script".repeat(50_000);
    let started = std::time::Instant::now();
    assert_eq!(in_text(&line).len(), 20_000);
    in_text(&brackets);
    wrapped_between_tags(tags.as_bytes(), |_, _, _| {});
    may_hold_wrapped("s://A".repeat(100_000).as_bytes());
    // A quadratic search would take minutes.
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn url_inside_another_url_is_not_a_link_of_its_own() {
    let google = "https://google.com/url?q=https://example.org/x";
    assert!(in_text(&format!("https://web.archive.org/web/2020/{google} x")).is_empty());
    assert!(in_text(&format!("xhttps{}", google.trim_start_matches("https"))).is_empty());
}
