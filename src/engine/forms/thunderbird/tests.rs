use super::*;

fn text(target: Result<Referent<'_>, Refusal>) -> String {
    match target {
        Ok(Referent::Url(url)) => url,
        other => format!("{other:?}"),
    }
}

#[test]
fn a_url_in_a_field_keeps_its_blanks_and_loses_its_folds() {
    for (field, url) in [
        (" file:///C:/tmp/a.jpg", "file:///C:/tmp/a.jpg"),
        (
            " file:///C:/My Docs/a b.pdf ",
            "file:///C:/My%20Docs/a%20b.pdf",
        ),
        ("\r\n http://h/a\r\n\tb;c=d ", "http://h/ab;c=d"),
        (" <http://h/a>", "http://h/a"),
    ] {
        assert_eq!(text(url_of_field(field.as_bytes())), url);
    }
    assert_eq!(url_of_field(b"  "), Err(missing_url()));
}

#[test]
fn the_url_of_a_cloud_part_ends_where_a_known_parameter_begins() {
    for (field, url) in [
        (" cloudFile; url=http://h/x;y=1;z", "http://h/x;y=1;z"),
        (" cloudFile; url=http://h/x;name=1", "http://h/x;name=1"),
        (
            " cloudFile; url=http://h/x; provider=akey; data=\"e\"",
            "http://h/x",
        ),
        (" cloudfile; URL=http://h/x;\r\n data*0=\"e\"", "http://h/x"),
        ("cloudFile;url=http://h/x;a=b;name=c.zip", "http://h/x;a=b"),
        (
            " filehosting;url=http://h/x;name=c.zip;size=1;mime=a/b",
            "http://h/x",
        ),
        (
            " cloudFile; url=\"http://h/x; name=y\"; name=z",
            "http://h/x;%20name=y",
        ),
    ] {
        assert_eq!(text(cloud_part(field.as_bytes()).0), url);
    }
    for field in [
        " cloudFile",
        " cloudFile;",
        " cloudFile; url=",
        " cloudFile; provider=x",
    ] {
        assert_eq!(cloud_part(field.as_bytes()).0, Err(missing_url()));
    }
}

#[test]
fn the_name_of_a_cloud_part_is_its_last_parameter() {
    for (field, name) in [
        (
            " cloudFile; url=http://h/x; name=a b;c.zip",
            Some("a b;c.zip"),
        ),
        (
            " cloudFile; url=http://h/x; provider=k; file=file:///a; name=\"\r\n c.zip\"",
            Some("c.zip"),
        ),
        ("cloudFile;url=http://h/x;name=c.zip", Some("c.zip")),
        (" cloudFile; url=http://h/x;name=c.zip", None),
        (" cloudFile; url=http://h/x; name=", None),
    ] {
        assert_eq!(cloud_part(field.as_bytes()).1.as_deref(), name, "{field}");
    }
}
