// SPDX-License-Identifier: PostgreSQL
//
// Which addresses a webhook may call. A name in a URL can be made to point anywhere, so it is the
// address that counts, looked at after the name was resolved and before anything is sent.

#ifndef MILLRACE_HANDLER_HTTP_GUARD_H
#define MILLRACE_HANDLER_HTTP_GUARD_H

#include <stdbool.h>
#include <sys/socket.h>

// What kind of address it is that is not public ("loopback", "private", "link-local" and so on);
// NULL for a public one. An IPv4 address inside of an IPv6 one counts as what it is.
const char *http_guard_reason(const struct sockaddr *address);

// Whether the host of a URL, as it stands there (IPv6 with or without brackets), is by itself an
// address that is not public, or localhost: whoever wrote it meant it.
bool http_guard_names_private(const char *host);

#endif
