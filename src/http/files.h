// SPDX-License-Identifier: PostgreSQL
//
// The files of web/, embedded by tools/embed_files.c at build time.

#ifndef MILLRACE_HTTP_FILES_H
#define MILLRACE_HTTP_FILES_H

#include <stddef.h>

struct embedded_file {
    const char *name; // below web/: vendor/chart.js
    const char *tag;  // with its quotes
    const unsigned char *data;
    size_t size;
};

// Ends with a row without a name.
extern const struct embedded_file embedded_files[];

#endif
