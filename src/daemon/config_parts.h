// SPDX-License-Identifier: PostgreSQL
//
// The steps from a configuration file to its structs, for config.c: variables, syntax and keys.

#ifndef MILLRACE_DAEMON_CONFIG_PARTS_H
#define MILLRACE_DAEMON_CONFIG_PARTS_H

#include <confuse.h>

#include "base/err.h"
#include "handler/handler.h"

// Handlers, by the key that names them in a worker section.
#define CONFIG_HANDLERS 5
extern const char *const config_handler_keys[CONFIG_HANDLERS]; // by enum handler_kind

// How the value of a queue's setting is written.
enum config_setting_type {
    SETTING_NUMBER, // a whole number
    SETTING_TIME,   // "30s"
    SETTING_WORD,
};

struct config_setting {
    const char *name;
    enum config_setting_type type;
};

// The settings of a queue; ends with a row without a name.
extern const struct config_setting config_settings[];

// Keys of a bridge that bridge_apply() gets as they are; ends with a row without a name.
extern const struct config_setting config_bridge_settings[];

// Checks that every ${NAME} in `text` that has no default is set. Fails with MR_ECONFIG.
int config_check_variables(const char *path, const char *text, struct mr_error *err);

// Parses and checks everything that one section can be checked for. *ret is freed with
// cfg_free(). Fails with MR_ECONFIG, MR_ENOMEM.
int config_parse(const char *path, const char *text, cfg_t **ret, struct mr_error *err);

#endif
