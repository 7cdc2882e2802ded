// SPDX-License-Identifier: PostgreSQL
//
// Where objects are kept on S3, as people write it:
//
//   s3://BUCKET[/PREFIX][?endpoint=http://HOST:PORT&region=R&style=path|host&ca=FILE]
//
// Without an endpoint it is Amazon's of the region, by https. Values may have %XX.

#ifndef MILLRACE_STORE_S3_ADDRESS_H
#define MILLRACE_STORE_S3_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define S3_TEXT_MAX   256
#define S3_PREFIX_MAX 256
// A bucket's name, by the rules of Amazon's.
#define S3_BUCKET_MIN     3
#define S3_BUCKET_MAX     63
#define S3_DEFAULT_REGION "us-east-1"
// http://BUCKET.HOST:PORT/BUCKET, with a zero byte.
#define S3_ORIGIN_SIZE (S3_TEXT_MAX + S3_BUCKET_MAX + 2)
#define S3_PLACE_SIZE  (S3_ORIGIN_SIZE + S3_PREFIX_MAX + S3_TEXT_MAX)

struct s3_address {
    char bucket[S3_BUCKET_MAX + 1];
    char prefix[S3_PREFIX_MAX + 1]; // "", or ends with /
    char endpoint[S3_TEXT_MAX];     // scheme://HOST[:PORT], no / at the end
    char region[S3_TEXT_MAX];
    char ca[S3_TEXT_MAX]; // a file; "": the system's
    bool host_style;      // the bucket is a part of the host's name
};

// Reads one. Fails with MR_ECONFIG.
int s3_address_parse(const char *text, struct s3_address *ret, struct mr_error *err);

// What comes before the / of a key, prefix not included: http://HOST:PORT/BUCKET.
void s3_address_origin(const struct s3_address *address, char ret[S3_ORIGIN_SIZE]);

// For people: s3://BUCKET/PREFIX at http://HOST:PORT.
void s3_address_place(const struct s3_address *address, char ret[S3_PLACE_SIZE]);

#endif
