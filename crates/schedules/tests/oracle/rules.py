"""Writes `rules.tsv`: recurrence rules with their first times as python-dateutil computes them.

    python3 rules.py > rules.tsv

Needs python-dateutil 2.9. The rules are random, and always the same. Left out is what dateutil reads otherwise than
RFC 5545, section 3.3.10: plain and numbered weekdays in one rule (it takes both conditions, not their union), BYWEEKNO
without days (it takes all seven, not the weekday of the start), BYSETPOS in a week that the start cuts, and the weeks
-52 and -53.
"""

import random
import signal
from datetime import datetime, timedelta

from dateutil.rrule import rrulestr

COUNT = 8  # times of each rule
YEARS = 100  # in which they are searched
RULES = 90  # of each frequency
DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]


def some(choices, most=3):
    return sorted(random.sample(choices, random.randint(1, min(most, len(choices)))))


def signed(most, bound=None):
    bound = bound or most
    return [n for n in range(-bound, most + 1) if n != 0]


def listed(name, numbers):
    return f"{name}=" + ",".join(str(n) for n in numbers)


def chance(of):
    return random.random() < of


def rule(frequency, start):
    parts = [f"FREQ={frequency}"]
    most = {"MINUTELY": 200, "HOURLY": 50, "DAILY": 40, "WEEKLY": 9, "MONTHLY": 14, "YEARLY": 5}[frequency]
    interval = random.choice([1, 1, 2, random.randint(1, most)])
    if interval > 1 or chance(0.1):
        parts.append(f"INTERVAL={interval}")
    long = frequency in ("YEARLY", "MONTHLY")
    if chance(0.3):
        parts.append(listed("BYMONTH", some(list(range(1, 13)), 4)))
    weeks = frequency == "YEARLY" and chance(0.2)
    if weeks:
        parts.append(listed("BYWEEKNO", some(signed(53, 51))))
    if frequency in ("YEARLY", "HOURLY", "MINUTELY") and not weeks and chance(0.15):
        parts.append(listed("BYYEARDAY", some(signed(366), 5)))
    if frequency != "WEEKLY" and not weeks and chance(0.35):
        parts.append(listed("BYMONTHDAY", some(signed(31), 5)))
    if weeks or chance(0.4):
        if long and not weeks and chance(0.6):
            by_month = frequency == "MONTHLY" or any(p.startswith("BYMONTH=") for p in parts)
            numbers = signed(5) if by_month else signed(53)
            days = [f"{random.choice(numbers)}{day}" for day in random.sample(DAYS, random.randint(1, 3))]
        else:
            days = random.sample(DAYS, random.randint(1, 4))
        parts.append("BYDAY=" + ",".join(days))
    if chance(0.3):
        parts.append(listed("BYHOUR", some(list(range(24)), 4)))
    if chance(0.3):
        parts.append(listed("BYMINUTE", some(list(range(60)), 4)))
    if chance(0.1):
        parts.append(f"BYSECOND={random.randint(0, 59)}")
    if chance(0.3):
        parts.append("WKST=" + random.choice(DAYS))
    wkst = next((DAYS.index(p[5:]) for p in parts if p.startswith("WKST=")), 0)
    cut = frequency == "WEEKLY" and start.weekday() != wkst
    if any(p.startswith("BY") for p in parts) and not cut and chance(0.25):
        parts.append(listed("BYSETPOS", some(signed(8), 3)))
    if chance(0.15):
        parts.append(f"COUNT={random.randint(1, 12)}")
    return ";".join(parts)


def times(text, start):
    found = []
    end = start + timedelta(days=YEARS * 365)
    for at in rrulestr(text, dtstart=start):
        if at > end:
            break
        found.append(at)
        if len(found) == COUNT:
            break
    return found


def late(*_):
    raise TimeoutError


def main():
    signal.signal(signal.SIGALRM, late)
    random.seed(5545)
    for frequency in ("MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY"):
        for _ in range(RULES):
            start = datetime(2000, 1, 1) + timedelta(seconds=random.randrange(30 * 365 * 86400))
            text = rule(frequency, start)
            signal.setitimer(signal.ITIMER_REAL, 0.5)
            try:
                found = times(text, start)
            except (ValueError, TimeoutError):
                continue  # dateutil refuses intervals that never meet, and looks for others for minutes
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            print(start.strftime("%Y%m%dT%H%M%S"), text, " ".join(t.strftime("%Y%m%dT%H%M%S") for t in found), sep="\t")


main()
