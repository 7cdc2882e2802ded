// SPDX-License-Identifier: PostgreSQL
//
// Runs a fuzz target without libFuzzer, for the tests: DRIVER SECONDS FILE... The files, then
// changes of them by chance, with a seed that is always the same.

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "fuzz.h"

#define SIZE_MAX_INPUT 65536
#define FILES_MAX      1000

static struct {
    uint8_t *data;
    size_t size;
} files[FILES_MAX];
static int file_count;

static void read_file(const char *path)
{
    FILE *file = fopen(path, "rb");

    MUST(file && file_count < FILES_MAX);
    uint8_t *data = malloc(SIZE_MAX_INPUT);
    MUST(data);
    files[file_count].size = fread(data, 1, SIZE_MAX_INPUT / 2, file);
    files[file_count++].data = data;
    fclose(file);
}

// One change: a byte, a piece twice, a piece left out, a piece of another file.
static size_t change(uint8_t *data, size_t size)
{
    size_t at = size ? (size_t)random() % size : 0;
    size_t length = size ? (size_t)random() % (size - at + 1) % 64 : 0;
    int other = (int)(random() % file_count);

    switch (random() % 4) {
    case 0:
        if (size) {
            data[at] = (uint8_t)random();
        }
        return size;
    case 1:
        if (size + length < SIZE_MAX_INPUT) {
            memmove(data + at + length, data + at, size - at);
            return size + length;
        }
        return size;
    case 2: memmove(data + at, data + at + length, size - at - length); return size - length;
    default:
        length = files[other].size < size - at ? files[other].size : size - at;
        memcpy(data + at, files[other].data, length);
        return size;
    }
}

int main(int argc, char **argv)
{
    static uint8_t data[SIZE_MAX_INPUT];
    long runs = 0;

    MUST(argc > 2);
    for (int i = 2; i < argc; i++) {
        read_file(argv[i]);
        LLVMFuzzerTestOneInput(files[i - 2].data, files[i - 2].size);
    }
    srandom(4711);
    for (int64_t until_ms = clock_ms() + atoi(argv[1]) * 1000; clock_ms() < until_ms; runs++) {
        int from = (int)(random() % file_count);
        size_t size = files[from].size;
        memcpy(data, files[from].data, size);
        for (long n = random() % 8; n >= 0; n--) {
            size = change(data, size);
        }
        // a copy of its exact size, so that a sanitizer sees a read beyond it
        uint8_t *copy = malloc(size ? size : 1);
        MUST(copy);
        memcpy(copy, data, size);
        LLVMFuzzerTestOneInput(copy, size);
        free(copy);
    }
    printf("%ld runs\n", runs);
    for (int i = 0; i < file_count; i++) {
        free(files[i].data);
    }
    return 0;
}
