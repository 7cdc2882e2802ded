// SPDX-License-Identifier: PostgreSQL
//
// Turns the project's .sql files into one C file, at build time.
//
//     embed OUTPUT SCHEMA-FOLDER SQL-FOLDER
//
// SCHEMA-FOLDER holds the statements that the migration program itself runs;
// SQL-FOLDER holds bench/, migrations/, internal/, api/, views/ and grants.sql, any of
// which may be missing. Files come out sorted by name within their folder. OUTPUT is
// rewritten only when its content changes, so that a build that runs this every time
// recompiles only when a file was added, removed or edited.
//
// A tool of the build: it exits on the first failure and lets the system take back its
// memory.

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"

#define PATH_SIZE     4096
#define FILE_SIZE_MAX (16 * 1024 * 1024)
#define FILES_MAX     10000
#define NUMBER_DIGITS 4

struct file {
    const char *kind; // the enumerator of enum embedded_kind
    int number;       // of a migration; 0 for the rest
    char *name;       // without number and .sql
    char *path;       // as people know it: sql/api/claim.sql
    char *text;
    size_t size;
    char checksum[SHA256_HEX_SIZE];
};

// Where each kind lives, in the order of installation.
static const struct {
    const char *kind;
    const char *folder;
    bool numbered;
} folders[] = {
    {"EMBEDDED_BENCH", "bench", false},       {"EMBEDDED_MIGRATION", "migrations", true},
    {"EMBEDDED_INTERNAL", "internal", false}, {"EMBEDDED_API", "api", false},
    {"EMBEDDED_VIEW", "views", false},
};

static struct file files[FILES_MAX];
static size_t file_count;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fputs("embed: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...)
{
    char *text = NULL;
    va_list args;

    va_start(args, format);
    if (vasprintf(&text, format, args) < 0) {
        die("out of memory");
    }
    va_end(args);
    return text;
}

// The whole file, NUL-terminated; NULL when there is none.
static char *read_file(const char *path, size_t *ret_size)
{
    FILE *in = fopen(path, "rb");
    if (!in && errno == ENOENT) {
        return NULL;
    }
    char *text = malloc(FILE_SIZE_MAX + 1);
    if (!in || !text) {
        die("%s: %s", path, strerror(errno));
    }
    size_t size = fread(text, 1, FILE_SIZE_MAX + 1, in);
    if (ferror(in) || size > FILE_SIZE_MAX) {
        die("%s: cannot be read, or is over %d bytes", path, FILE_SIZE_MAX);
    }
    fclose(in);
    text[size] = '\0';
    *ret_size = size;
    return realloc(text, size + 1);
}

// `0001_name.sql`: the number, and `name` moved behind it.
static int take_number(const char *path, const char **name)
{
    int number = 0;

    for (int i = 0; i < NUMBER_DIGITS; i++, (*name)++) {
        if (!isdigit((unsigned char)**name)) {
            die("%s: a migration is called NNNN_name.sql", path);
        }
        number = number * 10 + (**name - '0');
    }
    if (**name != '_' || number == 0) {
        die("%s: a migration is called NNNN_name.sql, from 0001", path);
    }
    (*name)++;
    return number;
}

static void add_file(const char *kind, bool numbered, const char *disk_path, char *path)
{
    if (file_count == FILES_MAX) {
        die("more than %d files", FILES_MAX);
    }
    struct file *file = &files[file_count++];
    const char *name = strrchr(path, '/') + 1;

    file->kind = kind;
    file->path = path;
    file->number = numbered ? take_number(disk_path, &name) : 0;
    file->name = text_of("%.*s", (int)(strlen(name) - strlen(".sql")), name);
    file->text = read_file(disk_path, &file->size);
    if (!file->text || strlen(file->text) != file->size) {
        die("%s: cannot be read, or contains a NUL byte", disk_path);
    }
    sha256_hex(file->text, file->size, file->checksum);
}

static int is_sql(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return entry->d_name[0] != '.' && len > 4 && strcmp(entry->d_name + len - 4, ".sql") == 0;
}

// By bytes, whatever the locale: the order is part of the checksum.
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void add_folder(const char *kind, bool numbered, const char *disk, const char *known)
{
    struct dirent **entries = NULL;
    int count = scandir(disk, &entries, is_sql, by_name);

    if (count < 0 && errno != ENOENT) {
        die("%s: %s", disk, strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        add_file(kind, numbered, text_of("%s/%s", disk, name), text_of("%s/%s", known, name));
    }
}

static void check_numbers(void)
{
    for (size_t i = 1; i < file_count; i++) {
        if (files[i].number && files[i].number == files[i - 1].number) {
            die("%s and %s have the same number", files[i - 1].path, files[i].path);
        }
    }
}

static void collect(const char *schema_folder, const char *sql_folder)
{
    char path[PATH_SIZE];

    add_folder("EMBEDDED_SCHEMA", false, schema_folder, "sql/schema");
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", sql_folder, folders[i].folder);
        add_folder(folders[i].kind, folders[i].numbered, path,
                   text_of("sql/%s", folders[i].folder));
    }
    snprintf(path, sizeof(path), "%s/grants.sql", sql_folder);
    if (access(path, F_OK) == 0) {
        add_file("EMBEDDED_GRANTS", false, path, text_of("sql/grants.sql"));
    }
    check_numbers();
}

static bool is_replaceable(const struct file *file)
{
    return strcmp(file->kind, "EMBEDDED_SCHEMA") != 0 &&
           strcmp(file->kind, "EMBEDDED_BENCH") != 0 &&
           strcmp(file->kind, "EMBEDDED_MIGRATION") != 0;
}

// One checksum for all replaceable files: of their checksums and paths, in order.
static void functions_checksum(char ret[SHA256_HEX_SIZE])
{
    char *list = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&list, &size);

    for (size_t i = 0; i < file_count; i++) {
        if (is_replaceable(&files[i])) {
            fprintf(out, "%s  %s\n", files[i].checksum, files[i].path);
        }
    }
    fclose(out);
    sha256_hex(list, size, ret);
}

static void write_char(FILE *out, unsigned char c)
{
    if (c == '"' || c == '\\' || c == '?') {
        fprintf(out, "\\%c", c);
    } else if (isprint(c)) {
        fputc(c, out);
    } else {
        fprintf(out, "\\%03o", c);
    }
}

// A C string of the text, one literal a line.
static void write_literal(FILE *out, const char *text)
{
    fputs("\t\t\"", out);
    for (const char *c = text; *c; c++) {
        if (*c != '\n') {
            write_char(out, (unsigned char)*c);
        } else {
            fputs(c[1] ? "\\n\"\n\t\t\"" : "\\n", out);
        }
    }
    fputs("\"", out);
}

static void write_output(FILE *out)
{
    char checksum[SHA256_HEX_SIZE];

    functions_checksum(checksum);
    fputs("// Written by tools/embed from the .sql files. Do not edit.\n\n"
          "#include \"client/embedded.h\"\n\n"
          "static const struct embedded_file files[] = {\n",
          out);
    for (size_t i = 0; i < file_count; i++) {
        const struct file *file = &files[i];
        fprintf(out, "\t{%s, %d, \"%s\", \"%s\",\n\t\t\"%s\",\n", file->kind, file->number,
                file->name, file->path, file->checksum);
        write_literal(out, file->text);
        fputs("},\n", out);
    }
    fprintf(out, "};\n\nconst struct embedded_set embedded = {\n\tfiles, %zu,\n\t\"%s\",\n};\n",
            file_count, checksum);
}

static void replace_if_changed(const char *path, const char *text, size_t size)
{
    size_t old_size = 0;
    char *old = read_file(path, &old_size);

    if (old && old_size == size && memcmp(old, text, size) == 0) {
        return;
    }
    char *next = text_of("%s.new", path);
    FILE *out = fopen(next, "wb");
    if (!out || fwrite(text, 1, size, out) != size || fclose(out) != 0 || rename(next, path) != 0) {
        die("%s: %s", next, strerror(errno));
    }
}

int main(int argc, char **argv)
{
    char *text = NULL;
    size_t size = 0;

    if (argc != 4) {
        die("usage: embed OUTPUT SCHEMA-FOLDER SQL-FOLDER");
    }
    collect(argv[2], argv[3]);
    FILE *out = open_memstream(&text, &size);
    if (!out) {
        die("out of memory");
    }
    write_output(out);
    if (fclose(out) != 0) {
        die("out of memory");
    }
    replace_if_changed(argv[1], text, size);
    return 0;
}
