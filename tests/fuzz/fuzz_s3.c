// SPDX-License-Identifier: PostgreSQL
//
// Answers of S3, and addresses: whatever is read from them is within its limits.

#include <string.h>

#include "fuzz.h"
#include "store/blob.h"
#include "store/s3_address.h"
#include "store/s3_answer.h"
#include "store/s3_fault.h"
#include "store/s3_xml.h"

static bool on_end(void *arg, const char *path, const char *text)
{
    (void)arg;
    MUST(path[0] && strlen(path) < S3_XML_PATH_SIZE);
    MUST(!text || strlen(text) <= S3_XML_TEXT_MAX);
    return true;
}

static bool on_entry(void *arg, const char *key, int64_t size, int64_t modified_us)
{
    (void)arg;
    MUST(key[0] && size >= 0 && modified_us >= 0);
    return true;
}

static void on_undeleted(void *arg, const char *key, const struct s3_error *error)
{
    (void)arg;
    MUST(key && strlen(error->code) < S3_CODE_SIZE && strlen(error->message) < S3_MESSAGE_SIZE);
}

static void check_address(const char *text)
{
    struct s3_address address;
    char origin[S3_ORIGIN_SIZE], place[S3_PLACE_SIZE];

    if (s3_address_parse(text, &address, NULL) == 0) {
        size_t prefix = strlen(address.prefix);
        s3_address_origin(&address, origin);
        s3_address_place(&address, place);
        MUST(strncmp(origin, "http", 4) == 0 && !strpbrk(origin, " @?#\n"));
        MUST(prefix == 0 || address.prefix[prefix - 1] == '/');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *)data;
    static const struct s3_head head = {.of_s3 = true};
    char *text = malloc(size + 1);
    struct s3_fault fault;
    bool truncated;
    int days = 0;

    memcpy(text, data, size);
    text[size] = '\0';
    s3_xml_read(bytes, size, on_end, NULL);
    s3_answer_list(bytes, size, on_entry, NULL, &truncated);
    s3_answer_deleted(bytes, size, on_undeleted, NULL);
    MUST(!s3_answer_lifecycle(bytes, size, "a/", &days) || days >= 0);
    s3_fault_of_answer(404, bytes, size, &head, &fault);
    MUST(fault.result != BLOB_OK && fault.text[0] && !strchr(fault.text, '\n'));
    check_address(text);
    blob_key_is_good(text);
    free(text);
    return 0;
}
