// SPDX-License-Identifier: PostgreSQL
//
// Points in time as text: see iso_time.h.

#include "base/iso_time.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define US_PER_SECOND   INT64_C(1000000)
#define SECONDS_PER_DAY INT64_C(86400)
#define FRACTION_DIGITS 6
// The last one that PostgreSQL has is 294276, the last one that microseconds in 64 bits have
// 294247.
#define YEAR_MAX 294000

struct parts {
    int year, month, day, hour, minute, second;
    int64_t fraction_us;
    int zone_s;
};

// Days since 1970-01-01 of a date of the Gregorian calendar, whose years begin in March here: the
// odd day is the last one then.
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
    int64_t z = days + 719468;
    int64_t era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t of_era = z - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153;

    *ret_day = (int)(of_year - (153 * month + 2) / 5 + 1);
    *ret_month = (int)(month < 10 ? month + 3 : month - 9);
    *ret_year = (int)(year + era * 400 + (*ret_month <= 2));
}

// Reads `least` to `most` digits.
static bool digits(const char **at, int least, int most, int *ret)
{
    int n = 0;
    int value = 0;

    while (n < most && isdigit((unsigned char)(*at)[n])) {
        value = value * 10 + ((*at)[n++] - '0');
    }
    *at += n;
    *ret = value;
    return n >= least;
}

static bool skip(const char **at, char c)
{
    bool there = **at == c;

    *at += there;
    return there;
}

// What is beyond a microsecond is dropped.
static bool read_fraction(const char **at, int64_t *ret_us)
{
    int n = 0;

    *ret_us = 0;
    for (; isdigit((unsigned char)**at); (*at)++, n++) {
        if (n < FRACTION_DIGITS) {
            *ret_us = *ret_us * 10 + (**at - '0');
        }
    }
    for (int i = n; i < FRACTION_DIGITS; i++) {
        *ret_us *= 10;
    }
    return n > 0;
}

static bool read_zone(const char **at, struct parts *parts)
{
    int hours = 0, minutes = 0;

    while (skip(at, ' ')) {
    }
    if (**at == '\0' || skip(at, 'Z') || skip(at, 'z')) {
        return true;
    }
    int sign = skip(at, '+') ? 1 : skip(at, '-') ? -1 : 0;
    if (sign == 0 || !digits(at, 2, 2, &hours)) {
        return false;
    }
    if ((skip(at, ':') || isdigit((unsigned char)**at)) && !digits(at, 2, 2, &minutes)) {
        return false;
    }
    parts->zone_s = sign * (hours * 3600 + minutes * 60);
    return hours < 16 && minutes < 60;
}

static bool read_parts(const char *at, struct parts *parts)
{
    if (!digits(&at, 4, 6, &parts->year) || !skip(&at, '-') || !digits(&at, 1, 2, &parts->month) ||
        !skip(&at, '-') || !digits(&at, 1, 2, &parts->day)) {
        return false;
    }
    if (*at == '\0') {
        return true;
    }
    if (!(skip(&at, ' ') || skip(&at, 'T') || skip(&at, 't')) || !digits(&at, 1, 2, &parts->hour) ||
        !skip(&at, ':') || !digits(&at, 2, 2, &parts->minute)) {
        return false;
    }
    if (skip(&at, ':') && (!digits(&at, 2, 2, &parts->second) ||
                           (skip(&at, '.') && !read_fraction(&at, &parts->fraction_us)))) {
        return false;
    }
    return read_zone(&at, parts) && *at == '\0';
}

static bool exists(const struct parts *parts)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = parts->year;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    if (year < 1 || year > YEAR_MAX || parts->month < 1 || parts->month > 12 || parts->day < 1) {
        return false;
    }
    return parts->day <= lengths[parts->month - 1] + (parts->month == 2 && leap) &&
           parts->hour < 24 && parts->minute < 60 && parts->second < 60;
}

enum iso_time_fault iso_time_parse(const char *text, int64_t *ret_us)
{
    struct parts parts = {0};

    if (!read_parts(text, &parts)) {
        return ISO_TIME_FORM;
    }
    if (!exists(&parts)) {
        return ISO_TIME_RANGE;
    }
    int64_t seconds = days_of(parts.year, parts.month, parts.day) * SECONDS_PER_DAY +
                      parts.hour * 3600 + parts.minute * 60 + parts.second - parts.zone_s;
    *ret_us = seconds * US_PER_SECOND + parts.fraction_us;
    return ISO_TIME_GOOD;
}

void iso_time_print(int64_t us, char ret[ISO_TIME_SIZE])
{
    int64_t seconds = us / US_PER_SECOND - (us % US_PER_SECOND < 0);
    int fraction = (int)(us - seconds * US_PER_SECOND);
    int64_t days = seconds / SECONDS_PER_DAY - (seconds % SECONDS_PER_DAY < 0);
    int of_day = (int)(seconds - days * SECONDS_PER_DAY);
    int year = 0, month = 0, day = 0;
    char tail[16] = "";

    date_of(days, &year, &month, &day);
    if (fraction) {
        snprintf(tail, sizeof(tail), ".%06d", fraction);
        for (size_t end = strlen(tail); tail[end - 1] == '0'; end--) {
            tail[end - 1] = '\0';
        }
    }
    snprintf(ret, ISO_TIME_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d%s+00:00", year, month, day,
             of_day / 3600, of_day / 60 % 60, of_day % 60, tail);
}
