/*
 * Linked into the static program only (.ci/packages).
 *
 * GNU libc looks names up through modules that /etc/nsswitch.conf names. A static program would load those of the
 * machine that it runs on, and libc.so with them, which must be of the very version that the program was linked
 * with. `files` and `dns` are part of libc itself, also of libc.a, since 2.34: these two are asked, whatever
 * nsswitch.conf(5) says, and nothing is loaded. docs/packages.md says what that leaves out.
 */
#include <nss.h>

__attribute__((constructor)) static void names_without_modules(void)
{
    __nss_configure_lookup("hosts", "files dns");
}
