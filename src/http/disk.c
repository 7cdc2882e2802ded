// SPDX-License-Identifier: PostgreSQL
//
// How full the disk of the database is: see disk.h.

#include "http/disk.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/log.h"
#include "http/http_parts.h"

static bool look(const char *path, struct disk *ret)
{
    struct statvfs fs;

    if (statvfs(path, &fs) || fs.f_blocks == 0) {
        return false;
    }
    *ret = (struct disk){
        .path = path,
        .bytes = (uint64_t)fs.f_blocks * fs.f_frsize,
        .free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize,
        .free_ratio = (double)fs.f_bavail / (double)fs.f_blocks,
    };
    return true;
}

bool disk_look(const struct site *site, const char *data_directory, struct disk *ret)
{
    const struct http *http = site->http;

    if (http->options.disk_path && !sites_several(http)) {
        return look(http->options.disk_path, ret);
    }
    return data_directory && database_same_host(site->db) && look(data_directory, ret);
}

void disk_check_path(const struct http *http)
{
    const struct log_field fields[] = {LOG_TEXT_FIELD("disk_path", http->options.disk_path)};
    struct disk disk;

    if (http->options.disk_path && !look(http->options.disk_path, &disk)) {
        log_put(LEVEL_WARNING, "http.disk_path", fields, 1,
                "disk_path cannot be looked at, so the free share of the disk is not known: %s",
                strerror(errno));
    }
}
