"""Own prompts for factcheck that no public set of ours has: what people say to an assistant about themselves, their
devices and the assistant, which no source of facts answers, and questions as textbooks and exams put them, which one does.

Without them the class follows the look of a source: short lower-case questions are looked up, long ones with options are
calculations.
"""

from __future__ import annotations

import random

from . import everyday, synth

# What only the user's own accounts, devices and plans know, or what is done rather than known.
PERSONAL = [
    "what's my {thing}", "how much {money} do i have left", "when is my {event}", "do i have anything {day}", "did {name} reply to my {message}", "show my {thing}",
    "read out the last {message}", "has my {parcel} been sent yet", "where did i put my {item}", "how long until my {event} starts", "who called me {day}", "which {item} is on my list",
    "is my {device} still on", "why is my {device} not responding to me", "what did i spend on {spend} this month", "am i free at {n} {day}", "what's next on my calendar",
    "can i afford {spend} this week", "what's the status of my {parcel}", "tell me how many {message}s i have", "when do i have to leave for my {event}", "what {thing} did i set last time",
    "whats the temperature in my {room}", "is the {room} window closed", "how many steps did i do {day}", "what's left on my {item} list", "is anybody in the {room}",
]
ORDERS = [
    "set an alarm for {n} {day}", "turn {onoff} the {device} in the {room}", "make the {room} lights {colour}", "play {music}", "skip this song", "louder please", "stop the music at {n}",
    "remind me to call {name} {day}", "add {item} to the list", "remove {item} from my shopping list", "order {food} for {n} people", "book a table for {n} at {n2}", "cancel my {event}",
    "move the {event} with {name} to {day}", "send {name} a {message} that i will be late", "transfer {n2} to {name}", "block my card", "pay the {spend} bill", "change my {thing}",
    "call {name}", "start a {n} minute timer", "call me {name} from now on", "speak more slowly", "switch to another language", "repeat that please", "get me a ride to the {place}",
    "find me a flight to {city} {day}", "report my {item} as lost", "freeze my account", "dim the {device}", "vacuum the {room}", "mute everything until {n}", "next episode please", "rate this song {n} stars",
    "put {event} in my diary for {day}", "i need a new {item} for my {event}", "i want to return my {item}", "open my {thing}", "take a note: {item} for {name}", "please check my {message}s",
    "make me a coffee", "lock the {room} door", "text {name} happy birthday", "email {name} about the {event}", "suggest something for dinner with {food}", "navigate to the {place} and avoid tolls",
    "how is the traffic on my way to the {place}", "will i need an umbrella {day}", "is it cold outside right now", "how do you say {food} in {language}", "what is {n} times {n2}", "how many {unit} are {n} {unit2}",
    "what's {n} percent of {n2}", "roll a die", "flip a coin", "pick a number from {n} to {n2}", "spell {item}", "what time is it", "what day is it", "what's the date {day}",
]
SMALLTALK = [
    "who made you", "what's your name", "are you a robot", "do you have a hobby", "how old are you", "where do you live", "are you human", "do you like {food}", "do you sleep", "can you feel pain",
    "what can you do", "tell me something funny", "tell me a joke about {item}s", "i'm bored", "i am sad {day}", "you are not helping", "good morning", "thanks a lot", "see you {day}", "that is wrong, try again",
    "yes please", "no, not that one", "maybe later", "what is the point of it all", "why are we here", "what do you think of {name}", "are we friends", "do you get tired of questions", "sing me something",
    "who is your boss", "will you marry me", "i love you", "what is your favourite colour", "how was your day", "what should i do with my life", "is there any sense in life", "go away", "never mind",
    "what would you do if you were me", "which of the two should i wear {day}", "am i right", "guess what i am thinking of", "tell me your secrets", "do you have a family", "are you listening",
]
WRITING = [
    "Write a {form} about {item}s for {name}.", "Continue the story: {name} opened the door of the {place} and", "Rewrite this in a friendlier tone: send me the {item} by {n}.", "Give the {item} a funny name.",
    "You are a {role}. A customer complains about a cold {food}. What do you say?", "Play the part of a {role} and greet me.", "Imagine you were a {role} in {city}. Describe your morning.",
    "As a {role}, write a letter to {name}.", "Put yourself in the position of a {role} and answer in character.", "Make a sentence with {item}, {food} and {place}.", "Use the words {item}, {device} and {place} in a line.",
    "Turn this into a table: {name} {n}, {food} {n2}.", "Sort these words: {item}, {food}, {device}, {place}.", "Write a class {item} with a method that returns {n}.", "What is wrong with this loop: for i in range({n}) print(i)",
    "Solve {n}x + {n2} = 0.", "A {item} costs {n} and a {device} {n2}; how much are three of each?", "Let f(x) = x^{n}. Find f'(x).", "Plan a day in the {place} with {name}.", "Congratulate {name} on the {event}.",
    "Write a regex that matches {n} digits.", "Correct the spelling: {name} has ben too the {place}.", "Shorten this: we would like to kindly ask you to bring the {item} {day}.", "Make a list of {n} gifts for {name}.",
]
SLOTS = {
    "thing": "balance|schedule|pin|shopping list|password|next appointment|playlist|screen brightness|alarm|credit limit|home address|profile picture", "money": "money|credit|data|holiday|pocket money",
    "event": "dentist appointment|meeting|flight|wedding|parents' evening|exam|interview|haircut|birthday party", "day": "today|tomorrow|on monday|this friday|next week|tonight|in the morning|at the weekend",
    "name": "mum|Anna|Peter|the boss|my sister|Mr Chen|grandpa|Lucía|the plumber", "message": "mail|message|text|letter|voicemail", "parcel": "order|parcel|refund|new card|application",
    "item": "key|milk|charger|umbrella|notebook|jacket|ticket|candle|bicycle|wallet", "device": "lamp|heating|oven|printer|speaker|tv|coffee machine|router|washing machine", "spend": "gas|groceries|taxis|the rent|shoes|phone",
    "room": "kitchen|bedroom|garage|bathroom|living room|hall", "onoff": "on|off", "colour": "red|warmer|blue|brighter|darker", "music": "some jazz|the last album again|my running list|rain sounds|the radio|something quiet",
    "food": "pizza|sushi|soup|noodles|pancakes|salad|curry", "place": "airport|office|gym|station|museum|beach|library", "city": "Rome|Oslo|Boston|Kyoto|Lima", "language": "italian|swedish|korean|portuguese",
    "unit": "grams|miles|inches|cups|minutes", "unit2": "ounces|kilometres|centimetres|litres|hours", "form": "poem|limerick|birthday card|bedtime story|haiku|slogan|short scene",
    "role": "waiter|pirate|ship's cook|museum guide|town mayor|detective|gardener|time traveller|head of marketing|football coach|astronaut|travel agent",
}
# Exam and textbook shapes; {} is a topic of a subject whose answer is knowledge.
TEXTBOOK = [
    "Describe the role of {}.", "Which of the following best describes {}? {options}", "Explain why {} matters and give two examples.", "Compare {} with {other}.", "What are the main characteristics of {}?",
    "Discuss the consequences of {}.", "Define {} and name its main parts.", "All of the following are true of {} except ________. {options}", "How did {} change over time?", "________ is most closely related to {}. {options}",
    "What distinguishes {} from {other}?", "Identify the causes of {}.", "In which way do {} and {other} influence each other?", "According to most authors, what explains {}?", "List three functions of {}.",
    "A student claims that {other} is a form of {}. Why is that wrong?", "What happens when {} fails?", "Which statement about {} is false? {options}", "Outline the development of {}.", "Why was {} important for {other}?",
    "What evidence is there for {}?", "What is the relation between {} and {other}? {options}", "Summarise what is known about {}.", "In what ways does {} differ between countries?", "Suggest two reasons why {} was disputed.",
    "Marta reads about {} and concludes that {other} came first. What should she look up?", "Who is associated with {}?", "Give an example of {} and say which rule it follows.", "The term for {} is ________. {options}",
]
KNOWLEDGE = ("biology", "business", "chemistry", "economics", "engineering", "health", "history", "law", "philosophy", "physics", "psychology")
LOOKED_UP = ("biology", "chemistry", "economics", "health", "history", "law", "physics")  # everyday questions about these are about facts


def fill(form: str, rng: random.Random) -> str:
    """A form with its slots filled; numbers are drawn."""
    words = {name: rng.choice(words.split("|")) for name, words in SLOTS.items()}
    return form.format(**words, n=rng.randint(2, 12), n2=rng.randint(13, 95))


def textbook(rng: random.Random, topics: list[str]) -> str:
    """A question about one of the topics, sometimes with the options of a test."""
    one, other, *rest = rng.sample(topics, min(6, len(topics)))
    marks = rng.choice([("", "", "", ""), ("a. ", "b. ", "c. ", "d. "), ("A) ", "B) ", "C) ", "D) ")])
    options = " ".join(mark + option for mark, option in zip(marks, rest))
    return rng.choice(TEXTBOOK).replace("{options}", options).replace("{other}", other).format(one).strip()


def texts() -> list[tuple[str, int]]:
    """(text, 1 when verifiable facts are asked for) pairs."""
    rng, out = random.Random(34), []
    for forms, times in ((PERSONAL, 18), (ORDERS, 11), (SMALLTALK, 3), (WRITING, 22)):
        for form in forms:
            found = {fill(form, rng) for _ in range(times)}
            out += [(t.capitalize() + rng.choice(["", ".", "?"]) if rng.random() < 0.3 and forms is not WRITING else t, 0) for t in sorted(found)]
    for domain in KNOWLEDGE:
        topics = synth.TOPICS[domain].split("; ")
        out += [(textbook(rng, topics), 1) for _ in range(110)]
    for text, domain in everyday.texts():
        if domain in LOOKED_UP and text.rstrip().endswith(("?", "？", "؟")):
            out.append((text, 1))
        elif domain == "math":
            out.append((text, 0))
    return out
