// SPDX-License-Identifier: PostgreSQL
//
// The directory of a private server, and which PostgreSQL fits it.

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/pg_binaries.h"
#include "daemon/server_conf.h"
#include "daemon/server_dir.h"

static struct sigwatch watch;

static void test_versions(void **state)
{
    (void)state;
    assert_int_equal(pg_binaries_parse_version("postgres (PostgreSQL) 15.4 (Debian 15.4-1)\n"), 15);
    assert_int_equal(pg_binaries_parse_version("postgres (PostgreSQL) 18beta1"), 18);
    assert_int_equal(pg_binaries_parse_version("postgres (PostgreSQL) 9.6.24"), 9);
    assert_int_equal(pg_binaries_parse_version("postgres (PostgreSQL) x"), 0);
    assert_int_equal(pg_binaries_parse_version("mysqld 8"), 0);
    assert_int_equal(pg_binaries_parse_version(""), 0);
}

static void test_buffers(void **state)
{
    (void)state;
    assert_int_equal(server_conf_buffers_mib(64), 32);
    assert_int_equal(server_conf_buffers_mib(2048), 256);
    assert_int_equal(server_conf_buffers_mib(1024 * 1024), 1024);
}

static void test_default(void **state)
{
    char path[SERVER_DIR_MAX + 1];
    char home[SERVER_DIR_MAX + 1];

    (void)state;
    if (geteuid() == 0) {
        assert_int_equal(server_dir_default(path, NULL), 0);
        assert_string_equal(path, "/var/lib/millrace");
        return;
    }
    unsetenv("XDG_DATA_HOME");
    setenv("HOME", "/house/ada", 1);
    assert_int_equal(server_dir_default(path, NULL), 0);
    assert_string_equal(path, "/house/ada/.local/share/millrace");
    setenv("XDG_DATA_HOME", "/xdg", 1);
    assert_int_equal(server_dir_default(path, NULL), 0);
    assert_string_equal(path, "/xdg/millrace");
    setenv("XDG_DATA_HOME", "relative", 1);
    setenv("HOME", "", 1);
    assert_int_equal(server_dir_default(path, NULL), 0);
    assert_string_equal(path, ".millrace");
    memset(home, 'x', sizeof(home) - 1);
    home[sizeof(home) - 1] = '\0';
    setenv("HOME", home, 1);
    assert_int_equal(server_dir_default(path, NULL), MR_EUSAGE);
}

static void test_files(void **state)
{
    char path[] = "/tmp/mr-unit.XXXXXX";
    char below[64];
    struct server_dir dir;
    struct server_dir other;
    struct mr_error err;
    struct stat facts;
    bool there = false;
    int major = -1;
    AUTO_BUF text;

    (void)state;
    buf_init(&text, SERVER_DIR_FILE_MAX);
    assert_non_null(mkdtemp(path));
    chmod(path, 0755);
    snprintf(below, sizeof(below), "%s/a/b", path);
    assert_int_equal(server_dir_open(&dir, below, &watch, &err), 0);
    // the lock is on the file and not on the process
    assert_int_equal(server_dir_open(&other, below, &watch, &err), MR_ECONFLICT);
    assert_non_null(strstr(err.message, "with pid"));
    assert_int_equal(server_dir_version(&dir, &major, &err), 0);
    assert_int_equal(major, 0);
    assert_int_equal(server_dir_write(&dir, "dsn", 0600, "first", &err), 0);
    assert_int_equal(server_dir_write(&dir, "dsn", 0600, "second", &err), 0);
    assert_int_equal(server_dir_read(&dir, "dsn", &text, &there, &err), 0);
    assert_true(there);
    assert_string_equal(buf_peek(&text), "second");
    assert_int_equal(fstatat(dir.fd, "dsn", &facts, 0), 0);
    assert_int_equal(facts.st_mode & 0777, 0600);
    assert_int_equal(server_dir_read(&dir, "nothing", &text, &there, &err), 0);
    assert_false(there);
    // a link leads nowhere
    assert_int_equal(symlinkat("dsn", dir.fd, "port"), 0);
    assert_int_equal(server_dir_read(&dir, "port", &text, &there, &err), MR_EIO);
    server_dir_remove(&dir, "port");
    server_dir_remove(&dir, "dsn");
    server_dir_close(&dir);
    // what is another's is not taken, and what is ours is
    assert_int_equal(server_dir_open(&dir, below, &watch, &err), 0);
    server_dir_close(&dir);
    assert_int_equal(server_dir_open(&dir, path, &watch, &err), MR_EUSAGE);
    assert_non_null(strstr(err.message, "\"a\""));
    snprintf(below, sizeof(below), "%s/a/b/pid", path);
    unlink(below);
    snprintf(below, sizeof(below), "%s/a/b", path);
    rmdir(below);
    snprintf(below, sizeof(below), "%s/a", path);
    rmdir(below);
    assert_int_equal(rmdir(path), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_default),
        cmocka_unit_test(test_files),
    };

    sigwatch_begin(&watch);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
