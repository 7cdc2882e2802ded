// SPDX-License-Identifier: PostgreSQL
//
// A job as JSON and as environment variables.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "handler/job_text.h"

static const mr_claimed_job plain = {
    .id = 7,
    .attempt = 2,
    .max_attempts = 3,
    .priority = 50,
    .queue = "mail",
    .kind = "welcome",
    .args = "{\"to\": \"a\"}",
    .created_at_us = INT64_C(1731661811000042),
    .lease_until_us = INT64_C(1731661841500000),
};

static mr_claimed_job full(void)
{
    mr_claimed_job job = plain;

    job.queue = "a \"b\"\n";
    job.meta = "{\"trace\": 1}";
    job.tenant = "acme";
    job.ref = "r-1";
    job.source = "capture";
    job.timeout_ms = 1500;
    job.state = "\x00\x01\x02";
    job.state_size = 3;
    job.blob = "";
    job.blob_size = 0;
    return job;
}

static void as_json(void **state)
{
    AUTO_BUF out;
    mr_claimed_job rich = full();

    (void)state;
    buf_init(&out, JOB_TEXT_MAX);
    job_text_json(&plain, &out);
    assert_string_equal(
        buf_peek(&out),
        "{\"id\":7,\"queue\":\"mail\",\"kind\":\"welcome\",\"args\":{\"to\": \"a\"},\"attempt\":2,"
        "\"max_attempts\":3,\"priority\":50,\"created_at\":\"2024-11-15T09:10:11.000042Z\","
        "\"lease_until\":\"2024-11-15T09:10:41.500000Z\"}");
    buf_done(&out);
    job_text_json(&rich, &out);
    assert_string_equal(
        buf_peek(&out),
        "{\"id\":7,\"queue\":\"a \\\"b\\\"\\u000a\",\"kind\":\"welcome\",\"args\":{\"to\": \"a\"},"
        "\"attempt\":2,\"max_attempts\":3,\"priority\":50,"
        "\"created_at\":\"2024-11-15T09:10:11.000042Z\","
        "\"lease_until\":\"2024-11-15T09:10:41.500000Z\",\"meta\":{\"trace\": 1},"
        "\"tenant\":\"acme\",\"ref\":\"r-1\",\"source\":\"capture\",\"timeout\":1.500,"
        "\"state\":\"AAEC\",\"blob\":\"\"}");
}

// Before 1970 the microseconds still count forward.
static void early_times(void **state)
{
    AUTO_BUF out;
    mr_claimed_job job = plain;

    (void)state;
    job.created_at_us = -1;
    buf_init(&out, JOB_TEXT_MAX);
    job_text_json(&job, &out);
    assert_non_null(strstr(buf_peek(&out), "\"created_at\":\"1969-12-31T23:59:59.999999Z\""));
}

static const char *look_up(char **env, const char *name)
{
    const char *found = NULL;

    for (; *env; env++) {
        size_t len = strlen(name);
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=') {
            assert_null(found);
            found = *env + len + 1;
        }
    }
    return found;
}

static void as_environment(void **state)
{
    mr_claimed_job rich = full();

    (void)state;
    setenv("MILLRACE_REF", "from outside", 1);
    setenv("MILLRACE_DSN", "from outside", 1);
    char **env = job_text_env(&rich, "mailer");
    assert_string_equal(look_up(env, "MILLRACE_JOB_ID"), "7");
    assert_string_equal(look_up(env, "MILLRACE_QUEUE"), "a \"b\"\n");
    assert_string_equal(look_up(env, "MILLRACE_KIND"), "welcome");
    assert_string_equal(look_up(env, "MILLRACE_ATTEMPT"), "2");
    assert_string_equal(look_up(env, "MILLRACE_MAX_ATTEMPTS"), "3");
    assert_string_equal(look_up(env, "MILLRACE_WORKER"), "mailer");
    assert_string_equal(look_up(env, "MILLRACE_REF"), "r-1");
    assert_string_equal(look_up(env, "MILLRACE_TENANT"), "acme");
    assert_string_equal(look_up(env, "MILLRACE_DSN"), "from outside");
    assert_string_equal(look_up(env, "PATH"), getenv("PATH"));
    free(env);
}

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

static void traces(void **state)
{
    static const char *const none[] = {
        "{}", "[]", "{\"traceparent\":7}",
        "{\"traceparent\":\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01x\"}",
        "{\"traceparent\":\"00-4BF92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\"}"};
    mr_claimed_job job = plain;

    (void)state;
    setenv("TRACEPARENT", "from outside", 1);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        job.meta = none[i];
        char **env = job_text_env(&job, "w");
        assert_null(look_up(env, "TRACEPARENT"));
        free(env);
    }
    job.meta = "{\"a\":1, \"traceparent\": \"" TRACE "\"}";
    char **env = job_text_env(&job, "w");
    assert_string_equal(look_up(env, "TRACEPARENT"), TRACE);
    free(env);
}

// Another job's variables, inherited, would be worse than none.
static void what_the_job_lacks_is_not_inherited(void **state)
{
    (void)state;
    setenv("MILLRACE_REF", "from outside", 1);
    setenv("MILLRACE_JOB_ID", "from outside", 1);
    char **env = job_text_env(&plain, "mailer");
    assert_null(look_up(env, "MILLRACE_REF"));
    assert_string_equal(look_up(env, "MILLRACE_JOB_ID"), "7");
    free(env);
    env = job_text_env(NULL, "mailer");
    assert_null(look_up(env, "MILLRACE_JOB_ID"));
    assert_string_equal(look_up(env, "MILLRACE_WORKER"), "mailer");
    free(env);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_json),
        cmocka_unit_test(early_times),
        cmocka_unit_test(as_environment),
        cmocka_unit_test(traces),
        cmocka_unit_test(what_the_job_lacks_is_not_inherited),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
