/* What readers of the feed are given, as text of an event stream. Shapes are those of the HTTP API
 * without what no row holds. Visible inside src/api only; owns nothing. */
#pragma once

#include "api/feed.h"
#include "api/shape.h"
#include "core/view.h"

/* A place in the stream: everything of the batches before seq, and of seq the first `index`
 * changes. */
struct feed_place {
    int64_t seq;
    int32_t index;
};

/* Reads an id as readers send it: "batch.change" is the place after that change, "batch" the one
 * after that batch. False when text is neither. */
bool feed_place_parse(const char *text, struct feed_place *ret);

/* Of what is shown. A row's kind is its own number. */
enum { FEED_NOTE = ROW_KINDS, FEED_LOAD, FEED_KINDS };
#define FEED_BIT(kind) ((feed_kinds)1 << (kind))

/* True when changes of that kind are shown to anybody. */
bool feed_shows(enum row_kind kind);

/* False of a change that is nobody's business: a lobby is over, which was shown, and some of its
 * players have heard of it. So each of its states is shown once, but for loading. */
bool feed_shows_change(const struct core *core, const struct change *change);

/* One change of a batch of that time; its id is the place after it. */
void feed_text_change(struct buf *out, const struct core *core, const struct change *change,
                      struct feed_place after, struct instant then);

/* An id without an event. */
void feed_text_id(struct buf *out, struct feed_place place);

/* Changes are missing between the two places. why: "forgotten" "behind" "ahead" "damaged". */
void feed_text_gap(struct buf *out, struct feed_place from, struct feed_place to, const char *why);

/* A released EFFECT_NOTE, kept for the moment it takes to be shown. */
struct feed_note {
    int64_t seq; /* the last batch that was durable by then */
    int64_t wall_ms;
    enum note note;
    int32_t err;
    int32_t lobby;
    int32_t server;
    int32_t account;
    int32_t port;
    int64_t ticket;
    int64_t session;
    int64_t object;  /* see note_object_key */
    int8_t reason;   /* NOTE_ROOM_ENDED, NOTE_LOBBY_ABORTED, NOTE_LOBBY_ENDED */
    bool requeued;   /* NOTE_LOBBY_ABORTED */
    int32_t players; /* see note_counts_players */
    int64_t for_ms;
    char ip[46];
    char chat_server[65];
    char region[16];
    char player[65];
    char text[96]; /* cut when longer */
};

void feed_note_keep(struct feed_note *ret, const struct effect *e, int64_t seq, int64_t wall_ms);
void feed_text_note(struct buf *out, const struct feed_note *note);

/* The kinds a reader must have asked for to be given it. */
feed_kinds feed_note_needs(const struct feed_note *note);

/* So many notes were not shown. */
void feed_text_missed(struct buf *out, int64_t missed);

/* Counts of each fleet and region that has servers; cut when longer than FEED_LOAD_MAX. */
enum { FEED_LOAD_MAX = 64 * 1024 };
void feed_text_load(struct buf *out, const struct core *core, int64_t wall_ms);
