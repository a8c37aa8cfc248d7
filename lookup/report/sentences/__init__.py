"""Write all sentences about figures for readers.

A sentence has numbers to remember, which are the value before and the value after. Only verdicts make
claims. If a log cannot show a change, the sentence gives the smallest change it could have missed.
"""

from lookup.report.sentences.answer import (
    MOVES,
    OVERLOAD,
    Answer,
    aims,
    answer,
    locality,
    rank_candidates,
    wholes,
    winner_of,
)
from lookup.report.sentences.cards import PLACE, card, confirm_command
from lookup.report.sentences.cautions import cautions, idle_sentences, no_answer_sentences
from lookup.report.sentences.decision import (
    at_best_sentence,
    comparison_counts,
    conclusion,
    identical_sentence,
    luck_sentence,
    opening,
    undecided_figures,
)
from lookup.report.sentences.definitions import definitions
from lookup.report.sentences.names import (
    LIGHT_MARKS,
    MARKS,
    OPEN_MARKS,
    UNJUDGED,
    condition_of,
    head_of,
    join_clauses,
    legend,
    mark_of,
    name_of,
    word_of,
)

__all__ = [
    "LIGHT_MARKS", "MARKS", "MOVES", "OPEN_MARKS", "OVERLOAD", "PLACE", "UNJUDGED", "Answer", "aims", "answer",
    "at_best_sentence", "card", "cautions", "comparison_counts", "conclusion", "condition_of", "confirm_command",
    "definitions", "head_of", "identical_sentence", "idle_sentences", "join_clauses", "legend", "locality",
    "luck_sentence", "mark_of", "name_of", "no_answer_sentences", "opening", "rank_candidates", "undecided_figures",
    "wholes", "winner_of", "word_of",
]  # fmt: skip
