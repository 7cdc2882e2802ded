// SPDX-License-Identifier: PostgreSQL
//
// The configuration file: what is read from it, and what a mistake in it is called.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/config.h"

static char path[] = "/tmp/millrace-config-XXXXXX";
static struct config *config;
static struct mr_error err;

static int load(const char *text)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    config_free(config);
    config = NULL;
    memset(&err, 0, sizeof(err));
    return config_load(path, &config, &err);
}

// The file is refused with this message (behind the file's name) and this hint.
static void refused(const char *text, const char *message, const char *hint)
{
    assert_int_equal(load(text), MR_ECONFIG);
    assert_null(config);
    assert_memory_equal(err.message, path, strlen(path));
    assert_string_equal(err.message + strlen(path), message);
    assert_string_equal(err.hint, hint);
}

static void defaults(void **state)
{
    (void)state;
    assert_int_equal(load("worker w { queue = q run = ./x }"), 0);
    const struct config_worker *worker = &config->workers[0];
    assert_null(config->dsn);
    assert_int_equal(config->maintain_ms, 1000);
    assert_int_equal(config->log_format, LOG_TEXT);
    assert_int_equal(config->log_level, LEVEL_INFO);
    assert_int_equal(config->worker_count, 1);
    assert_string_equal(worker->name, "w");
    assert_string_equal(worker->queue, "q");
    assert_int_equal(worker->kind, HANDLER_RUN);
    assert_string_equal(worker->target, "./x");
    assert_int_equal(worker->concurrency, sysconf(_SC_NPROCESSORS_ONLN));
    assert_int_equal(worker->batch, 100);
    assert_int_equal(worker->poll_ms, 100);
    assert_int_equal(worker->grace_ms, 30000);
    assert_int_equal(worker->lease_ms, 0);
    assert_int_equal(worker->timeout_ms, 0);
    assert_int_equal(worker->breaker.failures, 5);
    assert_int_equal(worker->breaker.open_ms, 30000);
    assert_null(worker->dsn);
    assert_null(worker->secret);
}

static void everything(void **state)
{
    (void)state;
    setenv("HOOK_SECRET", "s3cret", 1);
    assert_int_equal(
        load("dsn = \"postgresql://app@db/app\"  pooler = true  log = json  log_level = debug\n"
             "maintain = \"5s\" // as often\n"
             "worker hooks { queue = \"webhooks\" http = \"https://example.org/hook\"\n"
             "  concurrency = 64 batch = 20 timeout = \"30s\" lease = \"5min\" poll = \"250ms\"\n"
             "  grace = \"1h\" batch_wait = \"50ms\" private_networks = yes pooler = true\n"
             "  secret = \"${HOOK_SECRET}\" dsn = \"${HOOK_DSN:-dbname=other}\"\n"
             "  breaker { failures = 0 open_for = \"1min\" } }\n"
             "worker facts { queue = notes sql = dwh.process per_batch = true procedure = on }\n"
             "/* ${NOT_SET} */ # ${NOT_SET}\n"
             "queue webhooks { retention = \"30d\" max_attempts = 7 durability = relaxed\n"
             "                 concurrency = 20000 rate = \"100/s\"\n"
             "                 concurrency_per_key = 3 rate_per_tenant = \"20/min\" }\n"
             "queue empty { }\n"
             "retry mail { max_attempts = 9 base = \"1s\" factor = 1.5 cap = \"2h\" jitter = 0 }\n"
             "retry rest { }\n"),
        0);
    const struct config_worker *hooks = &config->workers[0];
    assert_string_equal(config->dsn, "postgresql://app@db/app");
    assert_true(config->pooler);
    assert_int_equal(config->log_format, LOG_JSON);
    assert_int_equal(config->log_level, LEVEL_DEBUG);
    assert_int_equal(config->maintain_ms, 5000);
    assert_int_equal(hooks->kind, HANDLER_HTTP);
    assert_int_equal(hooks->concurrency, 64);
    assert_int_equal(hooks->batch, 20);
    assert_int_equal(hooks->timeout_ms, 30000);
    assert_int_equal(hooks->lease_ms, 300000);
    assert_int_equal(hooks->poll_ms, 250);
    assert_int_equal(hooks->grace_ms, 3600000);
    assert_int_equal(hooks->batch_wait_ms, 50);
    assert_true(hooks->private_networks);
    assert_string_equal(hooks->secret, "s3cret");
    assert_string_equal(hooks->dsn, "dbname=other");
    assert_int_equal(hooks->breaker.failures, 0);
    assert_int_equal(hooks->breaker.open_ms, 60000);
    assert_int_equal(config->workers[1].kind, HANDLER_SQL);
    assert_true(config->workers[1].per_batch);
    assert_true(config->workers[1].procedure);
    assert_int_equal(config->queue_count, 2);
    assert_string_equal(
        config->queues[0].settings_json,
        "{\"concurrency\":20000,\"concurrency_per_key\":3,\"durability\":\"relaxed\",\"max_attempts\":7,"
        "\"rate\":\"100/s\",\"rate_per_tenant\":\"20/min\",\"retention\":\"30d\"}");
    assert_true(config->queues[0].has_retention);
    assert_true(config->queues[0].has_max_attempts);
    assert_string_equal(config->queues[1].settings_json, "{}");
    assert_false(config->queues[1].has_retention);
    assert_int_equal(config->retry_count, 2);
    assert_int_equal(config->retries[0].max_attempts, 9);
    assert_int_equal(config->retries[0].base_ms, 1000);
    assert_true(config->retries[0].factor == 1.5);
    assert_int_equal(config->retries[0].cap_ms, 7200000);
    assert_true(config->retries[0].jitter == 0);
    assert_int_equal(config->retries[1].max_attempts, 3);
}

static void unknown_keys(void **state)
{
    (void)state;
    refused("\n\nworkr w { }\n", ":3: unknown key \"workr\"", "Did you mean worker?");
    refused("worker w {\n queue = q\n cuncurrency = 3 }",
            ":3: unknown key \"cuncurrency\" in worker w", "Did you mean concurrency?");
    refused("worker w { queue = q exec = x breaker {\n failure = 3 } }",
            ":2: unknown key \"failure\" in breaker", "Did you mean failures?");
    refused("queue q {\n retentoin = \"1h\" }", ":2: unknown key \"retentoin\" in queue q",
            "Did you mean retention?");
    refused("retry k { zzzzzzzz = 1 }", ":1: unknown key \"zzzzzzzz\" in retry k",
            "Known here: max_attempts, base, factor, cap, jitter.");
}

#define HASH "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void http_section(void **state)
{
    (void)state;
    assert_int_equal(
        load("http { listen = \"[::1]:0\" hosts = {\"a.example\", \"b.example\"} idle = 5s\n"
             "token ops { role = admin hash = \"" HASH "\" }\n"
             "token eye { role = reader hash = \"" HASH "\" }\n"
             "alias term_queue_pending_count { metric = millrace_queue_depth queue = t } }"),
        0);
    assert_true(config->http.given);
    assert_string_equal(config->http.options.listen, "[::1]:0");
    assert_string_equal(config->http.options.hosts[1], "b.example");
    assert_null(config->http.options.hosts[2]);
    assert_int_equal(config->http.options.idle_ms, 5000);
    assert_int_equal(config->http.options.token_count, 2);
    assert_int_equal(config->http.options.tokens[1].rights, RIGHT_READ);
    assert_int_equal(config->http.options.tokens[0].hash[1], 0x23);
    assert_string_equal(config->http.options.aliases[0].metric, "millrace_queue_depth");
}

// The same, wherever the section ends.
static void refused_somewhere(const char *text, const char *message, const char *hint)
{
    assert_int_equal(load(text), MR_ECONFIG);
    assert_non_null(strstr(err.message, message));
    assert_non_null(strstr(err.hint, hint));
}

static void http_mistakes(void **state)
{
    (void)state;
    refused_somewhere("http { listen = nowhere }", "wrong value for \"listen\": \"nowhere\"",
                      "Write ADDRESS:PORT");
    refused_somewhere("http { listen = \"127.0.0.1:70000\" }", "wrong value for \"listen\"",
                      "Write ADDRESS:PORT");
    refused_somewhere("http { tls_key = k }", "tls_cert and tls_key go together",
                      "Give both files");
    refused_somewhere("http { token t { role = king hash = \"" HASH "\" } }",
                      "token t has no role that is known", "Write role");
    refused_somewhere("http { token t { role = admin hash = \"sha256:12\" } }",
                      "token t has no hash", "millrace token");
    refused_somewhere("http { alias a { metric = millrace_segments queue = q } }",
                      "alias a has no metric of a queue", "metric = ");
    refused_somewhere("http { alias \"a-b\" { metric = millrace_dead queue = q } }",
                      "alias a-b is no name for a metric", "letters");
    refused_somewhere("http { alias a { metric = millrace_dead } }", "alias a has no queue",
                      "Add queue");
    refused_somewhere("http { idle = 5s }\nhttp { idle = 6s }", "", "");
    refused_somewhere("http { lisen = x }", "unknown key \"lisen\" in http",
                      "Did you mean listen?");
}

static void bridges(void **state)
{
    (void)state;
    refused("bridge b { }", ":1: bridge b has no redis",
            "Add redis = \"redis://HOST:PORT\" and stream = \"KEY\".");
    refused("bridge b { redis = \"redis://h\" }", ":1: bridge b has no stream",
            "Add redis = \"redis://HOST:PORT\" and stream = \"KEY\".");
    refused("bridge b { redis = \"redis://h\" stream = s }",
            ":1: bridge b has neither sql nor queue",
            "Add sql = \"FUNCTION\" to call it with each batch, or queue = \"NAME\" to make jobs.");
    refused("bridge b { redis = \"redis://h\" stream = s queue = q kind = a kind_from = b }",
            ":1: bridge b has kind and kind_from", "Give one of them.");
    refused("bridge b { redis = \"redis://h\" stream = s sql = f priority = 3 }",
            ":1: bridge b has sql and priority",
            "That key is for jobs: leave it out, or leave sql out.");
    refused_somewhere("bridge b { redis = \"redis://h\" stream = s sql = \"f(x)\" }",
                      ":1: bridge b: not the name of a function: \"f(x)\"", "");
    refused_somewhere("bridge b { redis = \"redis://u:geheim@\" stream = s sql = f }",
                      ":1: bridge b: not the address of a Redis server: it has no host", "");
    refused_somewhere("bridge b { redis = \"redis://h\" stream = s sql = f from = last }",
                      ":1: wrong value for \"from\": \"last\"", "");
    refused_somewhere("bridge b { redis = \"redis://h\" stream = s sql = f block = 6s }",
                      ":1: bridge b: block is at most 5s", "");
    refused_somewhere("bridge b { redis = \"redis://h\" stream = s sql = f reclaim = 999ms }",
                      ":1: bridge b: reclaim is at least 1s", "");
    refused("bridge b { redis = \"redis://h\" stream = s sql = f batch = 10001 }",
            ":1: wrong value for \"batch\": \"10001\"", "Write a whole number from 1 to 10000.");
    refused("bridge b { redis = \"redis://h\" stream = s sql = f strem = x }",
            ":1: unknown key \"strem\" in bridge b", "Did you mean stream?");
    refused("wobble x", ":1: unknown key \"wobble\"",
            "Known here: dsn, pooler, log, log_level, maintain, blobs, blobs_access_key, "
            "blobs_secret_key, blobs_sweep, blobs_orphans, worker, queue, retry, schedule, bridge, "
            "relay, http.");
}

static void blobs(void **state)
{
    (void)state;
    setenv("BLOBS_SECRET", "geheim", 1);
    assert_int_equal(load("pooler = true"), 0);
    assert_null(config->blobs.address);
    assert_int_equal(load("blobs = \"s3://jobs/a?endpoint=http://127.0.0.1:9000\"\n"
                          "blobs_access_key = k blobs_secret_key = \"${BLOBS_SECRET}\""),
                     0);
    assert_string_equal(config->blobs.address, "s3://jobs/a?endpoint=http://127.0.0.1:9000");
    assert_string_equal(config->blobs.access_key, "k");
    assert_string_equal(config->blobs.secret_key, "geheim");
    assert_int_equal(load("blobs = \"s3://jobs\""), 0);
    assert_null(config->blobs.secret_key);
    refused("\nblobs = \"gs://jobs\"",
            ":2: not the address of a blob store: it does not begin with s3://",
            "Write s3://BUCKET[/PREFIX][?endpoint=http://HOST:PORT&region=R&style=path|host&"
            "ca=FILE].");
    refused_somewhere("blobs = \"s3://jobs?regoin=x\"",
                      ":1: not the address of a blob store: what follows ? is endpoint, region",
                      "Write s3://BUCKET");
    refused("blobs = \"s3://jobs\"\nblobs_secret_key = geheim",
            ":2: blobs_access_key and blobs_secret_key go together",
            "Give both, or none: then AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY count.");
    refused("blobs = \"s3://jobs\"\nblobs = \"s3://jobs\"", ":2: \"blobs\" is given twice", "");
}

static void relays(void **state)
{
    (void)state;
    refused("relay r { }", ":1: relay r has no redis",
            "Add queue = \"NAME\" and redis = \"redis://HOST:PORT\".");
    refused("relay r { redis = \"redis://h\" }", ":1: relay r has no queue",
            "Add queue = \"NAME\" and redis = \"redis://HOST:PORT\".");
    refused_somewhere("relay r { queue = q redis = \"redis://u:geheim@\" }",
                      ":1: relay r: not the address of a Redis server: it has no host", "");
    refused_somewhere("relay r { queue = q redis = \"redis://h\" reclaim = 999ms }",
                      ":1: relay r: reclaim is at least 1s", "");
    refused("relay r { queue = q redis = \"redis://h\" in_flight = 0 }",
            ":1: wrong value for \"in_flight\": \"0\"", "Write a whole number from 1 to 1000000.");
    refused("relay r { queue = q redis = \"redis://h\" inflight = 5 }",
            ":1: unknown key \"inflight\" in relay r", "Did you mean in_flight?");
    refused_somewhere("worker w { queue = q run = true redis = \"http://h\" }",
                      ":1: worker w: not the address of a Redis server", "");
}

static void relay_defaults(void **state)
{
    (void)state;
    assert_int_equal(load("relay r { queue = q redis = \"redis://h\" }\n"
                          "worker w { queue = q run = true redis = \"redis://h:1\" }\n"),
                     0);
    assert_int_equal(config->relay_count, 1);
    const struct config_relay *relay = config->relays;
    struct config_relay other = *relay;
    assert_string_equal(relay->queue, "q");
    assert_int_equal(relay->batch, 500);
    assert_int_equal(relay->in_flight, 10000);
    assert_int_equal(relay->reclaim_ms, 60000);
    assert_int_equal(relay->warn, 1000);
    assert_string_equal(config->workers[0].redis, "redis://h:1");
    assert_true(config_relay_equal(relay, &other));
    other.in_flight = 1;
    assert_false(config_relay_equal(relay, &other));
}

static void wrong_values(void **state)
{
    (void)state;
    refused("worker w { queue = q exec = x\n concurrency = many }",
            ":2: wrong value for \"concurrency\": \"many\"",
            "Write a whole number from 1 to 10000.");
    refused("queue q { concurrency_per_key = 0 }",
            ":1: wrong value for \"concurrency_per_key\": \"0\"",
            "Write a whole number from 1 to 1000000.");
    refused("queue q { concurrency = 1000001 }", ":1: wrong value for \"concurrency\": \"1000001\"",
            "Write a whole number from 1 to 1000000.");
    refused("worker w { batch = 0 }", ":1: wrong value for \"batch\": \"0\"",
            "Write a whole number from 1 to 10000.");
    refused("worker w { timeout = 30 }", ":1: wrong value for \"timeout\": \"30\"",
            "Write a time with its unit: \"500ms\", \"5s\", \"2min\", \"1h\", at most \"24h\".");
    refused("queue q { retention = soon }", ":1: wrong value for \"retention\": \"soon\"",
            "Write a time with its unit: \"500ms\", \"5s\", \"2min\", \"1h\", \"30d\".");
    refused("worker w { per_batch = perhaps }", ":1: wrong value for \"per_batch\": \"perhaps\"",
            "Write true or false.");
    refused("log = xml", ":1: wrong value for \"log\": \"xml\"", "Write \"text\" or \"json\".");
    refused("log_level = loud", ":1: wrong value for \"log_level\": \"loud\"",
            "Write \"debug\", \"info\", \"warning\" or \"error\".");
    refused("retry k { factor = x }", ":1: wrong value for \"factor\": \"x\"",
            "Write a number, 0 or more.");
    refused("worker w { queue = \"\" }", ":1: \"queue\" is empty",
            "Leave the key out, or give it a value.");
    refused("dsn = a\ndsn = b", ":2: \"dsn\" is given twice", "");
}

static void wrong_workers(void **state)
{
    (void)state;
    refused("worker w { exec = x }", ":1: worker w has no queue", "Add queue = \"NAME\".");
    refused("worker w { queue = q\n}", ":2: worker w has no handler",
            "Add one of exec, run, http, sql, plugin.");
    refused("worker w { queue = q exec = x sql = y }",
            ":1: worker w has two handlers: exec and sql",
            "A worker has one handler; write a second worker for the other.");
    assert_int_equal(load("worker w { queue = q exec = x }\nworker w { queue = q exec = y }"),
                     MR_ECONFIG);
    assert_non_null(strstr(err.message, ":2: "));
    assert_non_null(strstr(err.message, "title"));
}

static void schedules(void **state)
{
    (void)state;
    assert_int_equal(load("schedule nightly { cron = \"0 2 * * *\" timezone = \"Europe/Berlin\"\n"
                          "  kind = report queue = reports args = '{\"a\": 1}' catch_up = all\n"
                          "  priority = 0 active = false }\n"
                          "schedule plain { cron = \"@daily\" kind = k }"),
                     0);
    const struct config_schedule *nightly = &config->schedules[0], *plain = &config->schedules[1];
    assert_int_equal(config->schedule_count, 2);
    assert_string_equal(nightly->name, "nightly");
    assert_string_equal(nightly->cron, "0 2 * * *");
    assert_string_equal(nightly->timezone, "Europe/Berlin");
    assert_string_equal(nightly->kind, "report");
    assert_string_equal(nightly->queue, "reports");
    assert_string_equal(nightly->args, "{\"a\": 1}");
    assert_string_equal(nightly->catch_up, "all");
    assert_int_equal(nightly->priority, 0);
    assert_false(nightly->active);
    assert_null(plain->timezone);
    assert_null(plain->queue);
    assert_null(plain->args);
    assert_null(plain->catch_up);
    assert_int_equal(plain->priority, 50);
    assert_true(plain->active);
}

static void wrong_schedules(void **state)
{
    (void)state;
    refused("schedule s { kind = k\n}", ":2: schedule s has no cron",
            "Add cron = \"0 2 * * *\", for example.");
    refused("schedule s { cron = \"@daily\" }", ":1: schedule s has no kind",
            "Add kind = \"NAME\", the kind of its jobs.");
    refused("schedule s { corn = \"@daily\" }", ":1: unknown key \"corn\" in schedule s",
            "Did you mean cron?");
    refused("schedule s { priority = 100 }", ":1: wrong value for \"priority\": \"100\"",
            "Write a whole number from 0 to 99.");
    refused("schedule s { active = perhaps }", ":1: wrong value for \"active\": \"perhaps\"",
            "Write true or false.");
    refused("schedule s { cron = \"\" }", ":1: \"cron\" is empty",
            "Leave the key out, or give it a value.");
    assert_int_equal(load("schedule s { cron = \"@daily\" kind = k }\n"
                          "schedule s { cron = \"@hourly\" kind = k }"),
                     MR_ECONFIG);
    assert_non_null(strstr(err.message, ":2: "));
}

static void broken_files(void **state)
{
    (void)state;
    assert_int_equal(load("worker w {\n queue = q\n"), MR_ECONFIG);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(load("worker w }"), MR_ECONFIG);
    assert_non_null(strstr(err.message, ":1: "));
    assert_int_equal(load("= = ="), MR_ECONFIG);
    assert_int_equal(load("dsn = \"open"), MR_ECONFIG);
    assert_int_equal(config_load("/nonexistent/millrace.conf", &config, &err), MR_EIO);
    assert_int_equal(config_load("/tmp", &config, &err), MR_EIO);
    assert_int_equal(load(""), 0);
    assert_int_equal(config->worker_count, 0);
}

static void variables(void **state)
{
    (void)state;
    unsetenv("MR_TEST_MISSING");
    refused("# ${MR_TEST_MISSING}\ndsn = 'x${MR_TEST_MISSING}'\nlog = \"${MR_TEST_MISSING}\"",
            ":3: the environment variable MR_TEST_MISSING is not set",
            "Set it, or write a default: ${MR_TEST_MISSING:-value}.");
    assert_int_equal(load("dsn = 'x${MR_TEST_MISSING}'"), 0);
    assert_string_equal(config->dsn, "x${MR_TEST_MISSING}");
    assert_int_equal(load("dsn = \"x${MR_TEST_MISSING:-y}z\""), 0);
    assert_string_equal(config->dsn, "xyz");
}

static void poll_of_the_environment(void **state)
{
    struct config_worker worker;

    (void)state;
    setenv("QUEUE_POLL_INTERVAL_MS", "750", 1);
    config_worker_init(&worker);
    assert_int_equal(worker.poll_ms, 750);
    assert_int_equal(config_check_environment(&err), 0);
    setenv("QUEUE_POLL_INTERVAL_MS", "soon", 1);
    assert_int_equal(config_check_environment(&err), MR_EUSAGE);
    assert_string_equal(err.message, "wrong value in the environment: QUEUE_POLL_INTERVAL_MS");
    unsetenv("QUEUE_POLL_INTERVAL_MS");
}

static void equal_workers(void **state)
{
    static const char *const changes[] = {"queue = r exec = x",
                                          "queue = q exec = y",
                                          "queue = q run = x",
                                          "queue = q exec = x batch = 3",
                                          "queue = q exec = x concurrency = 3000",
                                          "queue = q exec = x timeout = \"3s\"",
                                          "queue = q exec = x dsn = d",
                                          "queue = q exec = x secret = s",
                                          "queue = q exec = x breaker { failures = 1 }"};
    char text[200];

    (void)state;
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        snprintf(text, sizeof(text), "worker a { queue = q exec = x } worker b { %s }", changes[i]);
        assert_int_equal(load(text), 0);
        config->workers[1].name = config->workers[0].name;
        assert_true(config_worker_equal(&config->workers[0], &config->workers[0]));
        assert_false(config_worker_equal(&config->workers[0], &config->workers[1]));
    }
}

static int begin(void **state)
{
    (void)state;
    return mkstemp(path) < 0;
}

static int end(void **state)
{
    (void)state;
    config_free(config);
    return unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),        cmocka_unit_test(everything),
        cmocka_unit_test(unknown_keys),    cmocka_unit_test(http_section),
        cmocka_unit_test(http_mistakes),   cmocka_unit_test(bridges),
        cmocka_unit_test(blobs),           cmocka_unit_test(relays),
        cmocka_unit_test(relay_defaults),  cmocka_unit_test(wrong_values),
        cmocka_unit_test(wrong_workers),   cmocka_unit_test(schedules),
        cmocka_unit_test(wrong_schedules), cmocka_unit_test(broken_files),
        cmocka_unit_test(variables),       cmocka_unit_test(poll_of_the_environment),
        cmocka_unit_test(equal_workers),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
