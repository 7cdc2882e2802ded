// SPDX-License-Identifier: PostgreSQL
//
// What a bridge reads: addresses, answers of Redis, errors.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "daemon/bridge_batch.h"
#include "daemon/bridge_error.h"
#include "daemon/bridge_look.h"
#include "store/redis_url.h"

// ---- addresses ----

static void addresses(void **state)
{
    static const struct {
        const char *text, *host, *path, *user, *password, *place;
        int port, database;
    } rows[] = {
        {"redis://h", "h", "", "", "", "h:6379", 6379, 0},
        {"redis://h/", "h", "", "", "", "h:6379", 6379, 0},
        {"redis://h:1/15", "h", "", "", "", "h:1", 1, 15},
        {"redis://[::1]:7000", "::1", "", "", "", "[::1]:7000", 7000, 0},
        {"redis://:p%40ss@h", "h", "", "", "p@ss", "h:6379", 6379, 0},
        {"redis://u:a:b@c@h:65535/0", "h", "", "u", "a:b@c", "h:65535", 65535, 0},
        {"unix:///tmp/s", "", "/tmp/s", "", "", "/tmp/s", 0, 0},
        {"unix:///tmp/a%20b?db=3", "", "/tmp/a b", "", "", "/tmp/a b", 0, 3},
    };
    struct redis_url url;
    char place[REDIS_TEXT_MAX + 16];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(redis_url_parse(rows[i].text, &url, NULL), 0);
        assert_string_equal(url.host, rows[i].host);
        assert_string_equal(url.path, rows[i].path);
        assert_string_equal(url.user, rows[i].user);
        assert_string_equal(url.password, rows[i].password);
        assert_int_equal(url.port, rows[i].port);
        assert_int_equal(url.database, rows[i].database);
        redis_url_place(&url, place, sizeof(place));
        assert_string_equal(place, rows[i].place);
    }
}

static void wrong_addresses(void **state)
{
    static const char *const rows[] = {
        "",
        "h:6379",
        "redis:/h",
        "redis://",
        "redis://u:geheim@",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:x",
        "redis://h:",
        "redis://h/x",
        "redis://h/0/1",
        "redis://h?db=1",
        "redis://:geheim%2@h",
        "redis://:geheim%zz@h",
        "redis://:geheim%00@h",
        "redis://[::1",
        "redis://[::1]x",
        "unix://tmp/s",
        "unix:///s?db=x",
        "unix:///s?x=1",
        "rediss://:geheim@h",
    };
    struct redis_url url;
    struct mr_error err;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(redis_url_parse(rows[i], &url, &err), MR_ECONFIG);
        assert_null(strstr(err.message, "geheim"));
        assert_true(err.hint[0]);
    }
    char longer[2 * REDIS_TEXT_MAX] = "redis://";
    memset(longer + 8, 'h', REDIS_TEXT_MAX);
    assert_int_equal(redis_url_parse(longer, &url, &err), MR_ECONFIG);
}

// ---- answers, as hiredis reads them ----

static redisReply *read_reply(const char *text, size_t size)
{
    redisReader *reader = redisReaderCreate();
    void *reply = NULL;

    assert_int_equal(redisReaderFeed(reader, text, size), REDIS_OK);
    assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
    assert_non_null(reply);
    redisReaderFree(reader);
    return reply;
}

#define READ(text) read_reply(text, sizeof(text) - 1)

static void fields(void **state)
{
    AUTO_BUF json;
    redisReply *reply = READ("*8\r\n$1\r\nb\r\n$2\r\n\"\\\r\n$1\r\na\r\n$1\r\n\n\r\n"
                             "$1\r\nb\r\n$2\r\n\0\xff\r\n$1\r\n\xff\r\n$0\r\n\r\n");

    (void)state;
    buf_init(&json, 1000);
    assert_true(bridge_fields_json(reply, &json));
    assert_string_equal(
        json.data,
        "{\"a\":\"\\u000a\",\"b\":[\"\\\"\\\\\",{\"base64\":\"AP8=\"}],\"base64:/w==\":\"\"}");
    freeReplyObject(reply);
}

static void text(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool good;
    } rows[] = {
        {"", 0, true},
        {"a\x7f", 2, true},
        {"\0", 1, false},
        {"\xc3\xbc", 2, true},
        {"\xc3", 1, false},
        {"\xc0\xaf", 2, false},
        {"\xc1\xbf", 2, false},
        {"\xe0\x9f\xbf", 3, false},
        {"\xe0\xa0\x80", 3, true},
        {"\xed\x9f\xbf", 3, true},
        {"\xed\xa0\x80", 3, false},
        {"\xef\xbf\xbf", 3, true},
        {"\xf0\x8f\xbf\xbf", 4, false},
        {"\xf0\x90\x80\x80", 4, true},
        {"\xf4\x8f\xbf\xbf", 4, true},
        {"\xf4\x90\x80\x80", 4, false},
        {"\xf5\x80\x80\x80", 4, false},
        {"\x80", 1, false},
        {"\xe2\x82x", 3, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(bridge_is_text(rows[i].bytes, rows[i].size), rows[i].good);
    }
}

static void entries(void **state)
{
    struct bridge_batch batch = {0};
    const redisReply *list = NULL;
    redisReply *reply =
        READ("*1\r\n*2\r\n$1\r\ns\r\n*3\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nn\r\n$1\r\n1\r\n"
             "*2\r\n$3\r\n1-2\r\n*-1\r\n*-1\r\n");

    (void)state;
    assert_int_equal(bridge_read_entries(reply, &list, NULL), 0);
    assert_int_equal(bridge_batch_add(&batch, list, NULL), 0);
    assert_int_equal(batch.count, 2); // what has no id is nothing
    assert_string_equal(batch.entries[0].id, "1-1");
    assert_string_equal(batch.entries[0].fields, "{\"n\":\"1\"}");
    assert_false(batch.entries[0].gone);
    assert_true(batch.entries[1].gone);
    assert_int_equal(batch.bytes, strlen("{\"n\":\"1\"}"));
    bridge_batch_done(&batch);
    freeReplyObject(reply);

    reply = READ("*-1\r\n");
    assert_int_equal(bridge_read_entries(reply, &list, NULL), 0);
    assert_null(list);
    freeReplyObject(reply);
}

static void wrong_entries(void **state)
{
    static const char *const rows[] = {
        ":1\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*1\r\n$3\r\n1-1\r\n",
        "*1\r\n*2\r\n:1\r\n*0\r\n",
        "*1\r\n*2\r\n$3\r\n1-1\r\n:1\r\n",
        "*1\r\n*2\r\n$3\r\n1-1\r\n*1\r\n$1\r\na\r\n",
        "*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n:1\r\n",
        "*1\r\n*2\r\n$50\r\n11111111111111111111111111111111111111111111111111\r\n*0\r\n",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct bridge_batch batch = {0};
        redisReply *reply = read_reply(rows[i], strlen(rows[i]));
        assert_int_equal(bridge_batch_add(&batch, reply, NULL), MR_EINVALID);
        bridge_batch_done(&batch);
        freeReplyObject(reply);
    }
}

static void claimed(void **state)
{
    char next[BRIDGE_ID_SIZE] = "";
    const redisReply *list = NULL;
    redisReply *reply = READ("*3\r\n$3\r\n7-0\r\n*0\r\n*0\r\n");

    (void)state;
    assert_int_equal(bridge_claimed_entries(reply, &list, next, NULL), 0);
    assert_string_equal(next, "7-0");
    assert_int_equal(list->elements, 0);
    freeReplyObject(reply);
    reply = READ("*0\r\n");
    assert_int_equal(bridge_claimed_entries(reply, &list, next, NULL), MR_EINVALID);
    freeReplyObject(reply);
}

// ---- how far behind ----

static void take(struct bridge_look *look, int step, const char *answer)
{
    redisReply *reply = read_reply(answer, strlen(answer));

    bridge_look_take(look, step, "g", reply);
    freeReplyObject(reply);
}

static void looks(void **state)
{
    struct bridge_look look = {0};
    char floor[BRIDGE_ID_SIZE] = "";

    (void)state;
    bridge_look_init(&look);
    assert_false(bridge_look_floor(&look, floor)); // nothing is known
    take(&look, 0, "*4\r\n$6\r\nlength\r\n:9\r\n$17\r\nlast-generated-id\r\n$3\r\n9-0\r\n");
    take(&look, 1,
         "*2\r\n*2\r\n$4\r\nname\r\n$1\r\nx\r\n*6\r\n$4\r\nname\r\n$1\r\ng\r\n"
         "$17\r\nlast-delivered-id\r\n$3\r\n8-0\r\n$3\r\nlag\r\n:1\r\n");
    assert_int_equal(look.lag, 1);
    assert_int_equal(look.length, 9);
    assert_false(bridge_look_floor(&look, floor)); // what is pending is not
    take(&look, 2, "-NOPERM no\r\n");
    assert_false(bridge_look_floor(&look, floor));
    take(&look, 2, "*4\r\n:2\r\n$3\r\n5-7\r\n$3\r\n6-0\r\n*0\r\n");
    assert_true(bridge_look_floor(&look, floor));
    assert_string_equal(floor, "5-7");
    take(&look, 2, "*4\r\n:1\r\n$3\r\n9-0\r\n$3\r\n9-0\r\n*0\r\n"); // delivered in between
    assert_true(bridge_look_floor(&look, floor));
    assert_string_equal(floor, "8-1");
    take(&look, 2, "*4\r\n:0\r\n$-1\r\n$-1\r\n*-1\r\n");
    assert_true(bridge_look_floor(&look, floor));
    assert_string_equal(floor, "8-1");
    take(&look, 3, "*2\r\n$1\r\n2\r\n$6\r\n500000\r\n");
    assert_true(bridge_look_age(&look) == 0);
    take(&look, 4, "*1\r\n*2\r\n$3\r\n9-0\r\n*0\r\n");
    assert_true(bridge_look_age(&look) > 2.49 && bridge_look_age(&look) < 2.5);
}

static void unknown_lag(void **state)
{
    struct bridge_look look = {0};

    (void)state;
    bridge_look_init(&look);
    take(&look, 0, "*4\r\n$6\r\nlength\r\n:9\r\n$17\r\nlast-generated-id\r\n$3\r\n9-0\r\n");
    take(&look, 1,
         "*1\r\n*6\r\n$4\r\nname\r\n$1\r\ng\r\n$17\r\nlast-delivered-id\r\n$3\r\n8-0\r\n"
         "$3\r\nlag\r\n$-1\r\n");
    assert_int_equal(look.lag, 9);
    take(&look, 1,
         "*1\r\n*4\r\n$4\r\nname\r\n$1\r\ng\r\n$17\r\nlast-delivered-id\r\n$3\r\n9-0\r\n");
    assert_int_equal(look.lag, 0);
}

// Of a group that has read up to `delivered`, 8-0 or 9-0, of a stream up to 9-0.
static void take_all(struct bridge_look *look, const char *delivered, int lag, bool waits)
{
    char groups[128];

    bridge_look_init(look);
    take(look, 0, "*4\r\n$6\r\nlength\r\n:9\r\n$17\r\nlast-generated-id\r\n$3\r\n9-0\r\n");
    snprintf(groups, sizeof(groups),
             "*1\r\n*6\r\n$4\r\nname\r\n$1\r\ng\r\n$17\r\nlast-delivered-id\r\n$3\r\n%s\r\n"
             "$3\r\nlag\r\n:%d\r\n",
             delivered, lag);
    take(look, 1, groups);
    take(look, 4, waits ? "*1\r\n*2\r\n$3\r\n9-0\r\n*0\r\n" : "*0\r\n");
}

static void excessive_lag(void **state)
{
    struct bridge_look look = {0};

    (void)state;
    take_all(&look, "8-0", 501, true);
    assert_int_equal(look.lag, 501); // nothing shows yet that it is too high
    take_all(&look, "9-0", 500, true);
    assert_int_equal(look.lag, 500); // one that came between the steps
    take_all(&look, "9-0", 500, false);
    assert_int_equal(look.lag, 0);
    take_all(&look, "8-0", 501, true);
    assert_int_equal(look.lag, 1);
    take_all(&look, "8-0", 3, true); // Redis counts from the beginning again
    assert_int_equal(look.lag, 3);
    take_all(&look, "9-0", 0, false);
    assert_int_equal(look.lag, 0);
}

// ---- errors ----

static void faults(void **state)
{
    static const struct {
        int code;
        const char *sqlstate;
        enum bridge_fault fault;
    } rows[] = {
        {MR_ECONNECT, "", FAULT_LOST},         {MR_ECONNECT, "57P01", FAULT_LOST},
        {MR_ECONFLICT, "40001", FAULT_TIMES},  {MR_ECONFLICT, "40P01", FAULT_TIMES},
        {MR_EFULL, "MR002", FAULT_TIMES},      {MR_ERESTORED, "MR004", FAULT_TIMES},
        {MR_ESCHEMA, "42883", FAULT_TIMES},    {MR_EDATABASE, "42P01", FAULT_TIMES},
        {MR_EPRIVILEGE, "42501", FAULT_TIMES}, {MR_EDATABASE, "53200", FAULT_TIMES},
        {MR_ETIMEOUT, "57014", FAULT_TIMES},   {MR_ENOMEM, "", FAULT_TIMES},
        {MR_ELIMIT, "", FAULT_ENTRY},          {MR_ELIMIT, "54000", FAULT_ENTRY},
        {MR_EINVALID, "22P02", FAULT_ENTRY},   {MR_EDATABASE, "23505", FAULT_ENTRY},
        {MR_EDATABASE, "P0001", FAULT_ENTRY},  {MR_EDATABASE, "42703", FAULT_ENTRY},
        {MR_EDATABASE, "XX000", FAULT_ENTRY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct mr_error err = {.code = rows[i].code};
        snprintf(err.sqlstate, sizeof(err.sqlstate), "%s", rows[i].sqlstate);
        assert_int_equal(bridge_fault_of(&err), rows[i].fault);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses),   cmocka_unit_test(wrong_addresses),
        cmocka_unit_test(fields),      cmocka_unit_test(text),
        cmocka_unit_test(entries),     cmocka_unit_test(wrong_entries),
        cmocka_unit_test(claimed),     cmocka_unit_test(looks),
        cmocka_unit_test(unknown_lag), cmocka_unit_test(excessive_lag),
        cmocka_unit_test(faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
