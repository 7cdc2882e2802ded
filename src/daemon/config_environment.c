// SPDX-License-Identifier: PostgreSQL
//
// What the environment says: how the log is written (else the file, else text from `info` on), and
// defaults of workers and queues.

#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "daemon/config.h"

static int bad_value(const char *variable, const char *values, struct mr_error *err)
{
    // the value itself may be anything
    mr_error_set(err, MR_EUSAGE, "wrong value in the environment: %s", variable);
    mr_error_hint(err, "Set %s to %s.", variable, values);
    return MR_EUSAGE;
}

// Variables with a number, and its largest value.
static const struct {
    const char *name;
    int64_t max;
    const char *values;
} numbers[] = {
    {"QUEUE_POLL_INTERVAL_MS", STR_DURATION_MAX_MS, "a number of milliseconds, 1 or more"},
    {"QUEUE_RETENTION_HOURS", 21600, "a number of hours from 1 to 21600"},
    {"MAX_RETRY_ATTEMPTS", 32000, "a number from 1 to 32000"},
};

#define NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

int64_t config_environment_number(const char *variable)
{
    const char *text = getenv(variable);
    int64_t number = 0;

    for (size_t i = 0; i < NUMBERS; i++) {
        if (str_equal(numbers[i].name, variable) && !str_empty(text)) {
            str_parse_int(text, 1, numbers[i].max, &number);
        }
    }
    return number;
}

int config_check_environment(struct mr_error *err)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        if (!str_empty(getenv(numbers[i].name)) && !config_environment_number(numbers[i].name)) {
            return bad_value(numbers[i].name, numbers[i].values, err);
        }
    }
    return 0;
}

int config_setup_log(const struct config *config, struct mr_error *err)
{
    enum log_format format = config ? config->log_format : LOG_TEXT;
    enum log_level level = config ? config->log_level : LEVEL_INFO;
    const char *format_text = getenv("MILLRACE_LOG");
    const char *level_text = getenv("MILLRACE_LOG_LEVEL");

    if (!str_empty(format_text) && !log_parse_format(format_text, &format)) {
        return bad_value("MILLRACE_LOG", "text or json", err);
    }
    if (!str_empty(level_text) && !log_parse_level(level_text, &level)) {
        return bad_value("MILLRACE_LOG_LEVEL", "debug, info, warning or error", err);
    }
    log_setup(STDERR_FILENO, format, level);
    return 0;
}
