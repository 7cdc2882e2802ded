// SPDX-License-Identifier: PostgreSQL
//
// How full the disk of the database is, where it can be known: the path that the configuration
// names, else the server's data directory, when the server is on this host and tells it.

#ifndef MILLRACE_HTTP_DISK_H
#define MILLRACE_HTTP_DISK_H

#include <stdbool.h>
#include <stdint.h>

struct http;
struct site;

struct disk {
    const char *path;           // borrowed
    uint64_t bytes, free_bytes; // what is kept for root is not free
    double free_ratio;
};

// `data_directory` is what the server tells, or NULL. A configured path counts where there is one
// database. False when it is not known.
bool disk_look(const struct site *site, const char *data_directory, struct disk *ret);

// Says in the log when the configured path cannot be looked at.
void disk_check_path(const struct http *http);

#endif
