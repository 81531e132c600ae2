"""The checker finds what is wrong: each history here is a good one with one thing changed."""

import pytest
from history import Answer, Batch, Book, History, Reign, check

A, B = ("chat-1", 1), ("chat-1", 2)


def good():
    """Two nodes; a led until 10, then b. Two matches, of which one ended, and its slot was sold
    again."""
    h = History()
    h.answers = [
        Answer(A, "a", 1.0, 1.1, {"server": 7, "token": "x", "what": "room 1, slot 0"}),
        Answer(A, "b", 11.0, 11.1, {"server": 7, "token": "x", "what": "room 1, slot 0"}),
        Answer(B, "b", 12.5, 12.6, {"server": 7, "token": "y", "what": "room 1, slot 0"}),
        Answer(A, "b", 13.0, 13.1, None, "Invalid match lobby ID"),
    ]
    h.releases = {A: 12.0}
    h.books = [
        Book("server 7", 1, "x", 1.05, True),
        Book("server 7", 1, "x", 12.1, False),
        Book("server 7", 1, "y", 12.55, True),
    ]
    reigns = [Reign(1, "a", 0.0), Reign(2, "b", 10.0)]
    journal = [Batch(1, 1), Batch(2, 1), Batch(3, 2)]
    kept = {B: {"server": 7}}
    return h, reigns, journal, kept


def test_a_good_one_passes():
    assert check(*good()) == []


def two_answers(h, *_):
    h.answers[1] = h.answers[1]._replace(value={**h.answers[1].value, "server": 8})
    return "answered"


def refused_while_it_stands(h, *_):
    h.answers.append(Answer(B, "b", 14.0, 14.1, None, "No servers available"))
    return "refused it later"


def refused_before_it_was_released(h, *_):
    h.releases[A] = 13.2
    h.answers[2:3] = []
    h.books.clear()
    return "refused it later"


def sold_twice(h, *_):
    h.releases[A] = 12.65
    h.answers.pop()
    h.books.clear()
    return "before that was over"


def never_given_back(h, *_):
    h.books.pop(1)
    return "holds 2"


def one_too_many_for_a_moment(h, *_):
    h.books[1] = h.books[1]._replace(at=12.56)
    return "holds 2"


def the_fenced_one_speaks(h, *_):
    h.answers.append(Answer(A, "a", 10.01, 10.02, dict(h.answers[0].value)))
    return "and led"


def spoken_before_it_leads(h, *_):
    h.answers.insert(1, Answer(A, "b", 9.0, 9.9, dict(h.answers[0].value)))
    return "and led"


def refused_by_the_fenced_one(h, *_):
    h.answers.append(Answer(("chat-1", 3), "a", 11.0, 11.1, None, "No servers available"))
    return "and led"


def a_stranger_speaks(h, *_):
    h.answers.append(Answer(A, "c", 11.0, 11.1, dict(h.answers[0].value)))
    h.releases[A] = 12.0
    return "and led"


def a_gap(_h, _reigns, journal, _kept):
    journal[2] = Batch(4, 2)
    return "batch 4 comes after batch 2"


def a_batch_twice(_h, _reigns, journal, _kept):
    journal.insert(2, Batch(2, 1))
    return "batch 2 comes after batch 2"


def written_by_the_fenced_one(_h, _reigns, journal, _kept):
    journal.append(Batch(4, 1))
    return "of epoch 1, the one before it of 2"


def an_epoch_of_nobody(_h, _reigns, journal, _kept):
    journal.append(Batch(4, 3))
    return "which nobody took"


def an_epoch_left_out(_h, reigns, _journal, _kept):
    reigns.append(Reign(4, "a", 20.0))
    return "comes after epoch 2"


def an_epoch_twice(_h, reigns, _journal, _kept):
    reigns.append(Reign(2, "a", 20.0))
    return "comes after epoch 2"


def lost(_h, _reigns, _journal, kept):
    kept.clear()
    return "does not know it"


def kept_otherwise(_h, _reigns, _journal, kept):
    kept[B]["server"] = 8
    return "the database has 8"


@pytest.mark.parametrize("spoil", [
    two_answers, refused_while_it_stands, refused_before_it_was_released, sold_twice,
    never_given_back, one_too_many_for_a_moment, the_fenced_one_speaks, spoken_before_it_leads,
    refused_by_the_fenced_one, a_stranger_speaks, a_gap, a_batch_twice, written_by_the_fenced_one,
    an_epoch_of_nobody, an_epoch_left_out, an_epoch_twice, lost, kept_otherwise],
    ids=lambda f: f.__name__)
def test_what_is_wrong_is_found(spoil):
    parts = good()
    wanted = spoil(*parts)
    found = check(*parts)
    assert len(found) >= 1 and all(wanted in sentence for sentence in found), found


@pytest.mark.parametrize("since, at", [(9.99, 10.5), (9.0, 9.9)])
def test_what_left_in_time_and_was_long_in_coming_is_fine(since, at):
    parts = good()
    parts[0].answers.insert(1, Answer(A, "a", since, at, dict(parts[0].answers[0].value)))
    assert check(*parts) == []


def test_what_came_through_somebody_between_is_held_against_the_rest():
    h, *rest = good()
    h.answers.append(Answer(B, None, 20.0, 20.1, {"server": 7, "token": "z"}))
    assert len(check(h, *rest)) == 1
    h.answers[-1] = Answer(B, None, 20.0, 20.1, dict(h.answers[2].value))
    assert check(h, *rest) == []
