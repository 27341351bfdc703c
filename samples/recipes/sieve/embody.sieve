# /etc/dovecot/sieve/embody.sieve
require "vnd.dovecot.filter";

# "embody" is the program with this name in sieve_filter_bin_dir. If it exits with 0, its output replaces the message.
# If it fails, is not installed or exceeds its time limit, the message is not changed, and the next commands run.
# "filter" is used as a test here. As an action, a failure would end all scripts, and the message would be delivered to
# INBOX without the rules of the user.
if not filter "embody" {
}
