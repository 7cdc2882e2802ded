// SPDX-License-Identifier: PostgreSQL
//
// What a handler writes: whatever it is, what goes to the database of it is JSON.

#include "base/json_scan.h"
#include "fuzz.h"
#include "handler/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct outcome outcome;
    struct mr_error err;
    int64_t id = 0;
    AUTO_BUF out;

    buf_init(&out, 1 << 26);
    outcome_init(&outcome);
    bool meant = answer_is_meant(text, size);
    if (answer_parse(text, size, &id, &outcome, &err) == 0) {
        MUST(id >= -1);
        outcome_print(&outcome, id, &out);
        MUST(out.status == 0);
        MUST(json_check((struct json_slice){out.data, out.len}, NULL) == 0);
    } else {
        MUST(err.message[0]);
    }
    MUST(!meant || json_check((struct json_slice){text, size}, NULL) == 0);
    outcome_done(&outcome);
    return 0;
}
