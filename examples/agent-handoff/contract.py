"""Writes a made-up supply contract of about 100 KB, the same every time."""

import random

PARTIES = ["the Supplier", "the Customer"]
THINGS = ["Products", "Spare Parts", "Services", "Tooling", "Documentation", "Software"]
DUTIES = [
    "shall deliver the {thing} to the Place of Delivery within {n} Business Days of each Order",
    "shall inspect the {thing} within {n} days of receipt and give notice of any visible defect without delay",
    "shall keep complete records of the {thing} for {n} years and make them available on request",
    "shall pay every undisputed invoice for the {thing} within {n} days of its receipt",
    "shall insure the {thing} against loss and damage for at least EUR {m}",
    "shall remedy a defect of the {thing} within {n} Business Days, or replace the {thing} at its own expense",
    "shall not assign its claims in respect of the {thing} without the prior written consent of the other party",
    "shall treat all information about the {thing} as confidential for {n} years after the end of this Agreement",
]
LIMITS = [
    "For each full week of delay a penalty of {p} per cent of the price of the delayed {thing} is due, up to {q} per cent in total.",
    "The liability under this clause is limited to EUR {m} in each calendar year; clause {ref} remains unaffected.",
    "Either party may terminate this clause with {n} days' notice to the end of a calendar quarter, as set out in clause {ref}.",
    "Notices under this clause are given in writing to the addresses in Schedule {s}.",
    "Where this clause and clause {ref} conflict, this clause prevails in respect of the {thing}.",
    "Prices of the {thing} are adjusted once a year by the index in Schedule {s}, by no more than {p} per cent.",
]


def contract(size=100_000):
    """Returns the text: clauses until it has size bytes, each with its number."""
    draw = random.Random(7)
    clauses = ["SUPPLY AGREEMENT\n\nbetween Northern Works Ltd (the Supplier) and Harbour Pumps plc (the Customer).\n"]
    length = len(clauses[0])
    number = 0
    while length < size:
        number += 1
        thing = draw.choice(THINGS)
        values = {
            "thing": thing, "n": draw.randint(2, 90), "m": f"{draw.randint(1, 40) * 25_000:,}", "p": draw.randint(1, 5),
            "q": draw.randint(6, 20), "s": draw.randint(1, 9), "ref": draw.randint(1, max(1, number)),
        }
        sentences = [f"{draw.choice(PARTIES).capitalize()} {duty.format(**values)}." for duty in draw.sample(DUTIES, 2)]
        sentences += [limit.format(**values) for limit in draw.sample(LIMITS, 2)]
        clauses.append(f"\n{number}. {thing}.\n" + "\n".join(f"{number}.{i + 1} {s}" for i, s in enumerate(sentences)) + "\n")
        length += len(clauses[-1])
    return "".join(clauses)


if __name__ == "__main__":
    print(contract())
