// SPDX-License-Identifier: PostgreSQL
//
// Turns the files below a folder into one C file, at build time.
//
//     embed_files OUTPUT FOLDER HEADER STRUCT ARRAY
//
// ARRAY is one of `struct STRUCT`, as HEADER declares it: name, tag, data, size. Files come out
// sorted by name, those of folders within as folder/name; names that begin with a dot are left out.
// OUTPUT is rewritten only when its content changes. A tool of the build: it exits on the first
// failure and lets the system take back its memory.

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sha256.h"

#define FILE_SIZE_MAX (16 * 1024 * 1024)
#define FILES_MAX     1000
#define PATH_SIZE     4096

static char *names[FILES_MAX];
static size_t name_count;

__attribute__((noreturn)) static void die(const char *what)
{
    fprintf(stderr, "embed_files: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void add_folder(const char *root, const char *prefix)
{
    char path[PATH_SIZE], name[PATH_SIZE];
    struct stat status;

    snprintf(path, sizeof(path), "%s/%s", root, prefix);
    DIR *dir = opendir(path);
    if (!dir) {
        die(path);
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        snprintf(name, sizeof(name), "%s%s%s", prefix, *prefix ? "/" : "", entry->d_name);
        if (snprintf(path, sizeof(path), "%s/%s", root, name) >= PATH_SIZE || stat(path, &status)) {
            die(path);
        }
        if (S_ISDIR(status.st_mode)) {
            add_folder(root, name);
        } else if (name_count == FILES_MAX || !(names[name_count++] = strdup(name))) {
            die("too many files");
        }
    }
    closedir(dir);
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static unsigned char *read_file(const char *path, size_t *ret_size)
{
    FILE *in = fopen(path, "rb");
    unsigned char *data = malloc(FILE_SIZE_MAX + 1);

    if (!in || !data) {
        die(path);
    }
    *ret_size = fread(data, 1, FILE_SIZE_MAX + 1, in);
    if (ferror(in) || *ret_size > FILE_SIZE_MAX) {
        die(path);
    }
    fclose(in);
    return data;
}

static void write_data(FILE *out, size_t number, const unsigned char *data, size_t size)
{
    fprintf(out, "static const unsigned char data_%zu[] = {", number);
    for (size_t i = 0; i < size; i++) {
        fprintf(out, "%s%u,", i % 24 ? "" : "\n", data[i]);
    }
    fprintf(out, "0};\n");
}

static void write_all(FILE *out, const char *folder, char *const *names_in_c)
{
    char path[PATH_SIZE], hex[SHA256_HEX_SIZE];
    char *rows = NULL;
    size_t rows_size = 0;
    FILE *table = open_memstream(&rows, &rows_size);

    fprintf(out, "// made by tools/embed_files.c\n#include \"%s\"\n", names_in_c[0]);
    for (size_t i = 0; i < name_count; i++) {
        size_t size = 0;
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unsigned char *data = read_file(path, &size);
        sha256_hex((const char *)data, size, hex);
        write_data(out, i, data, size);
        fprintf(table, "    {\"%s\", \"\\\"%.16s\\\"\", data_%zu, %zu},\n", names[i], hex, i, size);
        free(data);
    }
    fclose(table);
    fprintf(out, "const struct %s %s[] = {\n%s    {0, 0, 0, 0},\n};\n", names_in_c[1],
            names_in_c[2], rows);
}

static int is_same(const char *path, const char *text, size_t size)
{
    FILE *in = fopen(path, "rb");
    char *now = malloc(size + 1);
    int same = in && now && fread(now, 1, size + 1, in) == size && memcmp(now, text, size) == 0;

    if (in) {
        fclose(in);
    }
    free(now);
    return same;
}

int main(int argc, char **argv)
{
    char *text = NULL;
    size_t size = 0;

    if (argc != 6) {
        fprintf(stderr, "usage: embed_files OUTPUT FOLDER HEADER STRUCT ARRAY\n");
        return 2;
    }
    add_folder(argv[2], "");
    qsort(names, name_count, sizeof(names[0]), compare);
    FILE *memory = open_memstream(&text, &size);
    write_all(memory, argv[2], argv + 3);
    fclose(memory);
    if (is_same(argv[1], text, size)) {
        return 0;
    }
    FILE *out = fopen(argv[1], "wb");
    if (!out || fwrite(text, 1, size, out) != size || fclose(out)) {
        die(argv[1]);
    }
    return 0;
}
