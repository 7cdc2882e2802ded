// SPDX-License-Identifier: PostgreSQL
//
// Payload parts that are stored as something else than their bytes.
//
// A value of `state` or `blob` that begins with the signature is coded, and describes itself:
//
//   8 bytes   89 4D 52 50 0D 0A 1A 0A, "\x89MRP\r\n\x1a\n"
//   1 byte    the coding: 'z', 'o' or 'p'
//   8 bytes   the size of the original, big-endian, at most PART_SIZE_MAX
//   the rest  'z' a zstd frame; 'o' JSON text that names an object of a blob store; 'p' the
//   original
//
// 'p' is for an original that begins with the signature itself, so that nothing is ambiguous: what
// does not begin with the signature is what it is. What an object holds may be coded again, as 'z'
// or 'p' and not as 'o'.
//
// Coded args are the JSON object {"$coded": "base64 of such a value"}; the original is the text.
//
// Nothing here talks to a server, and nothing below the library knows of it: rows, retries, dead
// letters and replays carry coded values as they are. parcel.h is where a job's parts are coded on
// their way out and decoded on their way in.
//
// Reading fails with MR_EDAMAGED for what is no such value, MR_ENOMEM.

#ifndef MILLRACE_CLIENT_PART_H
#define MILLRACE_CLIENT_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"

#define PART_SIGNATURE      "\x89MRP\r\n\x1a\n"
#define PART_SIGNATURE_SIZE 8
#define PART_HEADER_SIZE    17
// The largest original. SQL has the same number, in part_read.sql.
#define PART_SIZE_MAX ((size_t)64 * 1024 * 1024)
// The largest coded value: that of an original that does not become smaller.
#define PART_VALUE_MAX (PART_SIZE_MAX + PART_HEADER_SIZE)

enum part_coding {
    PART_PLAIN = 'p',
    PART_ZSTD = 'z',
    PART_OBJECT = 'o',
};

// A coded value, read. `body` points into it.
struct part {
    enum part_coding coding;
    size_t size; // of the original
    const char *body;
    size_t body_size;
};

// Whether a value begins with the signature: one byte decides for nearly all that do not.
static inline bool part_is_coded(const void *data, size_t size)
{
    return size >= PART_SIGNATURE_SIZE && *(const unsigned char *)data == 0x89 &&
           memcmp(data, PART_SIGNATURE, PART_SIGNATURE_SIZE) == 0;
}

// Reads the header of a value that is coded, and checks it: nothing is decoded. A 'p' has the size
// it declares.
int part_read(const void *data, size_t size, struct part *ret, struct mr_error *err);

// Appends a header. `size` is at most PART_SIZE_MAX.
void part_add_header(struct buf *out, enum part_coding coding, size_t size);
// Appends a whole 'p'.
void part_add_plain(struct buf *out, const void *data, size_t size);

// ---- args ----

// Whether args, as the server writes jsonb, are coded: two bytes decide for nearly all that are
// not.
bool part_args_are_coded(const char *args);

// Whether args of a caller's could be taken for coded ones once the server has read them: they have
// to be wrapped with part_add_plain() then. Looks at the first key only, and rather says yes.
bool part_args_look_coded(const char *args);

// Appends {"$coded": "..."} for a coded value.
void part_add_args(struct buf *out, const void *value, size_t size);
// Appends the coded value in such args.
int part_read_args(const char *args, struct buf *out, struct mr_error *err);

// ---- objects of a blob store ----

// The longest key, and what may stand in it: letters, digits and !-_.*'()/=+,@:~% of ASCII.
#define PART_KEY_MAX 900

struct part_object {
    char key[PART_KEY_MAX + 1];
    size_t size; // of the object, as it is stored
    char sha256[SHA256_HEX_SIZE];
};

// Appends a whole 'o'; `size` is that of the original. Fails with MR_EUSAGE for a key that may not
// be one, or a checksum that is none; nothing is appended then.
int part_add_object(struct buf *out, size_t size, const struct part_object *object,
                    struct mr_error *err);
// Reads the body of an 'o'.
int part_read_object(const struct part *part, struct part_object *ret, struct mr_error *err);

#endif
