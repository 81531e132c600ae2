#include "agent/pulse.h"

#include "base/log.h"

void pulses_init(struct pulses *ps, int64_t monotonic_ms)
{
    *ps = (struct pulses){.now_ms = 1, .ticked_ms = monotonic_ms};
    list_init(&ps->running);
}

void pulses_tick(struct pulses *ps, int64_t monotonic_ms)
{
    int64_t gap_ms = monotonic_ms - ps->ticked_ms;
    bool ran = gap_ms <= PULSE_GAP_MAX_MS;
    ps->ticked_ms = monotonic_ms;
    ps->now_ms += ran ? gap_ms : PULSE_GAP_MAX_MS;
    if (ran)
        return;
    LIST_EACH(&ps->running, p, struct pulse, link)
    {
        if (p->asked_ms)
            p->asked_ms = ps->now_ms;
    }
}

int64_t pulses_soon_ms(const struct pulses *ps, int64_t monotonic_ms, int64_t in_ms)
{
    int64_t gap_ms = monotonic_ms - ps->ticked_ms;
    return ps->now_ms + (gap_ms < PULSE_GAP_MAX_MS ? gap_ms : PULSE_GAP_MAX_MS) + in_ms;
}

void pulses_heard(struct pulses *ps)
{
    ps->heard_ms = ps->now_ms;
    ps->all_silent = false;
}

void pulse_start(struct pulses *ps, struct pulse *p, int64_t period_ms, int64_t first_in_ms)
{
    *p = (struct pulse){.period_ms = period_ms, .due_ms = ps->now_ms + first_in_ms};
    list_append(&ps->running, &p->link);
}

void pulse_stop(struct pulse *p)
{
    list_remove(&p->link);
}

static bool is_overdue(const struct pulses *ps, const struct pulse *p)
{
    return p->asked_ms && ps->now_ms - p->asked_ms >= PULSE_ANSWER_MS;
}

/* The machine stood still, or so it seems: everybody who was asked is asked again, and counts anew.
 */
static void pulses_begin_again(struct pulses *ps)
{
    size_t n = 0;
    LIST_EACH(&ps->running, p, struct pulse, link)
    {
        *p = (struct pulse){.link = p->link, .period_ms = p->period_ms, .due_ms = ps->now_ms};
        n++;
    }
    if (!ps->all_silent)
        log_line(LOG_WARN, "all game servers are silent; nothing is concluded from that",
                 "servers=%zu", n);
    ps->all_silent = true;
}

/* What the others say about the machine: true when the silence of this one counts. */
static bool pulse_counts(struct pulses *ps, const struct pulse *silent)
{
    bool waits = false;
    bool asked = false;
    bool unasked = false;
    if (ps->heard_ms >= silent->asked_ms)
        return true;
    LIST_EACH(&ps->running, p, struct pulse, link)
    {
        asked = asked || (p != silent && p->asked_ms);
        waits = waits || (p->asked_ms && !is_overdue(ps, p));
        unasked = unasked || !p->asked_ms;
    }
    if (!asked)
        return true;
    if (waits)
        return false;
    if (!unasked) {
        pulses_begin_again(ps);
        return false;
    }
    LIST_EACH(&ps->running, p, struct pulse, link)
    {
        if (!p->asked_ms)
            p->due_ms = ps->now_ms;
    }
    return false;
}

enum pulse_verdict pulse_look(struct pulses *ps, struct pulse *p)
{
    if (is_overdue(ps, p) && pulse_counts(ps, p)) {
        p->asked_ms = 0;
        p->due_ms = ps->now_ms;
        p->silent++;
    }
    if (p->silent >= PULSE_SILENT_MAX)
        return PULSE_HUNG;
    if (p->asked_ms || ps->now_ms < p->due_ms)
        return PULSE_WAIT;
    p->asked_ms = ps->now_ms;
    return PULSE_ASK;
}

void pulse_answered(struct pulse *p, bool last)
{
    p->silent = 0;
    if (!last || !p->asked_ms)
        return;
    p->due_ms = p->asked_ms + p->period_ms;
    p->asked_ms = 0;
}
