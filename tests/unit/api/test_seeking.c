/* A request from any door as core's event: what is filled, and when two requests are one. */
#include "api/seeking.h"

#include "base/err.h"
#include "core/core.h"
#include "lib/unit.h"

#include <stdlib.h>
#include <string.h>

static struct core_config *config;

static int set_up(void **state)
{
    (void)state;
    config = calloc(1, sizeof(*config));
    core_config_default(config);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(config);
    return 0;
}

/* Reads text and fills; returns the error. The texts of *ret live until the next call. */
static int fill(const char *text, struct seek *ret)
{
    static struct envelope_request r;
    char why[ENVELOPE_WHY_MAX];
    envelope_done(&r);
    assert_int_equal(envelope_read(str_of(text), &r, why), ENVELOPE_OURS);
    return seeking_fill(config, NULL, &r, STR("192.0.2.1"), ret, why);
}

#define HEAD "{\"ticketId\":\"t\",\"fleet\":\"f\",\"playerId\":\"ann\""

static void everything_is_filled(void **state)
{
    (void)state;
    struct seek s;
    assert_int_equal(fill(HEAD ",\"joinOnIds\":[\"bob\",\"cat\"],\"canJoinNotFound\":true,"
                               "\"region\":\"eu\",\"latencies\":{\"USE\":31.5,\"MOON\":2},"
                               "\"priority\":7,\"partyIds\":[\"dan\"],\"moveParty\":true,"
                               "\"rejoin\":false,\"info\":{\"a\":1}}",
                          &s),
                     0);
    assert_true(str_eq(s.name, STR("t")));
    assert_true(str_eq(s.where.fleet, STR("f")));
    assert_true(str_eq(s.player, STR("ann")));
    assert_true(str_eq(s.from, STR("192.0.2.1")));
    assert_int_equal(s.n_friends, 2);
    assert_true(str_eq(s.friends[1], STR("cat")));
    assert_int_equal(s.n_party, 1);
    assert_true(s.any_room && s.move_party && !s.rejoin);
    assert_int_equal(s.priority, 7);
    assert_true(str_eq(s.info, STR("{\"a\":1}")));
    assert_string_equal(config->regions[s.where.region].name, "EU");
    int use = 0;
    while (strcmp(config->regions[use].name, "USE") != 0)
        use++;
    assert_true(s.where.latencies == UINT64_C(1) << use); /* nobody knows the moon */
    assert_true(s.where.latency_ms[use] == 31.5f);
}

static void an_unknown_region_is_refused(void **state)
{
    (void)state;
    struct seek s;
    assert_int_equal(fill(HEAD ",\"region\":\"MOON\"}", &s), ERR_REGION_NOT_SUPPORTED);
    assert_int_equal(fill(HEAD "}", &s), 0);
    assert_int_equal(s.where.region, -1);
}

static bool are_one(const char *text, const char *other)
{
    struct seek a, b;
    assert_int_equal(fill(text, &a), 0);
    uint8_t kept[OPERATE_DIGEST];
    memcpy(kept, a.arguments, sizeof(kept));
    assert_int_equal(fill(other, &b), 0);
    return memcmp(kept, b.arguments, sizeof(kept)) == 0;
}

static void the_digest_is_of_what_is_asked_for(void **state)
{
    (void)state;
    static const char *const others[] = {
        "{\"ticketId\":\"t\",\"fleet\":\"g\",\"playerId\":\"ann\"}",
        "{\"ticketId\":\"t\",\"fleet\":\"f\",\"playerId\":\"bob\"}",
        HEAD ",\"joinOnIds\":[\"bob\"]}",
        HEAD ",\"joinOnIds\":[\"bo\",\"b\"]}",
        HEAD ",\"partyIds\":[\"bob\"]}",
        HEAD ",\"canJoinNotFound\":true}",
        HEAD ",\"region\":\"EU\"}",
        HEAD ",\"latencies\":{\"EU\":3}}",
        HEAD ",\"priority\":1}",
        HEAD ",\"moveParty\":true}",
        HEAD ",\"rejoin\":false}",
        HEAD ",\"info\":{\"a\":1}}",
    };
    enum { N = sizeof(others) / sizeof(others[0]) };
    for (size_t i = 0; i < N; i++) {
        assert_false(are_one(HEAD "}", others[i]));
        for (size_t k = 0; k < i; k++)
            assert_false(are_one(others[k], others[i]));
    }
    assert_true(
        are_one(HEAD "}", "{ \"playerId\": \"ann\", \"fleet\":\"f\",\n\"ticketId\":\"t\" }"));
    assert_true(are_one(HEAD "}", HEAD ",\"rejoin\":true,\"priority\":0}"));
    /* Its name is what it is compared under. */
    assert_true(are_one(HEAD "}", "{\"ticketId\":\"u\",\"fleet\":\"f\",\"playerId\":\"ann\"}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_filled),
        cmocka_unit_test(an_unknown_region_is_refused),
        cmocka_unit_test(the_digest_is_of_what_is_asked_for),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
