// SPDX-License-Identifier: PostgreSQL
//
// What the files of the store on S3 share: s3.c opens, writes and reads, s3_delete.c removes,
// s3_bucket.c lists and reads rules. Nobody else includes this.

#ifndef MILLRACE_STORE_S3_PARTS_H
#define MILLRACE_STORE_S3_PARTS_H

#include "store/blob.h"
#include "store/s3_address.h"
#include "store/s3_wire.h"

// The largest answer that lists a page, or what of one could not be removed.
#define S3_PAGE_ANSWER_MAX ((size_t)16 * 1024 * 1024)

struct s3 {
    struct blob_store store;
    struct s3_address address;
    struct s3_wire *wire;
    char place[S3_PLACE_SIZE];
};

// A batch on its way.
struct s3_many {
    struct s3 *s3;
    struct blob_item *items;
    size_t count;
    size_t next;
};

struct s3 *s3_of(struct blob_store *store);

// The next item that has no result yet; NULL: none.
struct blob_item *s3_next_item(struct s3_many *many);

// A body to be sent, which is borrowed; NULL: none. Computes its checksum.
void s3_set_body(struct s3_request *request, const void *body, size_t size);

// Gives an item the result of a request.
void s3_set_result(struct blob_item *item, const struct s3_request *request);

// As struct blob_ops has them.
int s3_delete_many(struct blob_store *store, struct blob_item *items, size_t count,
                   struct mr_error *err);
int s3_list(struct blob_store *store, const char *prefix, const char *after, struct blob_page *ret,
            struct mr_error *err);
int s3_lifecycle(struct blob_store *store, int *ret_days, struct mr_error *err);

#endif
