/* Envelopes: whatever comes is judged, and judged alike the second time. What is ours can be
 * answered, and the answer is JSON that nobody takes for a request. */
#include "fuzz/fuzz.h"
#include "wire/envelope.h"

#include <string.h>

static void answer(const struct envelope_request *r, const char *why)
{
    struct buf out = {0};
    char fault[ENVELOPE_WHY_MAX];
    struct envelope_request again;
    envelope_write(&out, &(struct envelope_result){.ticket_id = r->ticket_id,
                                                   .status = ENVELOPE_FAILURE,
                                                   .error = str_of(why)});
    struct str text = {(const char *)out.data, out.len};
    assert(envelope_read(text, &again, fault) == ENVELOPE_FOREIGN);
    envelope_done(&again);
    buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct envelope_request a;
    struct envelope_request b;
    char why_a[ENVELOPE_WHY_MAX];
    char why_b[ENVELOPE_WHY_MAX];
    enum envelope_verdict verdict = envelope_read(text, &a, why_a);
    assert(envelope_read(text, &b, why_b) == verdict);
    assert(strcmp(why_a, why_b) == 0 && str_is_utf8(str_of(why_a)));
    assert(str_eq(a.ticket_id, b.ticket_id) && str_eq(a.info, b.info));
    assert((verdict == ENVELOPE_WRONG || verdict == ENVELOPE_UNREADABLE) == (why_a[0] != '\0'));
    if (verdict == ENVELOPE_OURS || verdict == ENVELOPE_WRONG) {
        assert(a.ticket_id.len > 0 && a.ticket_id.len <= ENVELOPE_NAME_MAX);
        answer(&a, why_a);
    }
    envelope_done(&a);
    envelope_done(&b);
    return 0;
}
