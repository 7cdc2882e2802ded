// SPDX-License-Identifier: PostgreSQL
//
// What went wrong with S3: see s3_fault.h.
//
// 1. A job goes to the dead letters for MISSING and DAMAGED alone. So MISSING needs S3's own word
// for
//    it: a 404 of some other server at the address is the set-up's.
// 2. Texts have a code and a message of the server's, and nothing of what was sent.

#include "store/s3_fault.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/str.h"

#define HINT_SECRET \
    "The secret key is not the one of the access key: look at AWS_SECRET_ACCESS_KEY or blobs_secret_key."
#define HINT_ACCESS_KEY \
    "Look at AWS_ACCESS_KEY_ID or blobs_access_key: the store does not know this key."
#define HINT_CLOCK "Set the clock of this machine, which signs its requests with the time (NTP)."
#define HINT_DENIED \
    "Allow s3:PutObject, s3:GetObject, s3:DeleteObject and s3:ListBucket to this key for the bucket."
#define HINT_BUCKET  "Create the bucket, or correct the address."
#define HINT_REGION  "Put the region of the bucket into the address: ?region=REGION."
#define HINT_MOVED   "Put the endpoint and the region of the bucket into the address."
#define HINT_TOKEN   "Get new temporary keys: those in use have expired."
#define HINT_S3      "Look at the endpoint in the address: what answers there is not S3."
#define HINT_TLS     "Name the file of the certificate authority in the address: ?ca=FILE."
#define HINT_PAYMENT "The account of the bucket does not allow it: ask its owner."

// By S3's own code, whatever the status.
static const struct {
    const char *code;
    enum blob_result result;
    const char *hint;
} codes[] = {
    {"NoSuchKey", BLOB_MISSING, NULL},
    {"NoSuchBucket", BLOB_CONFIG, HINT_BUCKET},
    {"SignatureDoesNotMatch", BLOB_CONFIG, HINT_SECRET},
    {"InvalidAccessKeyId", BLOB_CONFIG, HINT_ACCESS_KEY},
    {"RequestTimeTooSkewed", BLOB_CONFIG, HINT_CLOCK},
    {"RequestExpired", BLOB_CONFIG, HINT_CLOCK},
    {"AccessDenied", BLOB_CONFIG, HINT_DENIED},
    {"AllAccessDisabled", BLOB_CONFIG, HINT_PAYMENT},
    {"AccountProblem", BLOB_CONFIG, HINT_PAYMENT},
    {"QuotaExceeded", BLOB_CONFIG, HINT_PAYMENT},
    {"ExpiredToken", BLOB_CONFIG, HINT_TOKEN},
    {"InvalidToken", BLOB_CONFIG, HINT_TOKEN},
    {"AuthorizationHeaderMalformed", BLOB_CONFIG, HINT_REGION},
    {"IllegalLocationConstraintException", BLOB_CONFIG, HINT_REGION},
    {"InvalidBucketName", BLOB_CONFIG, HINT_BUCKET},
    {"PermanentRedirect", BLOB_CONFIG, HINT_MOVED},
    {"TemporaryRedirect", BLOB_CONFIG, HINT_MOVED},
    {"Redirect", BLOB_CONFIG, HINT_MOVED},
    {"NotImplemented", BLOB_CONFIG, NULL},
    {"RequestTimeout", BLOB_TRANSIENT, NULL},
    {"OperationAborted", BLOB_TRANSIENT, NULL},
    {"SlowDown", BLOB_TRANSIENT, NULL},
    {"ServiceUnavailable", BLOB_TRANSIENT, NULL},
    {"InternalError", BLOB_TRANSIENT, NULL},
    // Swift's name for it, inside of the answer to a delete.
    {"Server Error", BLOB_TRANSIENT, NULL},
};

// By the status, where the code is none of those. The first row that fits counts.
static const struct {
    long first, last;
    enum blob_result of_s3;
    enum blob_result of_stranger;
} statuses[] = {
    {300, 399, BLOB_CONFIG, BLOB_CONFIG},
    {408, 408, BLOB_TRANSIENT, BLOB_TRANSIENT}, // request timeout
    {425, 425, BLOB_TRANSIENT, BLOB_TRANSIENT}, // too early
    {429, 429, BLOB_TRANSIENT, BLOB_TRANSIENT}, // too many requests
    {401, 401, BLOB_CONFIG, BLOB_CONFIG},
    {403, 403, BLOB_CONFIG, BLOB_CONFIG},
    {404, 404, BLOB_CONFIG, BLOB_CONFIG},
    {407, 407, BLOB_CONFIG, BLOB_CONFIG}, // a proxy's
    {400, 499, BLOB_REJECTED, BLOB_CONFIG},
    {501, 501, BLOB_CONFIG, BLOB_CONFIG}, // the store has no such operation
    {500, 599, BLOB_TRANSIENT, BLOB_TRANSIENT},
};

static void judge_code(const char *code, struct s3_fault *ret)
{
    snprintf(ret->code, sizeof(ret->code), "%s", code);
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
        if (str_equal(codes[i].code, code)) {
            ret->result = codes[i].result;
            ret->hint = codes[i].hint;
            return;
        }
    }
}

static enum blob_result judge_status(long status, bool of_s3)
{
    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (status >= statuses[i].first && status <= statuses[i].last) {
            return of_s3 ? statuses[i].of_s3 : statuses[i].of_stranger;
        }
    }
    return BLOB_CONFIG;
}

// What is worth to be said behind the code, or "".
static void describe(const struct s3_error *error, const struct s3_head *head, char *ret,
                     size_t size)
{
    int64_t ahead = head->clock_s ? (int64_t)time(NULL) - head->clock_s : 0;

    if (str_equal(error->code, "RequestTimeTooSkewed") && ahead) {
        snprintf(ret, size, ": the clock of this machine is %" PRId64 " s %s that of the store",
                 ahead < 0 ? -ahead : ahead, ahead < 0 ? "behind" : "ahead of");
    } else if (head->region[0]) {
        snprintf(ret, size, ": the bucket is in the region %s", head->region);
    } else {
        snprintf(ret, size, "%s%s", error->message[0] ? ": " : "", error->message);
    }
}

void s3_fault_of_answer(long status, const char *body, size_t size, const struct s3_head *head,
                        struct s3_fault *ret)
{
    struct s3_error error = {.code = ""};
    char more[S3_MESSAGE_SIZE + 2] = "";

    *ret = (struct s3_fault){.hint = NULL};
    if (!s3_answer_error(body, size, &error)) {
        ret->result = judge_status(status, false);
        ret->hint = status >= 300 && status < 400 ? HINT_MOVED
                    : ret->result == BLOB_CONFIG  ? HINT_S3
                                                  : NULL;
        snprintf(ret->text, sizeof(ret->text), "the store answered %ld without saying why", status);
        return;
    }
    ret->result = judge_status(status, true);
    judge_code(error.code, ret);
    describe(&error, head, more, sizeof(more));
    snprintf(ret->text, sizeof(ret->text), "the store answered %ld %s%s", status, error.code, more);
    str_trim_utf8(ret->text);
}

void s3_fault_of_error(const struct s3_error *error, struct s3_fault *ret)
{
    *ret = (struct s3_fault){.result = BLOB_REJECTED};
    judge_code(error->code, ret);
    snprintf(ret->text, sizeof(ret->text), "the store answered %s%s%s", error->code,
             error->message[0] ? ": " : "", error->message);
    str_trim_utf8(ret->text);
}

// What libcurl says when there is nobody to blame but the set-up.
static const struct {
    CURLcode code;
    const char *hint;
} of_setup[] = {
    {CURLE_PEER_FAILED_VERIFICATION, HINT_TLS},
    {CURLE_SSL_CACERT_BADFILE, "Look at the file that ?ca= names in the address."},
    {CURLE_SSL_ISSUER_ERROR, HINT_TLS},
    {CURLE_UNSUPPORTED_PROTOCOL, NULL},
    {CURLE_URL_MALFORMAT, NULL},
    {CURLE_NOT_BUILT_IN, NULL},
};

void s3_fault_of_curl(CURLcode code, const char *why, struct s3_fault *ret)
{
    *ret = (struct s3_fault){.result = BLOB_TRANSIENT};
    for (size_t i = 0; i < sizeof(of_setup) / sizeof(of_setup[0]); i++) {
        if (of_setup[i].code == code) {
            ret->result = BLOB_CONFIG;
            ret->hint = of_setup[i].hint;
        }
    }
    snprintf(ret->text, sizeof(ret->text), "%s", why[0] ? why : curl_easy_strerror(code));
    str_trim_utf8(ret->text);
    str_one_line(ret->text);
}

void s3_fault_of_stranger(long status, struct s3_fault *ret)
{
    *ret = (struct s3_fault){.result = BLOB_CONFIG, .hint = HINT_S3};
    snprintf(ret->text, sizeof(ret->text),
             "the store answered %ld with something that is not of S3", status);
}
