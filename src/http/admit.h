// SPDX-License-Identifier: PostgreSQL
//
// Looks at the head of a request: whether it is one, where it comes from, who sends it, what it
// wants.

#ifndef MILLRACE_HTTP_ADMIT_H
#define MILLRACE_HTTP_ADMIT_H

struct exchange;

// A refused body up to this size is read to its end.
#define ADMIT_DISCARD_MAX (1024 * 1024)

#define ADMIT_TOO_LARGE      "the body is too large"
#define ADMIT_TOO_LARGE_HINT "Send less at once, or jobs as NDJSON."

enum admission {
    ADMIT_RUN,     // the route runs when the body is there
    ADMIT_STREAM,  // the body is taken as it comes
    ADMIT_REPLIED, // refused; a body that is on its way is thrown away first, so that the client
                   // gets to read the reply
    ADMIT_CLOSE,   // refused, and nothing that follows on the connection can be trusted
};

enum admission admit(struct exchange *exchange, const char *method);

#endif
