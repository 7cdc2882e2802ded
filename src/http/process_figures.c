// SPDX-License-Identifier: PostgreSQL
//
// What the system knows about this process: see process_figures.h.

#include "http/process_figures.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/str.h"

static bool read_cpu(double *ret)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage)) {
        return false;
    }
    *ret = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    return true;
}

// The first line of a file of /proc.
static bool read_line(const char *path, char *ret, size_t size)
{
    FILE *file = fopen(path, "re");
    bool good = file && fgets(ret, (int)size, file);

    if (file) {
        fclose(file);
    }
    return good;
}

static bool read_rss(double *ret)
{
    char line[256];
    char *end = NULL;

    if (!read_line("/proc/self/statm", line, sizeof(line))) {
        return false;
    }
    strtoull(line, &end, 10);
    *ret = (double)strtoull(end, NULL, 10) * (double)sysconf(_SC_PAGESIZE);
    return true;
}

static bool read_fds(double *ret)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = -3; // itself and the two that every directory has

    if (!dir) {
        return false;
    }
    while (readdir(dir)) {
        count++;
    }
    closedir(dir);
    *ret = count;
    return true;
}

static bool read_max_fds(double *ret)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit)) {
        return false;
    }
    *ret = (double)limit.rlim_cur;
    return true;
}

static bool boot_time(double *ret)
{
    FILE *file = fopen("/proc/stat", "re");
    char line[256];
    bool found = false;

    while (file && !found && fgets(line, sizeof(line), file)) {
        found = str_starts(line, "btime ");
    }
    if (file) {
        fclose(file);
    }
    *ret = found ? (double)strtoull(line + 6, NULL, 10) : 0;
    return found;
}

// The 22nd field of stat, counted behind the command, which is in parentheses.
static bool read_start(double *ret)
{
    char line[1024];
    double boot = 0;

    if (!read_line("/proc/self/stat", line, sizeof(line)) || !boot_time(&boot)) {
        return false;
    }
    char *at = strrchr(line, ')');
    for (int field = 2; at && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    if (!at) {
        return false;
    }
    *ret = boot + (double)strtoull(at, NULL, 10) / (double)sysconf(_SC_CLK_TCK);
    return true;
}

static const struct {
    const char *name;
    bool (*read)(double *ret);
} figures[] = {
    {"cpu", read_cpu},         {"rss", read_rss},     {"fds", read_fds},
    {"max_fds", read_max_fds}, {"start", read_start},
};

bool process_figure(const char *which, double *ret)
{
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (str_equal(figures[i].name, which)) {
            return figures[i].read(ret);
        }
    }
    return false;
}
