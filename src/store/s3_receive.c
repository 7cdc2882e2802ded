// SPDX-License-Identifier: PostgreSQL
//
// Answers of S3 as they come in: see s3_receive.h.

#include "store/s3_receive.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

#define FIRST_CAPACITY ((size_t)16 * 1024)

// ---- headers ----

static void keep(const char *value, size_t value_size, char *ret, size_t size)
{
    if (value_size < size) {
        memcpy(ret, value, value_size);
        ret[value_size] = '\0';
    }
}

static void keep_sum(struct s3_request *request, const char *value, size_t size)
{
    keep(value, size, request->sha256, sizeof(request->sha256));
}

static void keep_id(struct s3_request *request, const char *value, size_t size)
{
    (void)value;
    request->head.of_s3 = size > 0;
}

static void keep_region(struct s3_request *request, const char *value, size_t size)
{
    keep(value, size, request->head.region, sizeof(request->head.region));
}

static void keep_date(struct s3_request *request, const char *value, size_t size)
{
    char text[64] = "";
    time_t date;

    keep(value, size, text, sizeof(text));
    date = curl_getdate(text, NULL);
    request->head.clock_s = date > 0 ? (int64_t)date : 0;
}

static const struct {
    const char *name;
    void (*keep)(struct s3_request *request, const char *value, size_t size);
} headers[] = {
    {"x-amz-meta-sha256:", keep_sum},
    {"x-amz-request-id:", keep_id},
    {"x-amz-bucket-region:", keep_region},
    {"date:", keep_date},
};

static void forget_head(struct s3_request *request)
{
    request->head = (struct s3_head){.of_s3 = false};
    request->sha256[0] = '\0';
}

static void read_header(struct s3_request *request, const char *data, size_t size)
{
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++) {
        size_t name = strlen(headers[i].name);
        if (size > name && strncasecmp(data, headers[i].name, name) == 0) {
            const char *value = data + name;
            const char *end = data + size;
            while (value < end && strchr(" \t", *value)) {
                value++;
            }
            while (end > value && strchr(" \t\r\n", end[-1])) {
                end--;
            }
            headers[i].keep(request, value, (size_t)(end - value));
        }
    }
}

size_t s3_receive_header(char *data, size_t one, size_t size, void *arg)
{
    struct s3_receive *receive = arg;

    (void)one;
    if (size > 5 && memcmp(data, "HTTP/", 5) == 0) {
        forget_head(receive->request); // what came before was `100 Continue`
    } else {
        read_header(receive->request, data, size);
    }
    return size;
}

// ---- body ----

static bool is_good(const struct s3_receive *receive)
{
    long status = 0;

    curl_easy_getinfo(receive->easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status <= 299;
}

// What the head says the body will have; 0 where it says nothing.
static size_t announced(const struct s3_receive *receive)
{
    curl_off_t size = 0;

    curl_easy_getinfo(receive->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &size);
    return size > 0 ? (size_t)size : 0;
}

// Room for `wanted` bytes and a zero byte: exactly, where the size was announced.
static bool make_room(struct s3_receive *receive, size_t wanted, size_t max)
{
    struct s3_request *request = receive->request;
    size_t known = announced(receive);
    size_t capacity = receive->capacity ? receive->capacity : FIRST_CAPACITY;

    if (wanted < receive->capacity) {
        return true;
    }
    while (capacity <= wanted) {
        capacity *= 2;
    }
    capacity = known >= wanted && known <= max ? known + 1 : capacity;
    char *answer = realloc(request->answer, capacity);
    if (!answer) {
        receive->no_memory = true;
        return false;
    }
    request->answer = answer;
    receive->capacity = capacity;
    return true;
}

size_t s3_receive_body(char *data, size_t one, size_t size, void *arg)
{
    struct s3_receive *receive = arg;
    struct s3_request *request = receive->request;
    bool good = is_good(receive);
    size_t max = good ? request->answer_max : S3_ERROR_BODY_MAX;

    (void)one;
    if (announced(receive) > max || size > max - request->answer_size) {
        receive->too_large = good;
        return good ? 0 : size; // the end of a long error is of no use
    }
    if (!make_room(receive, request->answer_size + size, max)) {
        return 0;
    }
    memcpy(request->answer + request->answer_size, data, size);
    request->answer_size += size;
    request->answer[request->answer_size] = '\0';
    return size;
}

void s3_receive_begin(struct s3_receive *receive, CURL *easy, struct s3_request *request)
{
    free(request->answer);
    request->answer = NULL;
    request->answer_size = 0;
    forget_head(request);
    *receive = (struct s3_receive){.easy = easy, .request = request};
}
