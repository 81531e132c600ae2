#include "api/seeking.h"

#include "api/geo.h"
#include "base/err.h"
#include "core/core.h"

#include <sodium.h>
#include <stdio.h>
#include <strings.h>

/* ── the digest ────────────────────────────────────────────────────────────────────────────── */

static void digest_number(crypto_generichash_state *state, int64_t n)
{
    (void)crypto_generichash_update(state, (const uint8_t *)&n, sizeof(n));
}

/* With its length, so that no two lists of texts are alike. */
static void digest_text(crypto_generichash_state *state, struct str text)
{
    digest_number(state, (int64_t)text.len);
    (void)crypto_generichash_update(state, (const uint8_t *)text.at, text.len);
}

static void digest_texts(crypto_generichash_state *state, const struct str *texts, size_t n)
{
    digest_number(state, (int64_t)n);
    for (size_t i = 0; i < n; i++)
        digest_text(state, texts[i]);
}

/* Of what was asked for, not of how it was written: blanks and the order of members differ between
 * the libraries of two senders. The address is none of it, since a repeat may come from elsewhere.
 */
static void digest(const struct envelope_request *r, uint8_t ret[OPERATE_DIGEST])
{
    crypto_generichash_state state;
    (void)crypto_generichash_init(&state, NULL, 0, OPERATE_DIGEST);
    digest_text(&state, r->fleet);
    digest_text(&state, r->player_id);
    digest_texts(&state, r->join_on_ids, r->n_join_on_ids);
    digest_number(&state, r->can_join_not_found);
    digest_text(&state, r->region);
    digest_number(&state, (int64_t)r->n_latencies);
    for (size_t i = 0; i < r->n_latencies; i++) {
        digest_text(&state, r->latencies[i].region);
        digest_number(&state, (int64_t)(r->latencies[i].ms * 1000));
    }
    digest_number(&state, r->priority);
    digest_texts(&state, r->party_ids, r->n_party_ids);
    digest_number(&state, r->move_party);
    digest_number(&state, r->rejoin);
    digest_text(&state, r->info);
    (void)crypto_generichash_final(&state, ret, OPERATE_DIGEST);
}

/* ── where from ────────────────────────────────────────────────────────────────────────────── */

static int region_of(const struct core_config *config, struct str name)
{
    for (int code = 0; code < REGION_CODES; code++) {
        struct str own = str_of(config->regions[code].name);
        if (own.len > 0 && own.len == name.len && strncasecmp(own.at, name.at, own.len) == 0)
            return code;
    }
    return -1;
}

static void fill_latencies(const struct core_config *config, const struct envelope_request *r,
                           struct place *p)
{
    for (size_t i = 0; i < r->n_latencies; i++) {
        int code = region_of(config, r->latencies[i].region);
        if (code < 0)
            continue;
        p->latencies |= UINT64_C(1) << code;
        p->latency_ms[code] = (float)r->latencies[i].ms;
    }
}

int seeking_fill(const struct core_config *config, const struct geo *geo,
                 const struct envelope_request *r, struct str from, struct seek *ret,
                 char why[SEEKING_WHY_MAX])
{
    int region = region_of(config, r->region);
    if (r->region.len > 0 && region < 0) {
        snprintf(why, SEEKING_WHY_MAX, "region '%.*s' is not supported",
                 r->region.len < 64 ? (int)r->region.len : 64, r->region.at);
        return ERR_REGION_NOT_SUPPORTED;
    }
    *ret = (struct seek){
        .name = r->ticket_id,
        .player = r->player_id,
        .info = r->info,
        .from = from,
        .friends = r->join_on_ids,
        .n_friends = r->n_join_on_ids,
        .party = r->party_ids,
        .n_party = r->n_party_ids,
        .any_room = r->can_join_not_found,
        .rejoin = r->rejoin,
        .move_party = r->move_party,
        .priority = r->priority,
        .where = {.fleet = r->fleet, .region = (int8_t)region},
    };
    struct place *where = &ret->where;
    where->located = geo_find(geo, from, &where->latitude, &where->longitude);
    fill_latencies(config, r, where);
    digest(r, ret->arguments);
    return 0;
}
