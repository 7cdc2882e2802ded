// SPDX-License-Identifier: PostgreSQL
//
// How the log is written: the environment, then the configuration, then text from `info` on.

#include <stdlib.h>
#include <unistd.h>

#include "base/str.h"
#include "daemon/config.h"

static int bad_value(const char *variable, const char *values, struct mr_error *err)
{
    // the value itself may be anything
    mr_error_set(err, MR_EUSAGE, "wrong value in the environment: %s", variable);
    mr_error_hint(err, "Set %s to one of: %s.", variable, values);
    return MR_EUSAGE;
}

int config_setup_log(const struct config *config, struct mr_error *err)
{
    enum log_format format = config ? config->log_format : LOG_TEXT;
    enum log_level level = config ? config->log_level : LEVEL_INFO;
    const char *format_text = getenv("MILLRACE_LOG");
    const char *level_text = getenv("MILLRACE_LOG_LEVEL");

    if (!str_empty(format_text) && !log_parse_format(format_text, &format)) {
        return bad_value("MILLRACE_LOG", "text, json", err);
    }
    if (!str_empty(level_text) && !log_parse_level(level_text, &level)) {
        return bad_value("MILLRACE_LOG_LEVEL", "debug, info, warning, error", err);
    }
    log_setup(STDERR_FILENO, format, level);
    return 0;
}
