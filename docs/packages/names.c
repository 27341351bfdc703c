/*
 * Lets the static program resolve host names without loading shared libraries. .ci/packages links this file only into
 * the static program.
 *
 * GNU libc resolves host names with the modules that /etc/nsswitch.conf names. A static program would load these modules
 * and libc.so from the machine on which it runs, and they work only with the libc version with which the program was
 * linked. Since version 2.34, libc.a itself contains the modules `files` and `dns`. The function below selects these two,
 * so nsswitch.conf(5) is ignored and no module is loaded. docs/packages.md lists the host names that are therefore not
 * found.
 */
#include <nss.h>

__attribute__((constructor)) static void names_without_modules(void)
{
    __nss_configure_lookup("hosts", "files dns");
}
