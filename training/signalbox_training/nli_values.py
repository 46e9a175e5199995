"""Numbers, amounts and dates in words: true forms of a value, and values that are not it."""

from __future__ import annotations

import datetime
import random

SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
         "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty"]
TENS = {30: "thirty", 40: "forty", 50: "fifty", 60: "sixty", 70: "seventy", 80: "eighty", 90: "ninety", 100: "one hundred"}
MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
CURRENCIES = [("$", "dollars"), ("€", "euros"), ("£", "pounds")]
ABOUT = ["about", "around", "roughly", "approximately", "some"]
# The unit, the one it is turned into and the factor (international definitions).
CONVERSIONS = {"km": ("miles", 0.621371), "kilometres": ("miles", 0.621371), "kilometers": ("miles", 0.621371), "miles": ("km", 1.609344),
               "m": ("feet", 3.28084), "metres": ("feet", 3.28084), "meters": ("feet", 3.28084), "feet": ("metres", 0.3048),
               "kg": ("pounds", 2.204623), "pounds": ("kg", 0.453592), "hours": ("minutes", 60), "minutes": ("seconds", 60),
               "weeks": ("days", 7), "years": ("months", 12), "GB": ("MB", 1000), "tonnes": ("kg", 1000), "grams": ("milligrams", 1000),
               "cm": ("inches", 0.393701), "inches": ("cm", 2.54), "litres": ("gallons", 0.264172)}
LONG = {"km": "kilometres", "m": "metres", "kg": "kilograms", "cm": "centimetres", "GB": "gigabytes", "mg": "milligrams"}
WRONG_UNIT = {"km": "miles", "miles": "km", "m": "feet", "metres": "feet", "meters": "feet", "feet": "metres", "kg": "pounds", "pounds": "kg",
              "hours": "days", "minutes": "hours", "seconds": "minutes", "days": "weeks", "weeks": "months", "months": "years",
              "years": "months", "million": "billion", "billion": "million", "thousand": "million", "percent": "percentage points",
              "GB": "MB", "cm": "inches", "inches": "cm", "mg": "g", "grams": "kilograms", "kilometers": "miles", "kilometres": "miles"}


def plain(value: float) -> str:
    """The shortest digits."""
    return f"{value:.10g}" if value < 1e10 else str(int(value))


def commas(value: float) -> str:
    whole = f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}".rstrip("0")
    return whole


def spelled(value: float) -> str | None:
    """The word for a small whole number, else None."""
    if not float(value).is_integer():
        return None
    if 0 <= value <= 20:
        return SMALL[int(value)]
    return TENS.get(int(value))


def scaled(value: float) -> str | None:
    """1.5 million for 1,500,000, where no more than three digits are needed."""
    for size, name in ((1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if value >= size and float(f"{value / size:.3g}") == value / size and (size > 1e3 or value >= 1e4):
            return f"{plain(value / size)} {name}"
    return None


def rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def true_form(value: float, rng: random.Random) -> str:
    """The value written in one of the ways that say the same, sometimes rounded and said to be."""
    forms = [commas(value), plain(value)]
    forms += [f for f in (spelled(value), scaled(value)) if f] * 2
    digits = len(plain(value).replace(".", "").strip("0"))
    draw = rng.random()
    if digits >= 3 and draw < 0.4:
        near = rounded(value, rng.choice([1, 2] if abs(rounded(value, 1) - value) < 0.06 * value else [2]))
        text = rng.choice([f for f in (commas(near), scaled(near)) if f])
        if near == value:
            return text
        words = ABOUT + (["nearly", "almost", "just under"] if near > value else ["more than", "over", "just over"])
        return f"{rng.choice(words)} {text}"
    if digits >= 2 and draw > 0.92:
        return f"{rng.choice(['at least', 'no less than', 'at most', 'up to'])} {rng.choice(forms)}"
    return rng.choice(forms)


def false_value(value: float, rng: random.Random) -> float:
    """Another value of the same look, too far away to be a rounding."""
    whole, text = float(value).is_integer(), plain(value)
    for _ in range(20):
        kind = rng.random()
        if kind < 0.45:  # another digit, mostly a leading one
            at = rng.choice([i for i, c in enumerate(text) if c.isdigit()][: max(1, len(text) - (value > 20))])
            other = float(text[:at] + rng.choice("123456789") + text[at + 1 :])
        elif kind < 0.6:
            other = value * rng.choice([10, 0.1, 2, 0.5])
        elif kind < 0.7 and len(text) > 1:
            at = rng.randrange(len(text) - 1)
            swapped = text[:at] + text[at + 1] + text[at] + text[at + 2 :]
            other = float(swapped) if swapped.replace(".", "", 1).isdigit() else value
        else:
            other = value * rng.uniform(0.4, 1.8) + rng.choice([-2, -1, 1, 2]) * (value < 20)
        other = float(round(other)) if whole else float(f"{other:.{max(2, len(text) - 1)}g}")
        if other > 0 and abs(other - value) > 0.04 * value:
            return other
    return value + max(1, round(value * 0.3))


def false_year(year: int, rng: random.Random) -> int:
    other = year
    while other == year or other > 2035:
        other = year + rng.choice([-100, -50, -30, -20, -12, -10, -7, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 8, 10, 15, 20, 100])
    return other


def date_forms(day: datetime.date) -> list[str]:
    month = MONTHS[day.month - 1]
    return [f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", day.isoformat(), f"{month[:3]} {day.day}, {day.year}",
            f"the {ordinal(day.day)} of {month} {day.year}"]


def ordinal(n: int) -> str:
    return f"{n}{'th' if 10 <= n % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th')}"


def vague_dates(day: datetime.date) -> list[str]:
    """Less exact, still true, each fit to follow "in"."""
    return [f"{MONTHS[day.month - 1]} {day.year}", str(day.year), f"the {day.year // 10 * 10}s"]


def false_date(day: datetime.date, rng: random.Random) -> datetime.date:
    other = day
    while other == day:
        kind = rng.random()
        if kind < 0.4:
            other = day.replace(day=rng.randint(1, 28))
        elif kind < 0.7:
            other = day.replace(day=min(day.day, 28), month=rng.randint(1, 12))
        else:
            other = day.replace(day=min(day.day, 28), year=false_year(day.year, rng))
    return other


def converted(value: float, unit: str, rng: random.Random) -> str | None:
    """The amount in another unit, rounded to two or three digits, else None."""
    if unit not in CONVERSIONS:
        return None
    other, factor = CONVERSIONS[unit]
    exact = value * factor
    near = rounded(exact, rng.choice([2, 3]))
    text = f"{commas(near)} {other}"
    return text if near == exact and rng.random() < 0.6 else f"{rng.choice(ABOUT)} {text}"


def true_amount(value: float, unit: str, rng: random.Random) -> str:
    draw = rng.random()
    other = converted(value, unit, rng) if draw < 0.25 else None
    return other or f"{true_form(value, rng)} {LONG.get(unit, unit) if draw > 0.6 else unit}"


def false_amount(value: float, unit: str, rng: random.Random) -> str:
    """Another amount: mostly another number, now and then the same number of another unit, or wrongly turned into one."""
    draw = rng.random()
    if draw < 0.15 and unit in WRONG_UNIT:
        return f"{commas(value)} {WRONG_UNIT[unit]}"
    other = false_value(value, rng)
    if draw < 0.3:
        turned = converted(other, unit, rng)
        if turned:
            return turned
    return f"{true_form(other, rng) if draw < 0.6 else commas(other)} {unit}"
