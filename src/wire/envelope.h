/* The JSON envelope of allocations: what is asked for and what came of it, as it stands in an HTTP
 * body, a NATS message or a Pub/Sub message. Pure; a request's texts live in the memory of its
 * parsed document, a result's belong to whoever made it. */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ENVELOPE_WHY_MAX = 200,
    ENVELOPE_NAME_MAX = 128, /* ticketId */
    ENVELOPE_ID_MAX = 64,    /* playerId and those of others */
    ENVELOPE_FRIENDS_MAX = 64,
    ENVELOPE_PARTY_MAX = 63,
    ENVELOPE_LATENCIES_MAX = 64,
    ENVELOPE_PRIORITY_MAX = 100,
    ENVELOPE_PORTS_MAX = 4,
};

struct envelope_latency {
    struct str region;
    double ms;
};

struct envelope_request {
    struct json *document; /* owns the texts */
    struct str ticket_id;
    struct str fleet;
    struct str player_id;
    struct str join_on_ids[ENVELOPE_FRIENDS_MAX];
    size_t n_join_on_ids;
    bool can_join_not_found;
    struct str region; /* empty = not given */
    struct envelope_latency latencies[ENVELOPE_LATENCIES_MAX];
    size_t n_latencies;
    int32_t priority;
    struct str party_ids[ENVELOPE_PARTY_MAX];
    size_t n_party_ids;
    bool move_party;
    bool rejoin;       /* true unless it says otherwise */
    struct str info;   /* a JSON object, written out; empty = none */
    struct buf memory; /* of info */
};

enum envelope_verdict {
    ENVELOPE_OURS,    /* *ret is filled */
    ENVELOPE_FOREIGN, /* another type: acknowledged and left alone */
    ENVELOPE_WRONG,   /* ours, with a ticketId, but something is wrong: answer `why` as Failure */
    ENVELOPE_UNREADABLE, /* no JSON, or no ticketId: it cannot be answered */
};

/* Reads one. When WRONG, ticket_id is set and why is a sentence; when UNREADABLE, why is one too.
 * *ret is to be ended with envelope_done in every case. */
enum envelope_verdict envelope_read(struct str text, struct envelope_request *ret,
                                    char why[ENVELOPE_WHY_MAX]);
void envelope_done(struct envelope_request *r);

enum envelope_status { ENVELOPE_SUCCESS, ENVELOPE_FAILURE, ENVELOPE_QUEUED };

struct envelope_member {
    struct str player_id;
    struct str token;
    struct str key; /* empty = none */
};

/* What stands in it only for some statuses is empty or 0 in the others, and then absent. */
struct envelope_result {
    struct str ticket_id;
    enum envelope_status status;
    struct str token;
    struct str address;
    uint16_t ports[ENVELOPE_PORTS_MAX];
    int n_ports; /* the first is `port`, all are `ports` when there are several */
    int64_t session_id;
    int64_t expires_wall_ms; /* 0 = the seat stays */
    struct str key;
    int64_t party_id;                    /* 0 = he comes alone */
    const struct envelope_member *party; /* those who came along */
    size_t n_party;
    struct str error;
    int32_t position;
    struct str queue_id;
    int64_t eta_s; /* 0 = unknown */
};

/* Appends it as one JSON object. The same result gives the same bytes. */
void envelope_write(struct buf *out, const struct envelope_result *r);

/* "Success" "Failure" "Queued" */
const char *envelope_status_word(enum envelope_status status);

/* A routing token: 16 bytes as 24 characters of base64. */
enum { TOKEN_RAW = 16, TOKEN_TEXT = 24 };
void envelope_token(const uint8_t raw[TOKEN_RAW], char dst[TOKEN_TEXT + 1]);

/* The first 16 bytes of a player's id, filled up with zeros. */
void envelope_player_token(struct str player_id, uint8_t ret[TOKEN_RAW]);
