# /etc/dovecot/sieve/embody.sieve
require "vnd.dovecot.filter";

# "embody" is the program of that name in sieve_filter_bin_dir. What it writes becomes the message, if it
# ends with 0. When it fails, is missing or takes too long, the message stays as it came, and what follows
# goes on. As a test, not an action ("filter" alone), since an action that fails ends all scripts: the
# message would go to INBOX, past the user's own rules.
if not filter "embody" {
}
