# SPDX-License-Identifier: PostgreSQL
"""Compares cron_next with croniter: compare.py EXPRESSIONS. The database is the one that libpq's environment names.

1. Random expressions, in UTC: the next five times of each.
2. Every change of the clocks of six zones from 2025 to 2028, two days around it. Farther from the change than the clocks jump, croniter is
   the measure. Near it croniter has rules of its own, which are written nowhere: there a walk from minute to minute through the rules that
   docs/schedules.md states is the measure, and how often croniter agrees is only counted.

Prints what was compared, and each difference. Status 0: none."""

import random
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from croniter import croniter

UTC = timezone.utc
NEXT = 5
ZONES = ("Europe/Berlin", "America/New_York", "America/Santiago", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Auckland")
YEARS = range(2025, 2029)
AROUND = timedelta(days=2)
# What is asked around a change: at, before and after the hours that zones change at, on some days, and every hour.
NEAR_CHANGES = ("30 2 * * *", "0 3 * * *", "15 0 * * *", "45 1 * * *", "0 0 * * *", "30 1,2,3 * * *", "0 */2 * * *", "*/20 23,0 * * *",
                "*/30 * * * *", "7 * * * *", "0 12 * * 0", "59 23 * * 6,0")
MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()


# ---- the two sides ----

def ask_millrace(questions):
    """The next times of (cron, after, zone, count), as lists of datetimes in UTC."""
    rows = "".join(f"{number}\t{cron}\t{after.isoformat()}\t{zone}\t{count}\n"
                   for number, (cron, after, zone, count) in enumerate(questions))
    script = """
\\set ON_ERROR_STOP on
set timezone = 'UTC';
create temporary table question (number int, cron text, after timestamptz, zone text, n int);
copy question from stdin;
%s\\.
create function pg_temp.times(cron text, after timestamptz, zone text, n int) returns text language plpgsql as $$
declare
  v_all text[];
begin
  for i in 1..n loop
    after := millrace.cron_next(cron, after, zone);
    v_all := v_all || extract(epoch from after)::bigint::text;
  end loop;
  return array_to_string(v_all, ' ');
end $$;
select pg_temp.times(q.cron, q.after, q.zone, q.n) from question q order by q.number;
""" % rows
    told = subprocess.run(["psql", "-XAtq"], input=script, capture_output=True, text=True, check=False)
    if told.returncode:
        sys.exit(told.stderr)
    return [[datetime.fromtimestamp(int(second), UTC) for second in line.split()] for line in told.stdout.splitlines()]


def for_croniter(cron):
    """croniter has the second last."""
    fields = cron.split()
    return " ".join(fields[1:] + fields[:1]) if len(fields) == 6 else cron


def ask_croniter(cron, after, zone, count):
    walk = croniter(for_croniter(cron), after.astimezone(ZoneInfo(zone)), ret_type=datetime)
    return [walk.get_next(datetime).astimezone(UTC) for _ in range(count)]


# ---- expressions ----

def random_range(dice, least, most, names):
    def written(value):
        return names[value - least] if names and dice.random() < 0.3 else str(value)
    low, high = sorted((dice.randint(least, most), dice.randint(least, most)))
    shape = dice.random()
    if shape < 0.45:
        return written(low)
    if shape < 0.7:
        return f"{written(low)}-{written(high)}"
    step = dice.randint(1, max(1, (most - least) // 2))
    if shape < 0.85:
        return f"{low}-{high}/{step}"
    # Not */1: with six fields croniter takes it for some days of the week, beside the days of the month, and not for all.
    return f"*/{max(step, 2)}"


def random_field(dice, least, most, star, names=()):
    if dice.random() < star:
        return "*"
    return ",".join(random_range(dice, least, most, names) for _ in range(dice.choice((1, 1, 1, 2, 3))))


def random_days(dice):
    """Day of the month and day of the week. croniter knows L and # and mistakes them where both fields are given."""
    special = dice.random()
    if special < 0.08:
        return dice.choice(("L", "15,L", "l")), "*"
    if special < 0.16:
        return "*", ",".join(f"{dice.choice(DAYS + list('0123456'))}#{dice.randint(1, 5)}" for _ in range(dice.choice((1, 2))))
    if special < 0.2:
        return "*", f"L{dice.randint(0, 6)}"
    return random_field(dice, 1, 31, 0.5), random_field(dice, 0, 6, 0.5, DAYS)


def random_cron(dice):
    day, week_day = random_days(dice)
    fields = [random_field(dice, 0, 59, 0.2), random_field(dice, 0, 23, 0.4), day, random_field(dice, 1, 12, 0.6, MONTHS), week_day]
    if dice.random() < 0.2:
        fields.insert(0, random_field(dice, 0, 59, 0.2))
    cron = " ".join(fields)
    return cron.upper() if dice.random() < 0.1 else cron


def random_questions(count):
    dice = random.Random(20300101)
    questions, seen = [], set()
    while len(questions) < count:
        cron = random_cron(dice)
        after = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=dice.randrange(10 * 365 * 86400))
        if cron in seen:
            continue
        try:
            expected = ask_croniter(cron, after, "UTC", NEXT)
        except ValueError:
            continue        # 30 February: it says so only when asked
        seen.add(cron)
        questions.append(((cron, after, "UTC", NEXT), expected))
    return questions


def compare_random(count):
    questions = random_questions(count)
    differences = 0
    for (question, expected), told in zip(questions, ask_millrace([question for question, _ in questions])):
        if told != expected:
            differences += 1
            print(f"{question[0]!r} after {question[1]}: {told} but croniter {expected}")
    print(f"{len(questions):,} expressions, {len(questions) * NEXT:,} times: {differences} differ from croniter's")
    return differences


# ---- changes of the clocks ----

def changes(zone):
    """(moment, seconds by which the clocks jump) for each change of a zone."""
    at, end = datetime(YEARS[0], 1, 1, tzinfo=UTC), datetime(YEARS[-1] + 1, 1, 1, tzinfo=UTC)
    step, found = timedelta(minutes=15), []
    while at < end:
        jump = ((at + step).astimezone(zone).utcoffset() - at.astimezone(zone).utcoffset()).total_seconds()
        if jump:
            found.append((at + step, jump))
        at += step
    return found


class Rules:
    """The stated rules, by walking from minute to minute."""

    def __init__(self, cron, zone):
        self.zone = zone
        self.minutes, self.hours, self.days, self.months, self.week_days = ({*field} for field in croniter.expand(cron)[0])
        self.every_hour = "*" in self.hours

    def fits(self, local):
        def among(value, field):
            return "*" in field or value in field
        return (among(local.minute, self.minutes) and among(local.hour, self.hours) and among(local.month, self.months)
                and among(local.day, self.days) and among(local.isoweekday() % 7, self.week_days))

    def fires(self, at, change, jump):
        local = at.astimezone(self.zone)
        if at == change and jump > 0 and not self.every_hour:
            left_out = [local - timedelta(minutes=minute) for minute in range(1, int(jump) // 60 + 1)]
            if any(self.fits(wall) for wall in left_out):
                return True
        return self.fits(local) and (self.every_hour or not local.fold)

    def between(self, start, end, change, jump):
        found, at = [], start + timedelta(minutes=1)
        while at <= end:
            if self.fires(at, change, jump):
                found.append(at)
            at += timedelta(minutes=1)
        return found


def near_change(at, change, jump):
    return abs((at - change).total_seconds()) <= 2 * abs(jump)


class Around:
    """What was compared around changes."""

    def __init__(self):
        self.far = self.near = self.agree = self.differences = 0

    def differ(self, cron, zone, before, told, expected, who):
        self.differences += 1
        print(f"{cron!r} in {zone} after {before}: {told} but {who} {expected}")

    def compare(self, cron, zone, change, jump, by_rules, told):
        start = change - AROUND
        if told != by_rules:
            self.differ(cron, zone, start, told, by_rules, "by the rules")
        for before, after in zip([start] + told, told):
            agrees = ask_croniter(cron, before, zone, 1)[0] == after
            if near_change(after, change, jump) or before < change <= after:
                self.near += 1
                self.agree += agrees
            else:
                self.far += 1
                if not agrees:
                    self.differ(cron, zone, before, after, ask_croniter(cron, before, zone, 1)[0], "croniter")


def compare_changes():
    around, count, asked = Around(), 0, []
    for zone in ZONES:
        for change, jump in changes(ZoneInfo(zone)):
            count += 1
            for cron in NEAR_CHANGES:
                walls = Rules(cron, ZoneInfo(zone)).between(change - AROUND, change + AROUND, change, jump)
                if walls:
                    asked.append((cron, zone, change, jump, walls))
    told = ask_millrace([(cron, change - AROUND, zone, len(walls)) for cron, zone, change, _, walls in asked])
    for question, times in zip(asked, told):
        around.compare(*question, times)
    print(f"{len(ZONES)} zones, {count} changes of their clocks, {around.far + around.near:,} times by the rules: "
          f"{around.differences} differ; croniter agrees with {around.far:,} of {around.far:,} away from a change "
          f"and with {around.agree:,} of {around.near:,} next to one")
    return around.differences


if __name__ == "__main__":
    sys.exit(1 if compare_random(int(sys.argv[1])) + compare_changes() else 0)
